'use strict';
// The cost of having the package: loading it in a fresh process, and starting a worker that loads it. The limit
// is the same with an empty module; the difference to it is the package's. Threads started by loading are counted.

const fs = require('node:fs');
const path = require('node:path');
const { threadNs } = require('../lib/clock');
const { loadEntry } = require('../lib/contenders');

const EMPTY = { require: path.join(__dirname, '..', 'programs', 'empty.js') };
/** A program that needs locks has it loaded, before or after. */
const WORKER_THREADS = { require: 'node:worker_threads' };

/** The threads of this process, or NaN where /proc does not tell. */
function threads() {
  try {
    return fs.readdirSync('/proc/self/task').length;
  } catch {
    return NaN;
  }
}

async function here(entry) {
  const before = threads();
  const start = threadNs();
  await loadEntry(entry);
  return { ms: (threadNs() - start) / 1e6, threads: threads() - before };
}

async function inWorker(entry, first) {
  const { Worker } = require('node:worker_threads'); // here, or `here` would find it loaded already
  if (first) await loadEntry(entry);
  const start = threadNs();
  const worker = new Worker(path.join(__dirname, '..', 'programs', 'load-entry.js'), { workerData: { entry } });
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  const ms = (threadNs() - start) / 1e6;
  await worker.terminate();
  return { ms };
}

const WAYS = {
  'in a fresh process': here,
  'in a worker, first in the process': (entry) => inWorker(entry, false),
  'in a worker, loaded in main before': (entry) => inWorker(entry, true),
};

async function run(contender, { way }) {
  if (!contender.entry) return null;
  try {
    return await WAYS[way](contender.entry);
  } catch (error) {
    if (contender.name === 'sablock') throw error;
    return null;
  }
}

module.exports = {
  name: 'load',
  title: 'Loading',
  /** The packages are not to be there before the measurement. */
  loads: false,
  /** Ours is loaded as users have it. */
  packed: true,
  rounds: 15,
  metrics: [
    { key: 'ms', label: 'ms', better: 'lower', ratio: true, minus: true, digits: 2 },
    { key: 'threads', label: 'threads started', better: 'lower', digits: 0 },
  ],
  cases: ({ short }) =>
    Object.keys(WAYS)
      .slice(0, short ? 2 : 3)
      .map((way) => ({
        name: way,
        params: { way },
        fresh: true,
        goals: [
          ...(way === 'in a fresh process'
            ? [
                { metric: 'ms', versus: 'beside', atMost: 3 },
                { metric: 'threads', atMost: 0 },
              ]
            : []),
          { metric: 'ms', beside: 'node:worker_threads', atMost: 2.5 },
        ],
      })),
  run,
  limits: [
    { name: 'an empty module', run: ({ way }) => WAYS[way](EMPTY) },
    { name: 'node:worker_threads', run: ({ way }) => WAYS[way](WORKER_THREADS) },
  ],
};
