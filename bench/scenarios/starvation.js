'use strict';
// Does the main thread get its turn? It asks for the lock every 3 ms, while workers do nothing but take it.
// The limit: under the same load in the same run, the same workers spin through the same holds without a lock, and
// the first to end one after main asks wakes main's loop. What that takes, no lock can beat.

const { WorkerGroup, miscount } = require('../lib/workers');
const { AtomicsWaiter, ThreadsafeFunctionWaiter } = require('../lib/wakeups');
const { askBeside, bareWakes } = require('../lib/asks');
const { has } = require('../lib/contenders');
const { sum } = require('../lib/stats');

async function run(contender, { workers, hold, ms }) {
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  if (!has(lock, 'lockAsync', 'unlock')) return null;
  const data = new Int32Array(new SharedArrayBuffer(64));
  const group = await WorkerGroup.start(workers, 'hold-loop.js', contender.name, () => ({ memory, data, hold }));
  const { samples, rate, results } = await askBeside(group, lock, { ms }, () => {
    data[0]++;
  });
  const holds = sum(results.map((result) => result.holds)) + samples.length;
  const wrong = miscount(holds, data);
  if (wrong) return { wrong };
  return { samples, rate, mains: samples.length };
}

async function bareWake(Waiter, params) {
  const samples = await bareWakes(Waiter, params);
  return { samples, mains: samples.length };
}

module.exports = {
  name: 'starvation',
  title: 'Starvation: main asks every 3 ms while workers loop',
  threads: true,
  /** Some of its limits are of bench/native. */
  native: true,
  rounds: 3,
  metrics: [
    { key: 'worst', label: 'worst ms', better: 'lower', ratio: true, percentile: 100, chart: 'log' },
    { key: 'p99', label: 'p99 ms', better: 'lower', ratio: true, percentile: 99 },
    { key: 'p50', label: 'median ms', better: 'lower', percentile: 50 },
    { key: 'rate', label: "workers' holds/ms", better: 'higher' },
    { key: 'mains', label: "main's holds", better: 'higher', digits: 0 },
  ],
  cases({ short }) {
    const cases = [];
    for (const workers of short ? [2] : [1, 2, 4]) {
      for (const hold of short ? [20] : [5, 20]) {
        cases.push({
          name: `${workers} ${workers === 1 ? 'worker' : 'workers'}, ${hold} µs`,
          params: { workers, hold, ms: short ? 200 : 2000 },
          goals: [
            { metric: 'worst', versus: 'limit', atMost: 3 },
            { metric: 'p99', versus: 'limit', atMost: 3 },
          ],
        });
      }
    }
    return cases;
  },
  run,
  limits: [
    { name: 'bare threadsafe function', run: (params) => bareWake(ThreadsafeFunctionWaiter, params) },
    { name: 'bare Atomics.waitAsync', run: (params) => bareWake(AtomicsWaiter, params) },
  ],
};
