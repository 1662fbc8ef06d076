// Publishes all packages from a folder with the binary of every platform, or none:
//   npm run release -- ARTIFACTS            in the workflow; npm adds the provenance, and refuses elsewhere
//   npm run release:dry-run -- ARTIFACTS    npm publish --dry-run
// `--packages DIR` keeps the tarballs. `--stand-ins` is for a dry run on a developer's machine: marked files replace the
// binaries that are missing, and a binary that was linked for this machine's glibc is accepted.
//
// `napi pre-publish` does part of this. It edits the manifests in the repository, and checks neither the tag nor what a
// binary was linked for.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { packMain, packPlatform, placeholders, PLATFORMS, VERSION } = require('./packages.js');

/** The oldest glibc that the packages support. */
const GLIBC_FLOOR = [2, 17];

/** The oldest macOS: the first one for arm64. The workflow's MACOSX_DEPLOYMENT_TARGET says it to the linker. */
const MACOS_FLOOR = [11, 0];

/** A release build is well below this. */
const MAX_BYTES = 2.1e6;

/** Marks a file that replaces a binary in a dry run. */
const STAND_IN = 'sablock: a stand-in, not a binary';

const ELF = { x64: 0x3e, arm64: 0xb7 };
const MACH_O = { x64: 0x01000007, arm64: 0x0100000c };
const PE = { x64: 0x8664, arm64: 0xaa64 };
const PE_HEADER = 0x40;

/** The operating system and the processor in the header of a binary; undefined if it is of another kind. */
function targetOf(bytes) {
  const cpuOf = (cpus, code) => Object.keys(cpus).find((cpu) => cpus[cpu] === code) ?? `processor ${code}`;
  if (bytes.length < 0x100) return undefined;
  if (bytes.readUInt32BE(0) === 0x7f454c46) return `linux ${cpuOf(ELF, bytes.readUInt16LE(18))}`;
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return `darwin ${cpuOf(MACH_O, bytes.readUInt32LE(4))}`;
  if (bytes.toString('latin1', 0, 2) === 'MZ') {
    const header = bytes.readUInt32LE(0x3c);
    if (bytes.toString('latin1', header, header + 4) !== 'PE\0\0') return undefined;
    return `win32 ${cpuOf(PE, bytes.readUInt16LE(header + 4))}`;
  }
  return undefined;
}

/** The newest version of glibc that a symbol of the binary requires. */
function newestGlibc(text) {
  const versions = Array.from(text.matchAll(/\0GLIBC_(\d+)\.(\d+)/g), ([, major, minor]) => [+major, +minor]);
  return versions.sort((a, b) => a[0] - b[0] || a[1] - b[1]).at(-1);
}

const MACH_O_COMMANDS = 32;
/** The load commands that name the oldest macOS, and where in them. */
const MACOS_VERSIONS = { 36: 8 /* LC_VERSION_MIN_MACOSX */, 50: 12 /* LC_BUILD_VERSION */ };

/** The oldest macOS that the binary is linked for. */
function oldestMacos(bytes) {
  let at = MACH_O_COMMANDS;
  for (let left = bytes.readUInt32LE(16); left > 0 && at + 16 <= bytes.length; left--) {
    const version = MACOS_VERSIONS[bytes.readUInt32LE(at)];
    if (version !== undefined) return [bytes.readUInt16LE(at + version + 2), bytes[at + version + 1]];
    at += bytes.readUInt32LE(at + 4);
  }
  return undefined;
}

const isAbove = (version, floor) => version[0] > floor[0] || (version[0] === floor[0] && version[1] > floor[1]);

/** The reasons not to publish this file for this platform. A trial accepts stand-ins and any glibc. */
function objectionsTo(platform, file, isTrial) {
  const bytes = fs.readFileSync(file);
  const text = bytes.toString('latin1');
  const found = [];
  const actual = targetOf(bytes);
  if (actual === undefined) return ['is no binary of these systems'];
  if (actual !== `${platform.os} ${platform.cpu}`) found.push(`is for ${actual}`);
  if (bytes.length > MAX_BYTES) found.push(`has ${bytes.length} bytes, more than ${MAX_BYTES}`);
  if (text.includes(STAND_IN)) return isTrial ? found : [...found, 'is a stand-in'];
  if (!text.includes('sablock_protocol')) found.push('is no binary of sablock');
  if (platform.abi === 'musl' && text.includes('\0libc.so.6\0')) found.push('is for glibc');
  if (platform.abi === 'gnu') {
    const newest = newestGlibc(text);
    if (newest === undefined) found.push('is not for glibc');
    else if (!isTrial && isAbove(newest, GLIBC_FLOOR)) {
      found.push(`needs glibc ${newest.join('.')}, but ${GLIBC_FLOOR.join('.')} must do`);
    }
  }
  if (platform.os === 'darwin') {
    const oldest = oldestMacos(bytes);
    if (oldest === undefined) found.push('does not say for which macOS it is');
    else if (!isTrial && isAbove(oldest, MACOS_FLOOR)) {
      found.push(`needs macOS ${oldest.join('.')}, but ${MACOS_FLOOR.join('.')} must do`);
    }
  }
  return found;
}

