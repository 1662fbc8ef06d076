// npm run pack:local -- DIR: writes what a user installs on this machine, as two tarballs:
// the package itself, and this platform's binary as the optional dependency that the loader looks for.
// `npm install DIR/*.tgz` in an empty folder then needs neither a compiler nor the network.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { packMain, packPlatform, PLATFORMS } = require('./packages.js');

const root = path.join(__dirname, '..');
const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error('Usage: npm run pack:local -- DIR');
  process.exit(1);
}
const built = PLATFORMS.filter(({ binary }) => fs.existsSync(path.join(root, binary)));
if (built.length !== 1) {
  console.error(`Expected one binary in ${root}, found ${built.length}. Run npm run build.`);
  process.exit(1);
}

const destination = path.resolve(process.env.INIT_CWD ?? process.cwd(), directory);
fs.mkdirSync(destination, { recursive: true });
const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-pack-'));
try {
  const [platform] = built;
  console.log(packMain(staging, destination, built));
  console.log(packPlatform(staging, destination, platform, path.join(root, platform.binary)));
} finally {
  fs.rmSync(staging, { recursive: true });
}
