'use strict';
// What the lock doctor costs a lock that nobody else wants: nanoseconds for each pair, beside the same pair without it. One lock,
// and one inside another, whose order is known after the first time; promises without a lock. And whether its figures are right: the
// delay that it reports, beside a clock of the waiters' own, and what it keeps of names that are not used any more.

const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { threadNs } = require('../lib/clock');
const sablock = require('../contenders/sablock');

const SAMPLES = 15;

const LOOPS = {
  lock([lock], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      if (lock.lock()) held++;
      lock.unlock();
    }
    return held;
  },
  inside([outer, inner], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      outer.lock();
      if (inner.lock()) held++;
      inner.unlock();
      outer.unlock();
    }
    return held;
  },
  async await([lock], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      if (await lock.lockAsync()) held++;
      lock.unlock();
    }
    return held;
  },
  async promises(_, n) {
    let done = 0;
    const step = async () => {
      done++;
    };
    for (let i = 0; i < n; i++) await Promise.resolve().then(step);
    return done;
  },
};

/** The time of one turn: the best of some samples that each last long enough to be measured, as noise only adds. */
async function time(loop, locks, ms) {
  let n = 16;
  let missed = 0;
  for (const warm = threadNs(); threadNs() - warm < ms * 1e6; ) {
    const start = threadNs();
    missed += n - (await loop(locks, n));
    if (threadNs() - start < ms * 1e5) n *= 2;
  }
  const samples = [];
  for (let i = 0; i < SAMPLES; i++) {
    const start = threadNs();
    missed += n - (await loop(locks, n));
    samples.push((threadNs() - start) / n);
  }
  return { ns: Math.min(...samples), wrong: missed ? `${missed} of the holds did not happen` : undefined };
}

const openTwo = () => {
  const memory = sablock.share(2);
  return [0, 1].map((index) => sablock.open(memory, index));
};