/** The contents of a file with the right header and nothing else. */
function createStandIn({ os: system, cpu }) {
  const bytes = Buffer.alloc(0x100);
  if (system === 'linux') {
    bytes.writeUInt32BE(0x7f454c46, 0);
    bytes.writeUInt16LE(ELF[cpu], 18);
  } else if (system === 'darwin') {
    bytes.writeUInt32LE(0xfeedfacf, 0);
    bytes.writeUInt32LE(MACH_O[cpu], 4);
  } else {
    bytes.write('MZ', 0);
    bytes.writeUInt32LE(PE_HEADER, 0x3c);
    bytes.write('PE\0\0', PE_HEADER);
    bytes.writeUInt16LE(PE[cpu], PE_HEADER + 4);
  }
  return Buffer.concat([bytes, Buffer.from(STAND_IN)]);
}

function refuse(reasons) {
  console.error(['Nothing is published:', ...reasons].join('\n  '));
  process.exit(1);
}

/** Writes a stand-in for each binary that is missing. */
function addStandIns(binaries, temporary) {
  for (const [platform, file] of binaries) {
    if (fs.existsSync(file)) continue;
    const replacement = path.join(temporary, platform.binary);
    fs.writeFileSync(replacement, createStandIn(platform));
    binaries.set(platform, replacement);
    console.log(`${platform.binary} is missing: a stand-in replaces it.`);
  }
}

/** Reports everything that is wrong at once, before anything is published. */
function check(binaries, artifacts, isTrial) {
  const reasons = isTrial ? [] : placeholders.map((field) => `"${field}" of package.json is a placeholder`);
  for (const [platform, file] of binaries) {
    const objections = fs.existsSync(file) ? objectionsTo(platform, file, isTrial) : ['is missing'];
    reasons.push(...objections.map((objection) => `${platform.binary} ${objection}`));
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
function packAll(binaries, destination, staging) {
  fs.mkdirSync(destination, { recursive: true });
  fs.mkdirSync(staging);
  const platforms = Array.from(binaries, ([platform, file]) => ({
    name: platform.packageName,
    file: packPlatform(staging, destination, platform, file),
  }));
  return [...platforms, { name: 'sablock', file: packMain(staging, destination, PLATFORMS) }];
}

function publish({ name, file }, isDryRun) {
  // A release that failed halfway can be run again.
  if (!isDryRun && isPublished(name)) {
    console.log(`${name}@${VERSION} is there already.`);
    return;
  }
  const tag = VERSION.includes('-') ? 'next' : 'latest';
  const args = ['publish', file, '--access', 'public', '--tag', tag, isDryRun ? '--dry-run' : '--provenance'];
  console.log(`npm ${args.join(' ')}`);
  execFileSync('npm', args, { stdio: 'inherit' });
}

function isPublished(name) {
  try {
    return execFileSync('npm', ['view', `${name}@${VERSION}`, 'version'], { encoding: 'utf8' }).trim() === VERSION;
  } catch {
    return false; // no such package yet
  }
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      'stand-ins': { type: 'boolean', default: false },
      packages: { type: 'string' },
    },
  });
  const isDryRun = values['dry-run'];
  const isTrial = values['stand-ins'];
  if (positionals.length !== 1 || (isTrial && !isDryRun)) {
    refuse(['Usage: npm run release[:dry-run] -- ARTIFACTS [--packages DIR] [--stand-ins, in a dry run only]']);
  }
  const resolve = (folder) => path.resolve(process.env.INIT_CWD ?? process.cwd(), folder);
  const artifacts = resolve(positionals[0]);
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-release-'));
  process.on('exit', () => fs.rmSync(temporary, { recursive: true }));

  const binaries = new Map(PLATFORMS.map((platform) => [platform, path.join(artifacts, platform.binary)]));
  if (isTrial) addStandIns(binaries, temporary);
  check(binaries, artifacts, isTrial);
  const destination = values.packages === undefined ? temporary : resolve(values.packages);
  const tarballs = packAll(binaries, destination, path.join(temporary, 'staging'));
  for (const tarball of tarballs) publish(tarball, isDryRun);
  console.log(`${isDryRun ? 'Would have published' : 'Published'} ${tarballs.length} packages, version ${VERSION}.`);
}

Object.assign(exports, { createStandIn });

if (require.main === module) main();
