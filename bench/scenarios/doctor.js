'use strict';
// What the lock doctor costs a lock that nobody else wants: nanoseconds for each pair, beside the same pair without it. One lock,
// and one inside another, whose order is known after the first time.

const path = require('node:path');
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

async function run(contender, { loop, options, isStopped, ms }) {
  const doctorModule = contender.name === 'sablock' ? loadDoctor() : null;
  if (doctorModule === null) return null;
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
  await sablock.load();
  return time(LOOPS[loop], openTwo(), ms);
}

const CASES = [
  { name: 'contention alone', loop: 'lock', options: CONTENTION, atMost: 3 },
  { name: 'contention alone, await', loop: 'await', options: CONTENTION, atMost: 3 },
  { name: 'lock order', loop: 'lock', options: ORDER, atMost: 10 },
  { name: 'lock order, one inside another', loop: 'inside', options: ORDER, atMost: 10 },
  { name: 'lock order, await', loop: 'await', options: ORDER, atMost: 10 },
  { name: 'all, one inside another', loop: 'inside', options: {} },
  { name: 'after stop()', loop: 'lock', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'after stop(), await', loop: 'await', options: {}, isStopped: true, atMost: 1.05 },
];

module.exports = {
  name: 'doctor',
  title: 'The lock doctor, uncontended',
  rounds: 7,
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true }],
  cases: ({ short }) =>
    CASES.map(({ name, atMost, ...params }) => ({
      name,
      // What one case leaves behind must not be measured in the next.
      fresh: true,
      params: { ...params, ms: short ? 5 : 50 },
      goals: atMost && [{ metric: 'ns', versus: 'limit', atMost }],
    })),
  run,
  limits: [{ name: 'without the doctor', run: without }],
};
