'use strict';
// Builds of the package with a cargo feature that the shipped binary does not have.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { packCore } = require('./pack-core.js');

const root = path.join(__dirname, '..');
/** The builder of the addon, for Node.js to run. */
const NAPI = path.join(root, 'node_modules', '@napi-rs', 'cli', 'dist', 'cli.js');

/**
 * Builds the binary with this feature, and puts the package's files, and `others`, beside it; as they are packed, if `isPacked`.
 * Returns the folder. The target folder is that of all such builds, so that neither they nor others throw each other's work away.
 */
exports.buildVariant = (feature, { release = true, others = [], isPacked = false } = {}) => {
  const target = path.join(root, 'target', 'variants');
  const folder = path.join(target, feature);
  const { files } = require(path.join(root, 'package.json'));
  fs.rmSync(folder, { recursive: true, force: true });
  for (const file of ['package.json', ...files, ...others]) {
    const from = path.join(root, file);
    if (fs.existsSync(from)) fs.cpSync(from, path.join(folder, file), { recursive: true });
  }
  if (isPacked) packCore(folder);
  console.log(`Building the package with the feature ${feature} in ${path.relative(root, folder)}`);
  const what = ['build', '--platform', ...(release ? ['--release'] : []), '--no-js', '--features', feature];
  const where = ['--target-dir', path.join(target, 'build'), '--output-dir', folder, '--dts', 'binding.d.ts'];
  const { error, status } = spawnSync(process.execPath, [NAPI, ...what, ...where], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`The package could not be built with the feature ${feature}`);
  return folder;
};

exports.NAPI = NAPI;
