'use strict';
// The waiting primitives beside the built-in ones: from just before notify() in one thread to the end of the wait in
// another that is asleep by then, and very many pending waitAsync of one thread.

const { sleep, threadNs } = require('../lib/clock');
const { WAYS, futexWakes, loopWakes, newWord, notifications } = require('../lib/relay');
const { ThreadsafeFunctionWaiter, waitingFunctions } = require('../lib/wakeups');

/** All wait for one element, and are notified together. */
async function pending(name, { count }) {
  const { notify, waitAsync } = waitingFunctions(name);
  const word = newWord();
  const alive = setInterval(() => {}, 1e6); // a pending Atomics.waitAsync keeps nothing alive
  const ends = [];
  const waits = new Array(count);
  const start = threadNs();
  for (let i = 0; i < count; i++) waits[i] = waitAsync(word, 0, 0).value.then(() => ends.push(i));
  const enqueued = threadNs();
  await sleep(0);
  const notified = threadNs();
  const woken = notify(word, 0);
  await Promise.all(waits);
  const end = (threadNs() - notified) / count;
  clearInterval(alive);
  const isInOrder = ends.every((wait, place) => wait === place);
  const wrong = woken === count && isInOrder ? undefined : `${woken} of ${count} notified, in order: ${isInOrder}`;
  return { enqueue: (enqueued - start) / count, end, wrong };
}

const measure = (name, params) => (params.way ? notifications(name, params) : pending(name, params));

module.exports = {
  name: 'futex',
  title: 'wait, waitAsync and notify, beside the built-in ones',
  threads: true,
  /** Some of its limits are of bench/native. */
  native: true,
  rounds: 5,
  metrics: [
    { key: 'p50', label: 'median µs', better: 'lower', ratio: true, percentile: 50, nanos: 1000 },
    { key: 'p99', label: 'p99 µs', better: 'lower', percentile: 99, nanos: 1000 },
    { key: 'enqueue', label: 'enqueue ns', better: 'lower', ratio: true, digits: 0 },
    { key: 'end', label: 'end ns', better: 'lower', ratio: true, digits: 0 },
  ],
  cases: ({ short }) => [
    ...Object.keys(WAYS).map((way) => ({ name: `wake, ${way}`, params: { way, count: short ? 100 : 1000 } })),
    ...(short ? [2000] : [10_000, 100_000]).map((count) => ({
      name: `${count.toLocaleString('en')} pending`,
      params: { count },
      family: 'pending',
    })),
  ],
  run: (contender, params) => (contender.name === 'sablock' ? measure('sablock', params) : null),
  limits: [
    { name: 'Atomics (built in)', run: (params) => measure('Atomics', params) },
    { name: 'bare futex', run: (params) => (params.way ? futexWakes(params) : null) },
    { name: 'bare threadsafe function', run: (params) => loopWakes(ThreadsafeFunctionWaiter, params) },
  ],
};
