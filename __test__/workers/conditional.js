// Waits for a condition as the test tells it, step by step, with a mutex and a condition of one buffer.

const { parentPort } = require('node:worker_threads');
const { Condition, Mutex } = require('../..');
const { answer, answerError, data, doing, end } = require('../helpers/inside.js');

const mutex = new Mutex(data.buffer, 0);
const condition = new Condition(data.buffer, 4);
const value = new Int32Array(data.buffer, 8, 1);

const actions = {
  lock: () => mutex.lock(),
  unlock: () => mutex.unlock(),
  notify: (count) => condition.notify(count),
  isHeld: () => mutex.isHeldByThisThread,
  /** Answers what the wait answered and whether the mutex was held then. */
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
  /** Waits with a guard's hold; answers whether the guard is valid before and after it unlocks. */
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
