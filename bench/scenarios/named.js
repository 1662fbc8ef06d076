'use strict';
// Locks that have names, in one thread: what a request costs that need not wait, with one name and round and round with many,
// what those cost that wait in one line, and the memory of names that are held. The result is checked: each callback counts.

const { setTimeout: sleep } = require('node:timers/promises');
const { threadNs } = require('../lib/clock');
const workerThreads = require('node:worker_threads');

/** `request(name, callback)` of each. */
const FACES = {
  sablock: (root) => {
    const { locks } = require(root);
    return (name, callback) => locks.request(name, callback);
  },
  'worker_threads.locks': () => {
    const { locks } = workerThreads;
    return locks === undefined ? null : (name, callback) => locks.request(name, callback);
  },
  'async-lock': () => {
    const AsyncLock = require('async-lock');
    const lock = new AsyncLock({ maxPending: Infinity });
    return (name, callback) => lock.acquire(name, callback);
  },
};

const nameOf = (index) => `name ${index}`;

/** One request after the other, of `names` names. */
async function oneByOne(request, { count, names }) {
  let calls = 0;
  const callback = () => {
    calls += 1;
  };
  const all = Array.from({ length: names }, (_, index) => nameOf(index));
  const start = threadNs();
  for (let i = 0; i < count; i++) await request(all[i % names], callback);
  const each = (threadNs() - start) / count;
  return calls === count ? { each } : { wrong: `${calls} callbacks of ${count}` };
}

/** All at once, for `names` names: the first of each goes in, the others wait. */
async function atOnce(request, { count, names }) {
  const served = [];
  const start = threadNs();
  const requests = Array.from({ length: count }, (_, index) =>
    request(nameOf(index % names), () => served.push(index)),
  );
  const asked = threadNs();
  await Promise.all(requests);
  const each = (threadNs() - start) / count;
  const lines = Array(names).fill(-1);
  const isInOrder = served.every((index) => {
    const isNext = lines[index % names] < index;
    lines[index % names] = index;
    return isNext;
  });
  const wrong =
    served.length === count && isInOrder ? undefined : `${served.length} of ${count}, in order: ${isInOrder}`;
  return { enqueue: (asked - start) / count, each, wrong };
}

async function collectedRss() {
  globalThis.gc();
  await sleep(20);
  globalThis.gc();
  return process.memoryUsage().rss;
}

/**
 * Measures what each name that is held keeps in memory, with the promise and the lock of whoever holds it. Wants a fresh
 * process.
 */
async function held(acquire, { count }) {
  (await acquire(nameOf(-1))).unlock();
  const locks = Array(count).fill(null);
  const before = await collectedRss();
  for (let index = 0; index < count; index++) locks[index] = acquire(nameOf(index));
  const bytes = ((await collectedRss()) - before) / count;
  let unlocked = 0;
  for (const lock of locks) unlocked += (await lock).unlock() ? 1 : 0;
  return { bytes, wrong: unlocked === count ? undefined : `${unlocked} of ${count} were held` };
}

/** The same for names whose callbacks are not done: with their promises and closures too. */
async function inside(request, { count }) {
  const ends = Array(count).fill(null);
  let calls = 0;
  const callback = () => new Promise((resolve) => (ends[calls++] = resolve));
  await request(nameOf(-1), () => {});
  const before = await collectedRss();
  const requests = Array.from({ length: count }, (_, index) => request(nameOf(index), callback));
  const bytes = ((await collectedRss()) - before) / count;
  const wrong = calls === count ? undefined : `${calls} of ${count} are held`;
  for (const end of ends) end?.();
  await Promise.all(requests);
  return { bytes, wrong };
}

const WAYS = { oneByOne, atOnce, inside };

/** V8 grows its young generation in steps of megabytes. */
const SMALL_YOUNG_GENERATION = ['--max-semi-space-size=1'];

function measure(name, { way, ...params }, root) {
  // The others have no such verb.
  if (way === 'held') return name === 'sablock' ? held((one) => require(root).locks.acquireAsync(one), params) : null;
  const request = FACES[name](root);
  return request === null ? null : WAYS[way](request, params);
}

module.exports = {
  name: 'named',
  title: 'Locks that have names, for each request',
  rounds: 5,
  metrics: [
    { key: 'each', label: 'ns', better: 'lower', ratio: true, digits: 0 },
    { key: 'enqueue', label: 'of them enqueue', better: 'lower', digits: 0 },
    { key: 'bytes', label: 'bytes', better: 'lower', ratio: true, digits: 0 },
  ],
  cases({ short }) {
    const count = short ? 2000 : 100_000;
    return [
      {
        name: 'one by one, one name',
        params: { way: 'oneByOne', count, names: 1 },
        goals: [{ metric: 'each', versus: 'worker_threads.locks', atMost: 0.25 }],
      },
      {
        name: 'one by one, 1000 names',
        params: { way: 'oneByOne', count, names: 1000 },
        // At least 0.6 of its callbacks in a second.
        goals: [{ metric: 'each', versus: 'async-lock', atMost: 1.67 }],
      },
      { name: 'at once, a name each', params: { way: 'atOnce', count, names: count } },
      // The others take time in proportion to the square of those that wait for one name.
      { name: 'at once, 100 for each name', params: { way: 'atOnce', count, names: count / 100 } },
      {
        name: 'held, by acquireAsync()',
        params: { way: 'held', count },
        fresh: true,
        nodeFlags: SMALL_YOUNG_GENERATION,
        goals: [{ metric: 'bytes', atMost: 700 }],
      },
      {
        name: 'held, by request()',
        params: { way: 'inside', count },
        fresh: true,
        nodeFlags: SMALL_YOUNG_GENERATION,
      },
    ];
  },
  run: (contender, params) => (contender.name === 'sablock' ? measure('sablock', params, contender.root) : null),
  limits: ['worker_threads.locks', 'async-lock'].map((name) => ({ name, run: (params) => measure(name, params) })),
};
