// Does what the test tells it to, step by step, on the RwLock at `OFFSET`: `['read.lock', 50]`, `['downgrade']`. A step may
// begin with the offset of another one. Guards stay here: each lock remembers its last one.

const { Condition, LockGuard, RwLock } = require('../..');
const { data, doing, isRaised, raise, takeSteps, waitForFlag, waysToEnd } = require('../helpers/inside.js');
const { OFFSET } = require('../helpers/memory.js');

const locks = new Map();
const guards = new Map();
const warnings = [];
process.on('warning', ({ code, message }) => warnings.push({ code, message }));

const lockAt = (byteOffset) => {
  if (!locks.has(byteOffset)) locks.set(byteOffset, new RwLock(data.buffer, byteOffset));
  return locks.get(byteOffset);
};

const actions = {
  get: (rw, path) => path.split('.').reduce((value, name) => value[name], rw),
  guard: (rw, name) => guards.get(rw)[name],
  ofGuard: (rw, verb) => guards.get(rw)[verb](),
  async stayInside(rw, mode) {
    await new Promise((resolve) => rw[mode].executeLocked(() => new Promise(() => resolve())));
  },
  stayInsideSync: (rw, mode, flag) => rw[mode].executeLockedSync(() => waitForFlag(flag)),
  /** Locks, stays inside for so many milliseconds, and unlocks, until the flag is raised; counts its turns in an element of the buffer. */
  loop(rw, mode, flag, index, hold = 0) {
    const turns = new Int32Array(data.buffer, 0, 8);
    while (!isRaised(flag)) {
      rw[mode].lock();
      Atomics.add(turns, index, 1);
      if (hold > 0) Atomics.wait(turns, index, Atomics.load(turns, index), hold);
      rw[mode].unlock();
    }
  },
  /** Adds one to each of two plain numbers, again and again. */
  rewriteUntil(rw, count) {
    const record = new Int32Array(data.buffer, 0, 2);
    for (let done = 0; done < count; done++) {
      rw.write.lock();
      record[0] += 1;
      for (let step = 0; step < 100; step++) Atomics.load(record, 0);
      record[1] += 1;
      rw.write.unlock();
    }
  },
  /** Queues a promise and leaves it pending. */
  pend(rw, mode, verb) {
    rw[mode][verb]();
  },
  waitFor: (rw, byteOffset) => new Condition(data.buffer, byteOffset).wait(rw.write),
  note(_, log, number) {
    log[Atomics.add(log, 0, 1) + 1] = number;
  },
  raise: (_, flag) => raise(flag),
  waitForFlag: (_, flag) => waitForFlag(flag),
  warnings: () => warnings,
  ...waysToEnd,
};

const run = (rw, verb, args) => {
  if (actions[verb]) return actions[verb](rw, ...args);
  const [mode, method] = verb.split('.');
  return method === undefined ? rw[verb](...args) : rw[mode][method](...args);
};

const take = async (step) => {
  const [byteOffset, verb, ...args] = typeof step[0] === 'number' ? step : [OFFSET, ...step];
  const rw = lockAt(byteOffset);
  doing(
    `${verb}(${args.map((arg) => (typeof arg === 'object' ? 'an object' : String(arg))).join(', ')}) at ${byteOffset}`,
  );
  const value = await run(rw, verb, args);
  doing(`idle after ${verb} at ${byteOffset}`);
  if (!(value instanceof LockGuard)) return value;
  guards.set(rw, value);
  return 'a guard';
};

takeSteps(take);
