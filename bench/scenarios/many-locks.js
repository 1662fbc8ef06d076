'use strict';
// Many threads over few or many locks: 32 workers, each taking a random one of them at a time. Shows what the lot's
// buckets cost where waiters of different locks meet. The limit is one thread alone with two compare-exchanges.

const { Crew } = require('../lib/crew');
const { sleep, threadNs } = require('../lib/clock');
const { jain, max, sum } = require('../lib/stats');

async function run(contender, { threads, count, ms }) {
  const memory = contender.share(count);
  const data = new Int32Array(new SharedArrayBuffer(4 * count));
  const crew = await Crew.start(threads, 'many-locks.js', contender.name, () => ({ memory, data, count }));
  crew.go();
  await sleep(ms);
  crew.stop();
  const results = await crew.results();
  await crew.end();
  const holds = results.map((result) => result.holds);
  if (sum([...data]) !== sum(holds))
    return { wrong: `${sum(holds)} holds counted ${sum([...data])}: two threads were inside at once` };
  const ns = max(results.map((result) => result.end)) - Math.min(...results.map((result) => result.start));
  return { rate: (sum(holds) / ns) * 1e6, jain: jain(holds) };
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
    { key: 'jain', label: 'Jain', better: 'higher', digits: 3 },
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
