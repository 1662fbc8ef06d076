// Waits for a condition as the test tells it, step by step, with a mutex and a condition of one buffer.

const { subscribe } = require('node:diagnostics_channel');
const { parentPort } = require('node:worker_threads');
const { Condition, Mutex } = require('../..');
const { answer, answerError, data, doing, end, raise, waitForFlag } = require('../helpers/inside.js');

const mutex = new Mutex(data.buffer, 0);
const condition = new Condition(data.buffer, 4);
const value = new Int32Array(data.buffer, 8, 1);
const other = new Mutex(data.buffer, 12);

/** Ways to hold the mutex while `fn` runs. */
const ways = {
  executeLockedSync: (fn) => mutex.executeLockedSync(fn),
  executeLocked: (fn) => mutex.executeLocked(async () => fn()),
  guard(fn) {
    const guard = mutex.acquire();
    try {
      return fn();
    } finally {
      guard[Symbol.dispose]();
    }
  },
};
const codeOf = async (run) => {
  try {
    return await run();
  } catch ({ code }) {
    return code;
  }
};

const actions = {
  lock: () => mutex.lock(),
  unlock: () => mutex.unlock(),
  notify: (count) => condition.notify(count),
  isHeld: () => mutex.isHeldByThisThread,
  /** Returns what the wait returned and whether the mutex was held then. */
  wait(timeout) {
    mutex.lock();
    const answered = condition.wait(mutex, timeout);
    const isHeld = mutex.isHeldByThisThread;
    mutex.unlock();
    return [answered, isHeld];
  },
  async waitAsync(options) {
    await mutex.lockAsync();
    const answered = await condition.waitAsync(mutex, options);
    const isHeld = mutex.isHeldByThisThread;
    mutex.unlock();
    return [answered, isHeld];
  },
  /** Waits with a guard's hold; returns whether the guard is valid before and after it unlocks. */
  waitWithGuard() {
    const guard = mutex.acquire();
    const answered = condition.wait(mutex);
    return [answered, guard.locked, guard.unlock(), mutex.isLocked];
  },
  waitFor(expected, timeout) {
    const guard = mutex.acquire();
    const answered = condition.waitFor(mutex, () => value[0] === expected, timeout);
    guard.unlock();
    return answered;
  },
  /** Waits with the mutex while it holds the other one; returns what comes of it, and whether the mutex was held then. */
  async waitWithBoth(way) {
    other.lock();
    const answered = await codeOf(() => ways[way](() => condition.wait(mutex)));
    const isHeld = mutex.isHeldByThisThread;
    other.unlock();
    return [answered, isHeld];
  },
  /** The same with guards: the one whose wait fails must not free the next. */
  async loseGuard() {
    other.lock();
    const lost = mutex.acquire();
    const answered = await codeOf(() => condition.wait(mutex));
    other.unlock();
    if (answered !== 'ERR_LOCK_DEADLOCK') return lost.unlock(); // the other one was told
    const next = mutex.acquire();
    return [answered, lost.locked, lost.unlock(), next.unlock(), mutex.isHeldByThisThread];
  },
  /** Holds the mutex and locks the other one; returns what comes of that. */
  async lockOther() {
    mutex.lock();
    const answered = await codeOf(() => other.lock());
    if (other.isHeldByThisThread) other.unlock();
    mutex.unlock();
    return answered;
  },
  /** Locks the mutex, and has a subscriber lock it first; returns what comes of both. */
  async lockTwice(timeout) {
    let running;
    subscribe('sablock:long-hold', () => {
      if (running !== undefined) return;
      raise(0);
      waitForFlag(1);
      running = mutex.executeLocked(() => 'ran');
    });
    const answered = await codeOf(() => mutex.lock(timeout));
    return [answered, await running];
  },
  end,
};

parentPort.on('message', async ({ id, steps }) => {
  try {
    const values = [];
    for (const [verb, ...args] of steps) {
      doing(`${verb}(${args})`);
      values.push(await actions[verb](...args));
      doing(`idle after ${verb}`);
    }
    answer(id, values);
  } catch (error) {
    answerError(id, error);
  }
});
doing('waiting for its first step');
