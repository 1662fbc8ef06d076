'use strict';
// Several locks that nobody else wants, taken together and freed: nanoseconds for all of them. The control takes and frees as
// many mutexes one after the other.

const { timePairs } = require('../lib/clock');
const { faultOf } = require('../lib/contenders');
const { sablock } = require('../lib/rwlocks');

const OPTIONS = { allowMainThread: true };
const GOAL_NS = 2000;

const LOOPS = {
  lockAll({ lockAll }, { locks }, n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      const guard = lockAll(locks);
      if (guard.locked) held++;
      guard.unlock();
    }
    return held;
  },
  'table.lockAll'(_, { table, indices }, n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      const guard = table.lockAll(indices);
      if (guard.locked) held++;
      guard.unlock();
    }
    return held;
  },
  async 'await lockAllAsync'({ lockAllAsync }, { locks }, n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      const guard = await lockAllAsync(locks);
      if (guard.locked) held++;
      guard.unlock();
    }
    return held;
  },
};

/** Returns the fault, as text, if not all are held while a guard holds them. */
function faultWhileHeld({ lockAll }, locks) {
  const guard = lockAll(locks);
  const free = locks.filter((lock) => lock.tryLock()).length;
  if (free) return `${free} locks of lockAll() were not held`;
  guard.unlock();
  return locks.map(faultOf).find((fault) => fault !== undefined);
}

async function run(contender, { verb, count, ms }) {
  const toolkit = contender.toolkit();
  const buffer = new SharedArrayBuffer(4 * count);
  const indices = Array.from({ length: count }, (_, i) => i);
  const locks = indices.map((i) => new toolkit.Mutex(buffer, 4 * i, OPTIONS));
  const table = new toolkit.LockTable(buffer, 0, count, OPTIONS);
  const { ns, wrong } = await timePairs((n) => LOOPS[verb](toolkit, { locks, table, indices }, n), ms);
  return { ns, wrong: wrong ?? faultWhileHeld(toolkit, locks) };
}

function pairs({ verb, count, ms }) {
  if (verb.startsWith('await')) return null;
  const contender = sablock();
  const memory = contender.share(count);
  const locks = Array.from({ length: count }, (_, i) => contender.open(memory, i));
  return timePairs((n) => {
    let held = 0;
    for (let i = 0; i < n; i++) {
      let all = true;
      for (const lock of locks) if (!lock.lock()) all = false;
      for (const lock of locks) lock.unlock();
      if (all) held++;
    }
    return held;
  }, ms);
}

module.exports = {
  name: 'lock-all',
  title: 'Several locks at once',
  kind: 'toolkit',
  rounds: 9,
  limitIs: 'which takes and frees as many mutexes one after the other',
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true, minus: true }],
  cases: ({ short }) =>
    Object.keys(LOOPS).flatMap((verb) =>
      (short ? [8] : [2, 8, 32]).map((count) => ({
        name: `${verb} of ${count}`,
        params: { verb, count, ms: short ? 5 : 50 },
        goals: verb === 'lockAll' && count === 8 ? [{ metric: 'ns', versus: 'beside', atMost: GOAL_NS }] : undefined,
      })),
    ),
  run,
  limits: [{ name: 'Mutex pairs', run: pairs }],
};
