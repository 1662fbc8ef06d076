'use strict';
// The bench builds for itself: with cargo, when it is missing or out of date, the addon of bench/native, which the
// limits are made of, and a copy of the package whose binary can leave a part of its design out; and one as users have it.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { copyPacked } = require('../../scripts/pack-core.js');
const { buildVariant } = require('../../scripts/variant.js');

const ROOT = path.join(__dirname, '..', '..');
const NATIVE_PACKAGE = 'sablock-bench-native';
const NATIVE = path.join(ROOT, 'bench', 'native.node');

/** The `code` of the error where there is no addon. */
const NOT_BUILT = 'NOT_BUILT';

const modified = (file) => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Cargo knows what is out of date. Without cargo nothing is built, and the rows that need the addon say so. */
function buildNative() {
  const args = ['build', '--quiet', '--release', '--package', NATIVE_PACKAGE];
  const format = ['--message-format', 'json-render-diagnostics'];
  const options = { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] };
  const { error, status, stdout } = spawnSync('cargo', [...args, ...format], options);
  if (error?.code === 'ENOENT') return;
  if (error) throw error;
  if (status !== 0) throw new Error(`cargo could not build ${NATIVE_PACKAGE}, the limits of the bench`);
  const built = stdout
    .toString()
    .split('\n')
    .filter((line) => line.includes(NATIVE_PACKAGE))
    .map((line) => JSON.parse(line))
    .find(({ reason, target }) => reason === 'compiler-artifact' && target.kind.includes('cdylib'));
  const [artifact] = built.filenames;
  if (modified(artifact) <= modified(NATIVE)) return;
  // A new file in place of the old one, which another run may have loaded.
  fs.copyFileSync(artifact, `${NATIVE}.new`);
  fs.renameSync(`${NATIVE}.new`, NATIVE);
  console.log(`Built ${path.relative(ROOT, NATIVE)}, the limits of the bench`);
}

function loadNative() {
  if (fs.existsSync(NATIVE)) return require(NATIVE);
  throw Object.assign(new Error('this limit needs the addon of bench/native, and that needs cargo'), {
    code: NOT_BUILT,
  });
}

/** The package with the cargo feature `ablation`; returns its folder. */
const buildAblation = () => buildVariant('ablation');

/** A copy of the package in the folder `root` as it is packed, with what all programs load in one file; returns its folder. */
function buildPacked(root) {
  const folder = path.join(root, 'target', 'packed');
  fs.rmSync(folder, { recursive: true, force: true });
  copyPacked(root, folder);
  const [binary] = fs.readdirSync(root).filter((file) => /^sablock\..*\.node$/.test(file));
  fs.copyFileSync(path.join(root, binary), path.join(folder, binary));
  return folder;
}

module.exports = { NOT_BUILT, buildNative, loadNative, buildAblation, buildPacked };
