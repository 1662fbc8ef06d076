// npm run pack:local -- DIR: writes what a user installs on this machine, as two tarballs:
// the package itself, and this platform's binary as the optional dependency that the loader looks for.
// `npm install DIR/*.tgz` in an empty folder then needs neither a compiler nor the network.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const root = path.join(__dirname, '..');
const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error('Usage: npm run pack:local -- DIR');
  process.exit(1);
}
const destination = path.resolve(process.env.INIT_CWD ?? process.cwd(), directory);
fs.mkdirSync(destination, { recursive: true });

const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const { binaryName, packageName } = manifest.napi;
const binaries = fs.readdirSync(root).filter((file) => file.startsWith(`${binaryName}.`) && file.endsWith('.node'));
if (binaries.length !== 1) {
  console.error(`Expected one binary in ${root}, found ${binaries.length}. Run npm run build.`);
  process.exit(1);
}
const [binary] = binaries;
const platform = binary.slice(binaryName.length + 1, -'.node'.length);

const staging = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-pack-'));
try {
  const shared = { version: manifest.version, license: manifest.license, engines: manifest.engines };
  const platformPackage = `${packageName}-${platform}`;

  const main = path.join(staging, 'main');
  for (const file of [...manifest.files, 'README.md', 'LICENSE']) {
    fs.cpSync(path.join(root, file), path.join(main, file), { recursive: true });
  }
  const { devDependencies, scripts, ...published } = manifest;
  writeManifest(main, { ...published, optionalDependencies: { [platformPackage]: manifest.version } });

  const binding = path.join(staging, 'binding');
  fs.mkdirSync(binding);
  fs.copyFileSync(path.join(root, binary), path.join(binding, binary));
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(binding, 'LICENSE'));
  const [system, processor] = platform.split('-');
  writeManifest(binding, {
    name: platformPackage,
    description: `The binary of ${manifest.name} for ${platform}`,
    ...shared,
    main: binary,
    files: [binary],
    os: [system],
    cpu: [processor],
  });

  for (const folder of [main, binding]) {
    const options = { cwd: folder, encoding: 'utf8', shell: process.platform === 'win32' };
    const tarball = execFileSync('npm', ['pack', '--silent', '--pack-destination', destination], options);
    console.log(path.join(destination, tarball.trim()));
  }
} finally {
  fs.rmSync(staging, { recursive: true });
}

function writeManifest(folder, contents) {
  fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(contents, null, 2)}\n`);
}
