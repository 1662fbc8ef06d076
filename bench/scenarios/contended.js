'use strict';
// Contended throughput: workers that do nothing but take one lock. The limit is one thread that does all the holds
// alone, without a lock but with two compare-exchanges: no lock can let two threads hold at once.

const { WorkerGroup, throughput } = require('../lib/workers');
const { busyFor, threadNs } = require('../lib/clock');
const { JAIN, max } = require('../lib/stats');

/** Measures a mutex, or permits: `kind` is the contender's word for its semaphore. */
async function run(contender, { workers, hold, ms, kind, permits = 1 }) {
  const memory = kind === undefined ? contender.share(1) : contender[kind].share(permits);
  const data = new Int32Array(new SharedArrayBuffer(64));
  const shared = { kind, permits, memory, data, hold };
  const group = await WorkerGroup.start(workers, 'hold-loop.js', contender.name, () => shared);
  const { wrong, rate, jain, holds, results } = await throughput(group, data, ms);
  if (wrong) return { wrong };
  const longestWaits = results.map((result) => result.longestWait / 1e6);
  return { rate, jain, longest: max(longestWaits), details: { holds, longestWaits } };
}

function alone({ hold, ms }) {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const data = new Int32Array(new SharedArrayBuffer(4));
  const busy = busyFor(hold);
  const start = threadNs();
  let now = start;
  while (now - start < ms * 1e6) {
    Atomics.compareExchange(word, 0, 0, 1);
    const seen = data[0];
    busy();
    data[0] = seen + 1;
    Atomics.compareExchange(word, 0, 1, 0);
    now = threadNs();
  }
  return { rate: (data[0] / (now - start)) * 1e6 };
}

module.exports = {
  alone,
  name: 'contended',
  title: 'Contended throughput and fairness',
  threads: true,
  metrics: [
    { key: 'rate', label: 'holds/ms', better: 'higher', ratio: true },
    { key: 'jain', label: 'fairness', better: 'higher', digits: 3, note: JAIN },
    { key: 'longest', label: 'longest wait ms', better: 'lower', digits: 2, over: 'max', chart: 'log' },
  ],
  cases({ short }) {
    const cases = [];
    for (const workers of short ? [4] : [2, 4, 8, 16]) {
      for (const hold of short ? [0, 20] : [0, 1, 20]) {
        cases.push({
          name: `${workers} workers, ${hold} µs`,
          params: { workers, hold, ms: short ? 100 : 800 },
          goals: [
            { metric: 'rate', versus: 'plain', atLeast: 1 },
            { metric: 'jain', atLeast: 0.95 },
          ],
        });
      }
    }
    return cases;
  },
  run,
  limits: [{ name: 'one thread alone', run: alone }],
};
