'use strict';
// Many threads over few or many locks: 32 workers, each taking a random one of them at a time. Shows what the buckets of
// the wait table cost where waiters of different locks meet. The limit is one thread alone with two compare-exchanges.

const { WorkerGroup, throughput } = require('../lib/workers');
const { threadNs } = require('../lib/clock');
const { JAIN } = require('../lib/stats');

async function run(contender, { threads, count, ms }) {
  const memory = contender.share(count);
  const data = new Int32Array(new SharedArrayBuffer(4 * count));
  const group = await WorkerGroup.start(threads, 'many-locks.js', contender.name, () => ({ memory, data, count }));
  const { wrong, rate, jain } = await throughput(group, data, ms);
  return wrong ? { wrong } : { rate, jain };
}

function alone({ count, ms }) {
  const words = new Int32Array(new SharedArrayBuffer(4 * count));
  const data = new Int32Array(new SharedArrayBuffer(4 * count));
  const start = threadNs();
  let holds = 0;
  while (threadNs() - start < ms * 1e6) {
    for (let i = 0; i < 100; i++, holds++) {
      const k = holds % count;
      Atomics.compareExchange(words, k, 0, 1);
      data[k]++;
      Atomics.compareExchange(words, k, 1, 0);
    }
  }
  return { rate: (holds / (threadNs() - start)) * 1e6 };
}

module.exports = {
  name: 'many-locks',
  title: 'Many locks, many threads',
  threads: true,
  metrics: [
    { key: 'rate', label: 'holds/ms', better: 'higher', ratio: true },
    { key: 'jain', label: 'fairness', better: 'higher', digits: 3, note: JAIN },
  ],
  cases({ short }) {
    const threads = short ? 8 : 32;
    return (short ? [2, 64] : [2, 64, 1000]).map((count) => ({
      name: `${threads} threads, ${count} locks`,
      params: { threads, count, ms: short ? 100 : 500 },
    }));
  },
  run,
  limits: [{ name: 'one thread alone', run: alone }],
};
