'use strict';

// The one binary of the process: finds this package's own, and exports the one that all copies of the package share.
// It runs at each start, in each thread, so what goes wrong is explained elsewhere (load-errors.js).

const { existsSync } = require('node:fs');
const path = require('node:path');

/** The version of these files; the binary tells its own. `npm version` sets it, with those in package.json and Cargo.toml. */
const VERSION = '0.1.0';

/** Names of this platform, as the build and the packages have them. Linux has two C libraries; only one kind of binary loads. */
function platforms() {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return [`${platform}-gnu`, `${platform}-musl`];
  return [process.platform === 'win32' ? `${platform}-msvc` : platform];
}

function open(file) {
  const module = { exports: {} };
  process.dlopen(module, path.toNamespacedPath(file));
  return module.exports;
}

/** The binary of a build from the sources; undefined if there is none. */
function fromBuild(platform, failures) {
  const file = path.join(__dirname, '..', '..', `sablock.${platform}.node`);
  try {
    if (!existsSync(file)) return undefined; // throws on Deno without --allow-read
    return { name: file, binding: open(file) };
  } catch (error) {
    failures.push({ name: file, error });
    return undefined;
  }
}

/** The binary that npm installed; undefined if there is none. */
function fromPackage(platform, failures) {
  const name = `@sablock/binding-${platform}`;
  const found = (binding) => ({ name, binding });
  try {
    // Literal names in a `try`, because bundlers and tracers read them so: they take in what is installed, and leave the rest.
    switch (platform) {
      case 'linux-x64-gnu':
        return found(require('@sablock/binding-linux-x64-gnu'));
      case 'linux-x64-musl':
        return found(require('@sablock/binding-linux-x64-musl'));
      case 'linux-arm64-gnu':
        return found(require('@sablock/binding-linux-arm64-gnu'));
      case 'linux-arm64-musl':
        return found(require('@sablock/binding-linux-arm64-musl'));
      case 'darwin-x64':
        return found(require('@sablock/binding-darwin-x64'));
      case 'darwin-arm64':
        return found(require('@sablock/binding-darwin-arm64'));
      case 'win32-x64-msvc':
        return found(require('@sablock/binding-win32-x64-msvc'));
      case 'win32-arm64-msvc':
        return found(require('@sablock/binding-win32-arm64-msvc'));
    }
  } catch (error) {
    failures.push({ name, error });
  }
  return undefined;
}

function load() {
  const failures = [];
  for (const from of [fromBuild, fromPackage]) {
    for (const platform of platforms()) {
      const own = from(platform, failures);
      if (own?.binding.VERSION === VERSION) return own.binding;
      if (own !== undefined) throw require('./load-errors.js').versionMismatch(VERSION, own);
    }
  }
  throw require('./load-errors.js').noBinary(failures);
}

// Two copies of the package (two versions in node_modules) would be two sets of queues, and an unlock in one would never
// wake a waiter of the other; so all copies use the binary that was loaded first.
const own = load();
const first = own.firstCopy();
if (first !== null && first.protocol !== own.PROTOCOL) {
  throw require('./load-errors.js').twoCopies(first, own.PROTOCOL);
}

module.exports = first === null ? own : open(first.path);
