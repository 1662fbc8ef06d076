'use strict';
// Readers that do nothing but read under one lock: what do they lose because they share it? The control is the same threads,
// each with a lock of its own. Beside it: the same threads without any lock, and one mutex for all.

const { WorkerGroup, throughput } = require('../lib/workers');
const { faultOfRwlock } = require('../lib/contenders');
const { KINDS, faultOfPair, newPair, sablock } = require('../lib/rwlocks');
const { JAIN, sum } = require('../lib/stats');

/** The number of readers, and µs. */
const CASES = [1, 2, 4, 8].map((readers) => [readers, 1]).concat([[2, 0]], [[2, 5]]);
const SHORT = [[2, 1]];

const GOALS = [
  { metric: 'rate', versus: 'limit', atLeast: 0.95 },
  { metric: 'rate', versus: 'multithreading', atLeast: 1 },
];

/** `isShared`: there is one lock for all. Returns the rate and, for `run`, the memory of the last lock. */
async function read(contender, kind, isShared, { readers, hold, ms }) {
  const pair = newPair();
  let memory;
  const group = await WorkerGroup.start(readers, 'rw-loop.js', contender?.name ?? null, () => {
    if (!isShared || memory === undefined) memory = KINDS[kind].share(contender);
    return { kind, memory, side: 'read', pair, hold };
  });
  const { wrong, rate, jain, results } = await throughput(group, group.progress, ms);
  const torn = wrong === undefined ? sum(results.map((result) => result.torn)) : 0;
  return { memory, result: { rate, jain, wrong: wrong ?? faultOfPair(pair, torn, 0) } };
}

async function run(contender, params) {
  const { memory, result } = await read(contender, 'rwlock', true, params);
  return { ...result, wrong: result.wrong ?? faultOfRwlock(contender.rwlock.open(memory)) };
}

const control = (kind, isShared) => async (params) => {
  const { result } = await read(kind === 'none' ? null : sablock(), kind, isShared, params);
  return result;
};

module.exports = {
  name: 'readers',
  title: 'Readers of one RwLock',
  kind: 'rwlock',
  threads: true,
  rounds: 7,
  limitIs: 'where each thread has an RwLock of its own',
  metrics: [
    { key: 'rate', label: 'reads/ms', better: 'higher', ratio: true },
    { key: 'jain', label: 'fairness', better: 'higher', digits: 3, note: JAIN },
  ],
  cases({ short }) {
    return (short ? SHORT : CASES).map(([readers, hold]) => ({
      name: `${readers} ${readers === 1 ? 'reader' : 'readers'}, ${hold} µs`,
      params: { readers, hold, ms: short ? 100 : 600 },
      goals: readers === 2 && hold === 1 ? GOALS : undefined,
    }));
  },
  run,
  limits: [
    { name: 'an RwLock for each', run: control('rwlock', false) },
    { name: 'no lock', run: control('none', false) },
    { name: 'one Mutex for all', run: control('mutex', true) },
  ],
};
