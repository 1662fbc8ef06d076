'use strict';
// The machine and the programs of a run, so that its figures can be read later.

const { execFileSync } = require('node:child_process');
const os = require('node:os');
const path = require('node:path');

const root = path.join(__dirname, '..', '..');

function tryOr(fallback, fn) {
  try {
    return fn();
  } catch {
    return fallback;
  }
}

const version = (name) =>
  tryOr(null, () => {
    const main = require.resolve(name);
    const folder = main.slice(
      0,
      main.lastIndexOf(path.join('node_modules', name)) + path.join('node_modules', name).length,
    );
    return require(path.join(folder, 'package.json')).version;
  });

const git = (cwd, ...args) =>
  tryOr('', () => execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim());

/** The commit of a checkout, and whether it has been changed since; empty if the folder is none. */
function commitOf(folder) {
  const commit = git(folder, 'rev-parse', '--short', 'HEAD');
  return commit && commit + (git(folder, 'status', '--porcelain') ? '+changes' : '');
}

function describe() {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    load: os.loadavg()[0],
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    v8: process.versions.v8,
    sablock: tryOr(null, () => require(path.join(root, 'package.json')).version),
    commit: commitOf(root),
    multithreading: version('multithreading'),
    asyncMutex: version('async-mutex'),
    rocicorpLock: version('@rocicorp/lock'),
    asyncRwlock: version('async-rwlock'),
    asyncSema: version('async-sema'),
    date: new Date().toISOString(),
    command: ['npm run bench --', ...process.argv.slice(2)].join(' '),
  };
}

function line(machine) {
  const { cpu, cores, load, system, node, sablock, commit, command } = machine;
  return `${cpu}, ${cores} cores (load ${load.toFixed(1)} at the start), ${system}, Node ${node}, sablock ${sablock ?? '?'} ${commit}\n${command}`;
}

module.exports = { commitOf, describe, line };
