// Publishes the whole set from a folder with the binary of every platform, or nothing:
//   npm run release -- ARTIFACTS            in the workflow; npm adds the provenance, and refuses elsewhere
//   npm run release:dry-run -- ARTIFACTS    npm publish --dry-run
// `--packages DIR` keeps the tarballs. `--stand-ins`, for a dry run on a developer's machine, puts marked files in the place
// of what is missing, and takes a binary that was linked for this machine's glibc.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { objections, standIn } = require('./binary-files.js');
const { packMain, packPlatform, PLATFORMS, VERSION } = require('./packages.js');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'dry-run': { type: 'boolean', default: false },
    'stand-ins': { type: 'boolean', default: false },
    packages: { type: 'string' },
  },
});
const isDryRun = values['dry-run'];
const resolve = (folder) => path.resolve(process.env.INIT_CWD ?? process.cwd(), folder);

if (positionals.length !== 1 || (values['stand-ins'] && !isDryRun)) {
  refuse(['Usage: npm run release[:dry-run] -- ARTIFACTS [--packages DIR] [--stand-ins, in a dry run only]']);
}
const artifacts = resolve(positionals[0]);
const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-release-'));
process.on('exit', () => fs.rmSync(temporary, { recursive: true }));

const binaries = new Map(PLATFORMS.map((platform) => [platform, path.join(artifacts, platform.binary)]));
if (values['stand-ins']) putStandIns();
check();
const tarballs = packAll();
for (const tarball of tarballs) publish(tarball);
console.log(`${isDryRun ? 'Would have published' : 'Published'} ${tarballs.length} packages, version ${VERSION}.`);

function refuse(reasons) {
  console.error(['Nothing is published:', ...reasons].join('\n  '));
  process.exit(1);
}

function putStandIns() {
  for (const [platform, file] of binaries) {
    if (fs.existsSync(file)) continue;
    const replacement = path.join(temporary, platform.binary);
    fs.writeFileSync(replacement, standIn(platform));
    binaries.set(platform, replacement);
    console.log(`${platform.binary} is missing: a stand-in takes its place.`);
  }
}

/** All that can be wrong is told at once, before anything is published. */
function check() {
  const reasons = [];
  for (const [platform, file] of binaries) {
    if (!fs.existsSync(file)) reasons.push(`${platform.binary} is missing`);
    else
      reasons.push(
        ...objections(platform, file, values['stand-ins']).map((objection) => `${platform.binary} ${objection}`),
      );
  }
  const known = new Set(PLATFORMS.map(({ binary }) => binary));
  for (const file of fs.readdirSync(artifacts)) {
    if (file.endsWith('.node') && !known.has(file)) reasons.push(`${file} is of no platform in package.json`);
  }
  const { GITHUB_REF_TYPE: type, GITHUB_REF_NAME: ref } = process.env;
  if (type === 'tag' && ref !== `v${VERSION}`) reasons.push(`the tag is ${ref}, and the version ${VERSION}`);
  if (reasons.length > 0) refuse(reasons);
}

/** The main package comes last: whoever gets it finds the others. */
function packAll() {
  const destination = values.packages === undefined ? temporary : resolve(values.packages);
  fs.mkdirSync(destination, { recursive: true });
  const staging = path.join(temporary, 'staging');
  fs.mkdirSync(staging);
  return [
    ...Array.from(binaries, ([platform, file]) => ({
      name: platform.packageName,
      file: packPlatform(staging, destination, platform, file),
    })),
    { name: 'sablock', file: packMain(staging, destination, PLATFORMS) },
  ];
}

function publish({ name, file }) {
  // A release that broke off halfway is taken up again.
  if (!isDryRun && isPublished(name)) {
    console.log(`${name}@${VERSION} is there already.`);
    return;
  }
  const tag = VERSION.includes('-') ? 'next' : 'latest';
  npm('publish', file, '--access', 'public', '--tag', tag, isDryRun ? '--dry-run' : '--provenance');
}

function isPublished(name) {
  try {
    return execFileSync('npm', ['view', `${name}@${VERSION}`, 'version'], { encoding: 'utf8' }).trim() === VERSION;
  } catch {
    return false; // no such package yet
  }
}

function npm(...args) {
  console.log(`npm ${args.join(' ')}`);
  execFileSync('npm', args, { stdio: 'inherit' });
}
