'use strict';
// The addon of bench/native: built by the runner when it is missing or out of date, loaded in the contenders' processes.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

/** The `code` of the error where there is no such addon. */
const NOT_BUILT = 'NOT_BUILT';

const PACKAGE = 'sablock-bench-native';
const ROOT = path.join(__dirname, '..', '..');
const FILE = path.join(ROOT, 'bench', 'native.node');

const modified = (file) => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Cargo knows what is out of date. Without cargo nothing is built, and the rows that need the addon say so. */
function build() {
  const args = ['build', '--quiet', '--release', '--package', PACKAGE, '--message-format', 'json-render-diagnostics'];
  const { error, status, stdout } = spawnSync('cargo', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  if (error?.code === 'ENOENT') return;
  if (error) throw error;
  if (status !== 0) throw new Error(`cargo could not build ${PACKAGE}, the limits of the bench`);
  const built = stdout
    .toString()
    .split('\n')
    .filter((line) => line.includes(PACKAGE))
    .map((line) => JSON.parse(line))
    .find(({ reason, target }) => reason === 'compiler-artifact' && target.kind.includes('cdylib'));
  const [artifact] = built.filenames;
  if (modified(artifact) <= modified(FILE)) return;
  // A new file in place of the old one, which another run may have loaded.
  fs.copyFileSync(artifact, `${FILE}.new`);
  fs.renameSync(`${FILE}.new`, FILE);
  console.log(`Built ${path.relative(ROOT, FILE)}, the limits of the bench`);
}

function load() {
  if (fs.existsSync(FILE)) return require(FILE);
  throw Object.assign(new Error('this limit needs the addon of bench/native, and that needs cargo'), {
    code: NOT_BUILT,
  });
}

module.exports = { NOT_BUILT, build, load };
