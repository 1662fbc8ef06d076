// A release publishes all packages or none. An npm that only records its calls replaces the real one.

const assert = require('node:assert/strict');
const { execFile, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');
const { parseTriple } = require('@napi-rs/cli');
const { createStandIn } = require('../../scripts/release.js');
const { PLATFORMS, placeholders, VERSION } = require('../../scripts/packages.js');
const { createFolder } = require('../helpers/folder.js');
const { BINARY } = require('../helpers/installs.js');

const LIMIT = { timeout: 120_000, skip: process.platform === 'win32' };
const RELEASE = path.join(__dirname, '..', '..', 'scripts', 'release.js');
const NPM = path.join(__dirname, '..', 'programs', 'noting-npm.js');

/** A folder with this machine's binary, stand-ins for all others, and the noting npm. */
function createArtifacts(t) {
  const folder = createFolder(t);
  for (const platform of PLATFORMS) fs.writeFileSync(path.join(folder, platform.binary), createStandIn(platform));
  fs.copyFileSync(BINARY, path.join(folder, path.basename(BINARY)));
  return folder;
}

/** Returns how it ends, and what it asks of npm. */
async function release(t, artifacts, args = [], extra = {}) {
  const bin = createFolder(t);
  const NOTES = path.join(bin, 'notes');
  fs.writeFileSync(NOTES, '');
  const command = `#!/bin/sh\nexec '${process.execPath}' '${NPM}' "$@"\n`;
  fs.writeFileSync(path.join(bin, 'npm'), command, { mode: 0o755 });
  const { GITHUB_REF_TYPE, GITHUB_REF_NAME, INIT_CWD, ...rest } = process.env;
  const env = { ...rest, ...extra, NOTES, PATH: `${bin}${path.delimiter}${process.env.PATH}` };
  const options = { env, cwd: artifacts };
  const { code = 0, stderr } = await promisify(execFile)(
    process.execPath,
    [RELEASE, artifacts, ...args],
    options,
  ).catch((error) => error);
  return { code, stderr, calls: fs.readFileSync(NOTES, 'utf8').trim().split('\n').filter(Boolean) };
}

const hasCargo = spawnSync('cargo', ['--version']).status === 0;

test('the platforms have the names that napi gives them', () => {
  assert.ok(PLATFORMS.length > 0);
  for (const { triple, name, os, cpu, abi } of PLATFORMS) {
    const named = parseTriple(triple);
    assert.deepEqual([name, os, cpu, abi], [named.platformArchABI, named.platform, named.arch, named.abi], triple);
  }
});

test('a dry run publishes every platform, and the package itself last, without a real publish', {
  ...LIMIT,
  skip: LIMIT.skip || !hasCargo,
}, async (t) => {
  const { code, stderr, calls } = await release(t, createArtifacts(t), ['--dry-run', '--stand-ins']);
  assert.equal(code, 0, stderr);
  const published = calls.filter((call) => call.startsWith('publish '));
  assert.equal(published.length, PLATFORMS.length + 1);
  assert.match(published.at(-1), /\/main\.tgz /);
  for (const call of published) assert.match(call, /--access public .*--dry-run$/);
});

for (const platform of PLATFORMS) {
  test(`nothing is published when ${platform.name} is missing`, LIMIT, async (t) => {
    const artifacts = createArtifacts(t);
    fs.rmSync(path.join(artifacts, platform.binary));
    const { code, stderr, calls } = await release(t, artifacts, ['--dry-run']);
    assert.equal(code, 1);
    assert.ok(stderr.includes(`${platform.binary} is missing`), stderr);
    assert.deepEqual(calls, []);
  });
}

test('a stand-in is never published, nor with a placeholder in the manifest', LIMIT, async (t) => {
  const { code, stderr, calls } = await release(t, createArtifacts(t));
  assert.equal(code, 1);
  for (const { binary } of PLATFORMS.filter((platform) => platform.binary !== path.basename(BINARY))) {
    assert.ok(stderr.includes(`${binary} is a stand-in`), stderr);
  }
  assert.deepEqual(calls, []);
  for (const field of placeholders) assert.ok(stderr.includes(`"${field}" of package.json is a placeholder`), stderr);
  const asked = await release(t, createArtifacts(t), ['--stand-ins']);
  assert.equal(asked.code, 1);
  assert.deepEqual(asked.calls, []);
});

test("a file of one platform under another's name is refused", LIMIT, async (t) => {
  const artifacts = createArtifacts(t);
  const [first, second] = PLATFORMS.filter(({ os }) => os === 'darwin');
  fs.copyFileSync(path.join(artifacts, first.binary), path.join(artifacts, second.binary));
  const { code, stderr, calls } = await release(t, artifacts, ['--dry-run']);
  assert.equal(code, 1);
  assert.ok(stderr.includes(`${second.binary} is for darwin ${first.cpu}`), stderr);
  assert.deepEqual(calls, []);
});

test('a binary of no platform in package.json, or of something else, is refused', LIMIT, async (t) => {
  const artifacts = createArtifacts(t);
  fs.writeFileSync(path.join(artifacts, 'sablock.aix-ppc64.node'), '');
  const [{ binary }] = PLATFORMS;
  fs.writeFileSync(path.join(artifacts, binary), 'not found');
  const { code, stderr, calls } = await release(t, artifacts, ['--dry-run']);
  assert.equal(code, 1);
  assert.ok(stderr.includes('sablock.aix-ppc64.node is of no platform'), stderr);
  assert.ok(stderr.includes(`${binary} is no binary of these systems`), stderr);
  assert.deepEqual(calls, []);
});

for (const [command, length, at] of [
  [0x32, 24, 12],
  [0x24, 16, 8],
]) {
  test(`a binary that needs a newer macOS is refused: load command ${command}`, LIMIT, async (t) => {
    for (const [major, minor, isRefused] of [
      [10, 12, false],
      [11, 0, false],
      [11, 1, true],
      [15, 0, true],
    ]) {
      const artifacts = createArtifacts(t);
      const platform = PLATFORMS.find(({ os }) => os === 'darwin');
      const bytes = createStandIn(platform).subarray(0, 0x100);
      // A command of another kind comes first.
      bytes.writeUInt32LE(2, 16);
      bytes.writeUInt32LE(0x19, 32);
      bytes.writeUInt32LE(72, 36);
      bytes.writeUInt32LE(command, 104);
      bytes.writeUInt32LE(length, 108);
      bytes.writeUInt32LE((major << 16) | (minor << 8), 104 + at);
      const file = path.join(artifacts, platform.binary);
      fs.writeFileSync(file, Buffer.concat([bytes, Buffer.from('sablock_protocol')]));
      const { code, stderr } = await release(t, artifacts, ['--dry-run']);
      assert.equal(code, 1, 'the others are stand-ins');
      const found = stderr.split('\n').filter((line) => line.includes(platform.binary));
      const refusal = `  ${platform.binary} needs macOS ${major}.${minor}, but 11.0 must do`;
      assert.deepEqual(found, isRefused ? [refusal] : []);
    }
  });
}

test('a binary that does not say for which macOS it is, is refused', LIMIT, async (t) => {
  const artifacts = createArtifacts(t);
  const platform = PLATFORMS.find(({ os }) => os === 'darwin');
  const bytes = createStandIn(platform).subarray(0, 0x100);
  const file = path.join(artifacts, platform.binary);
  fs.writeFileSync(file, Buffer.concat([bytes, Buffer.from('sablock_protocol')]));
  const { stderr } = await release(t, artifacts, ['--dry-run']);
  assert.ok(stderr.includes(`${platform.binary} does not say for which macOS it is`), stderr);
});

test('a tag of another version is refused', LIMIT, async (t) => {
  const artifacts = createArtifacts(t);
  const tag = { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v99.0.0' };
  const { code, stderr, calls } = await release(t, artifacts, ['--dry-run'], tag);
  assert.equal(code, 1);
  assert.ok(stderr.includes(`the tag is v99.0.0, and the version ${VERSION}`), stderr);
  assert.deepEqual(calls, []);
});