function loadDoctor() {
  try {
    return require(path.join(sablock.root, 'lib', 'doctor'));
  } catch (error) {
    // Another build may have none.
    if (error.code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

const CONTENTION = { lockOrder: false, deadlocks: false };
const ORDER = { contention: false, deadlocks: false };
const NO_PLACES = { ...ORDER, places: false };

/** How much of the delay of three tasks behind one lock the doctor reports: the sum of waits of a millisecond and more is 1. */
async function delay({ start }, { ms }) {
  const [lock] = openTwo();
  let doctor = start(CONTENTION);
  let waitedMs = 0;
  const task = async (turns) => {
    for (let i = 0; i < turns; i++) {
      const begin = performance.now();
      await lock.lockAsync();
      const waited = performance.now() - begin;
      if (waited >= 1) waitedMs += waited;
      await sleep(5);
      lock.unlock();
    }
  };
  const run = (turns) => Promise.all([task(turns), task(turns), task(turns)]);
  // The first call of all loads code, and is slow without a wait.
  await run(1);
  doctor.stop();
  doctor = start(CONTENTION);
  waitedMs = 0;
  await run(Math.ceil(ms / 5));
  const { contention } = doctor.report();
  doctor.stop();
  const wrong =
    contention.length === 1 ? undefined : `it reported ${contention.length} locks that were waited for, not 1`;
  return { delay: contention[0]?.totalMs / waitedMs, wrong };
}

/** What is kept of a name that was used once, in bytes. Wants a fresh process with a small young generation. */
async function names({ start }, { count }) {
  const { locks } = sablock.toolkit();
  const doctor = start({});
  let used = 0;
  const useMore = async (until) => {
    while (used < until) await locks.request(`name ${used++}`, () => {});
    globalThis.gc();
    await sleep(0);
    globalThis.gc();
    return process.memoryUsage().rss;
  };
  // The first ones grow what the others use again.
  const before = await useMore(count / 9);
  const after = await useMore(count + used);
  doctor.stop();
  return { bytes: (after - before) / count };
}

const OTHERS = { delay, names };

async function run(contender, { loop, options, isStopped, ms, count }) {
  const doctorModule = contender.name === 'sablock' ? loadDoctor() : null;
  if (doctorModule === null) return null;
  if (OTHERS[loop]) return OTHERS[loop](doctorModule, { ms, count });
  const locks = openTwo();
  const doctor = doctorModule.start(options);
  if (isStopped) {
    await time(LOOPS[loop], locks, ms);
    doctor.stop();
  }
  const { ns, wrong } = await time(LOOPS[loop], locks, ms);
  const { lockOrder } = doctor.report();
  doctor.stop();
  return { ns, wrong: wrong ?? (lockOrder.length > 0 ? 'it reported an order that there is not' : undefined) };
}

/** The same code without the doctor. */
async function without({ loop, ms }) {
  if (OTHERS[loop]) return null;
  await sablock.load();
  return time(LOOPS[loop], openTwo(), ms);
}

const CASES = [
  { name: 'contention alone', loop: 'lock', options: CONTENTION, atMost: 3 },
  { name: 'contention alone, await', loop: 'await', options: CONTENTION, atMost: 3 },
  { name: 'lock order, without places', loop: 'lock', options: NO_PLACES, atMost: 10 },
  { name: 'lock order, without places, one inside another', loop: 'inside', options: NO_PLACES, atMost: 10 },
  { name: 'lock order, without places, await', loop: 'await', options: NO_PLACES, atMost: 10 },
  // To capture a stack takes V8 as long as a hundred pairs.
  { name: 'lock order, with places', loop: 'lock', options: ORDER, moreNs: 3000 },
  { name: 'lock order, with places, one inside another', loop: 'inside', options: ORDER, moreNs: 6000 },
  { name: 'all, one inside another', loop: 'inside', options: {} },
  { name: 'all, without places', loop: 'lock', options: { places: false } },
  { name: 'all, without places, await', loop: 'await', options: { places: false } },
  { name: 'all, with places', loop: 'lock', options: {}, moreNs: 3000 },
  { name: 'all, with places, await', loop: 'await', options: {}, moreNs: 3000 },
  { name: 'promises without a lock', loop: 'promises', options: {}, atMost: 1.05 },
  { name: 'promises without a lock, after stop()', loop: 'promises', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'after stop()', loop: 'lock', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'after stop(), await', loop: 'await', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'delay of a lock, of the waits of 1 ms and more', loop: 'delay' },
  { name: 'names used once', loop: 'names' },
];

/** V8 grows its young generation in steps of megabytes; kept small, the resident memory tells what is retained. */
const NODE_FLAGS = { names: ['--max-semi-space-size=1'] };

/** What the figures of a case should be. */
function goalsOf({ loop, atMost, moreNs }) {
  if (loop === 'names') return [{ metric: 'bytes', atMost: 100 }];
  if (loop === 'delay') {
    return [
      { metric: 'delay', atLeast: 0.95 },
      { metric: 'delay', atMost: 1.05 },
    ];
  }
  if (moreNs) return [{ metric: 'ns', versus: 'beside', atMost: moreNs }];
  return atMost && [{ metric: 'ns', versus: 'limit', atMost }];
}

module.exports = {
  name: 'doctor',
  title: 'The lock doctor',
  rounds: 7,
  metrics: [
    { key: 'ns', label: 'ns', better: 'lower', ratio: true },
    { key: 'delay', label: 'delay reported', digits: 3 },
    { key: 'bytes', label: 'bytes/name', better: 'lower' },
  ],
  cases: ({ short }) =>
    CASES.map(({ name, atMost, moreNs, ...params }) => ({
      name,
      // What one case leaves behind must not be measured in the next.
      fresh: true,
      nodeFlags: NODE_FLAGS[params.loop] ?? [],
      params: { ...params, ms: short ? 5 : 50, count: short ? 900 : 90_000 },
      goals: goalsOf({ ...params, atMost, moreNs }),
    })),
  run,
  limits: [{ name: 'without the doctor', run: without }],
};
