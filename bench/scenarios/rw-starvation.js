'use strict';
// Main asks every 3 ms to write beside two workers that do nothing but read, or to read beside two that do nothing but write:
// when does it get its turn? The limits are those of `starvation`; beside them a mutex of this package in the same place.

const { WorkerGroup } = require('../lib/workers');
const { AtomicsWaiter, ThreadsafeFunctionWaiter } = require('../lib/wakeups');
const { askBeside, bareWakes } = require('../lib/asks');
const { busyFor } = require('../lib/clock');
const { INSIDE, KINDS, faultOfPair, newPair, sablock } = require('../lib/rwlocks');
const { sum } = require('../lib/stats');

const WORKERS = 2;
const HOLD_µS = 5;
const OTHER = { read: 'write', write: 'read' };

/** The percentiles of this round. Goals are about their median over the rounds, so they are not of all rounds together. */
function percentiles(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.ceil(share * sorted.length) - 1] / 1e6;
  return { samples, worst: at(1), p99: at(0.99), p50: at(0.5), asks: samples.length };
}

async function ask(contender, kind, { side, ms, times }) {
  const memory = KINDS[kind].share(contender);
  const lock = KINDS[kind].open(contender, memory)[side];
  const busy = busyFor(HOLD_µS);
  const pair = newPair();
  const data = { kind, memory, side: OTHER[side], pair, hold: HOLD_µS };
  const group = await WorkerGroup.start(WORKERS, 'rw-loop.js', contender.name, () => data);
  let torn = 0;
  const { samples, rate, results } = await askBeside(group, lock, { ms, times }, () => {
    if (!INSIDE[side](pair, busy)) torn++;
  });
  const writes = side === 'write' ? samples.length : sum(results.map(({ holds }) => holds));
  const wrong = faultOfPair(pair, torn + sum(results.map((result) => result.torn)), writes);
  return wrong ? { wrong } : { ...percentiles(samples), rate };
}

const bareWake = async (Waiter, params) =>
  percentiles(await bareWakes(Waiter, { ...params, workers: WORKERS, hold: HOLD_µS }));

module.exports = {
  name: 'rw-starvation',
  title: 'RwLock: main asks every 3 ms while two workers loop over the other side',
  kind: 'rwlock',
  threads: true,
  /** Some of its limits are of bench/native. */
  native: true,
  rounds: 5,
  metrics: [
    { key: 'worst', label: 'worst ms', better: 'lower', ratio: true, chart: 'log' },
    { key: 'p99', label: 'p99 ms', better: 'lower', ratio: true },
    { key: 'p50', label: 'median ms', better: 'lower' },
    { key: 'rate', label: "workers' holds/ms", better: 'higher' },
    { key: 'asks', label: 'asks', better: 'higher', digits: 0 },
  ],
  cases: ({ short }) =>
    ['write', 'read'].map((side) => ({
      name: side === 'write' ? 'a writer beside 2 readers, 5 µs' : 'a reader beside 2 writers, 5 µs',
      params: { side, ms: short ? 200 : 8000, times: short ? 50 : 1000 },
      goals: [
        { metric: 'worst', versus: 'limit', atMost: 3 },
        side === 'write'
          ? { metric: 'p99', versus: 'limit', atMost: 3 }
          : { metric: 'p99', versus: 'a Mutex', atMost: 1 },
        { metric: 'worst', versus: 'multithreading', atMost: 1 },
      ],
    })),
  run: (contender, params) => ask(contender, 'rwlock', params),
  limits: [
    { name: 'bare threadsafe function', run: (params) => bareWake(ThreadsafeFunctionWaiter, params) },
    { name: 'bare Atomics.waitAsync', run: (params) => bareWake(AtomicsWaiter, params) },
    { name: 'a Mutex', run: (params) => ask(sablock(), 'mutex', params) },
  ],
};
