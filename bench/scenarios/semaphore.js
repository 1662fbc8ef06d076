'use strict';
// Permits: what one costs that nobody else wants, beside the same verbs of a mutex, and a few that many workers want. There the fair
// semaphore shows what a strict order costs.

const os = require('node:os');
const { timePairs } = require('../lib/clock');
const { byName, faultOf, has } = require('../lib/contenders');
const { sablock } = require('../lib/rwlocks');
const { JAIN } = require('../lib/stats');
const contended = require('./contended');

const PERMITS = 4;
const MUTEX = 'a Mutex';
const ONE_PERMIT = 'a Semaphore of one permit';
const ALONE = 'one thread alone';

// As the loops of `uncontended`.
const PAIRS = {
  'tryAcquire+release': {
    needs: ['tryAcquire'],
    loop(semaphore, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const permits = semaphore.tryAcquire();
        if (permits !== null) {
          held++;
          permits.release();
        }
      }
      return held;
    },
    mutexLoop(mutex, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const guard = mutex.tryAcquire();
        if (guard !== null) {
          held++;
          guard.unlock();
        }
      }
      return held;
    },
  },
  'acquire+release': {
    needs: ['acquire'],
    loop(semaphore, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const permits = semaphore.acquire();
        held++;
        permits.release();
      }
      return held;
    },
    mutexLoop(mutex, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const guard = mutex.acquire();
        held++;
        guard.unlock();
      }
      return held;
    },
  },
  'await acquireAsync+release': {
    needs: ['acquireAsync'],
    async loop(semaphore, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const permits = await semaphore.acquireAsync();
        held++;
        permits.release();
      }
      return held;
    },
    async mutexLoop(mutex, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const guard = await mutex.acquireAsync();
        held++;
        guard.unlock();
      }
      return held;
    },
  },
};

/** Returns the fault, as text, if not exactly these permits are free. */
function faultOfPermits(semaphore) {
  const all = Array.from({ length: PERMITS }, () => semaphore.tryAcquire());
  const more = semaphore.tryAcquire();
  if (all.includes(null)) return 'a permit is missing after all have gone back';
  for (const permits of all) permits.release();
  return more === null ? undefined : `there were more than ${PERMITS} permits`;
}

async function run(contender, { pair, ms, ...params }) {
  if (pair === undefined) {
    return contender.oneThread ? null : contended.run(contender, { ...params, ms, kind: 'semaphore' });
  }
  const semaphore = contender.semaphore.open(contender.semaphore.share(PERMITS), PERMITS);
  const { needs, loop } = PAIRS[pair];
  if (!has(semaphore, ...needs)) return null;
  const { ns, wrong } = await timePairs((n) => loop(semaphore, n), ms);
  return { ns, wrong: wrong ?? faultOfPermits(semaphore) };
}

async function mutex({ pair, ms, ...params }) {
  const contender = sablock();
  if (pair === undefined) return contended.run(contender, { ...params, ms });
  const lock = contender.open(contender.share(1), 0);
  const { ns, wrong } = await timePairs((n) => PAIRS[pair].mutexLoop(lock, n), ms);
  return { ns, wrong: wrong ?? faultOf(lock) };
}

const onlyContended = (measure) => (params) => (params.pair === undefined ? measure(params) : null);

module.exports = {
  PAIRS,
  name: 'semaphore',
  title: 'Semaphore',
  kind: 'semaphore',
  rounds: 9,
  limitIs: 'a mutex of this package in the same place',
  metrics: [
    { key: 'ns', label: 'ns', better: 'lower', ratio: true },
    { key: 'rate', label: 'holds/ms', better: 'higher', ratio: true },
    { key: 'jain', label: 'fairness', better: 'higher', digits: 3, note: JAIN },
    { key: 'longest', label: 'longest wait ms', better: 'lower', digits: 2, over: 'max', chart: 'log' },
  ],
  cases: ({ short }) => [
    ...Object.keys(PAIRS).map((pair) => ({
      name: pair,
      params: { pair, ms: short ? 5 : 50 },
      goals: [
        ...(pair === 'tryAcquire+release' ? [{ metric: 'ns', versus: 'limit', atMost: 1.3 }] : []),
        { metric: 'ns', versus: 'multithreading', atMost: 1 },
      ],
    })),
    ...(short ? [1] : [1, 20]).map((hold) => ({
      name: `one permit, 4 workers, ${hold} µs`,
      params: { workers: 4, hold, ms: short ? 100 : 800 },
      goals: [
        { metric: 'rate', versus: 'limit', atLeast: 0.8 },
        { metric: 'rate', versus: 'plain', atLeast: 1 },
        { metric: 'jain', atLeast: 0.95 },
      ],
    })),
    {
      name: 'two permits, 4 workers, 1 µs',
      params: { workers: 4, hold: 1, permits: 2, ms: short ? 100 : 800 },
      goals: [
        { metric: 'rate', versus: 'limit', atLeast: 0.8 },
        { metric: 'rate', versus: ONE_PERMIT, atLeast: 1 },
        { metric: 'jain', atLeast: 0.95 },
      ],
    },
    ...(short
      ? []
      : [
          {
            name: '4 permits, 16 workers, 20 µs',
            params: { workers: 16, hold: 20, permits: 4, ms: 2000 },
            goals: [
              { metric: 'rate', versus: ALONE, atLeast: 0.9 * Math.min(4, os.availableParallelism()) },
              { metric: 'longest', versus: MUTEX, atMost: 1 },
              { metric: 'jain', atLeast: 0.95 },
            ],
          },
        ]),
  ],
  run,
  limits: [
    { name: MUTEX, run: mutex },
    {
      name: ONE_PERMIT,
      run: (params) =>
        params.permits === 2 ? contended.run(sablock(), { ...params, permits: 1, kind: 'semaphore' }) : null,
    },
    {
      name: 'a fair Semaphore',
      run: onlyContended((params) => contended.run(sablock(), { ...params, kind: 'fairSemaphore' })),
    },
    { name: 'a plain mutex', run: onlyContended((params) => contended.run(byName('plain'), params)) },
    { name: ALONE, run: onlyContended(contended.alone) },
  ],
};
