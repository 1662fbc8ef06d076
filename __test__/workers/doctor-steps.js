// Steps that the lock doctor watches, on the named mutexes of one buffer. The doctor runs if `hasDoctor` says so.

const { parentPort } = require('node:worker_threads');
const { LockManager, Mutex, lockAll, wait } = require('../..');
const { answer, answerError, data, doing, end, isRaised, raise, waitForFlag } = require('../helpers/inside.js');

if (data.hasDoctor) require('../../lib/doctor/index.js').start();

const mutexes = data.names.map((name, index) => new Mutex(data.buffer, 8 * index, { name }));
/** The name that it has. */
let named;

function holdsFirst(first, second) {
  mutexes[first].lock();
  mutexes[second].lock();
  mutexes[second].unlock();
  mutexes[first].unlock();
}

const spin = (ms) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

const steps = {
  nothing() {},
  nested: holdsFirst,
  /** With a timeout, as what the order of two locks does not depend on. */
  nestedTimed(first, second, ms = 1000) {
    mutexes[first].lock();
    if (mutexes[second].lock(ms)) mutexes[second].unlock();
    mutexes[first].unlock();
  },
  nestedTry(first, second) {
    mutexes[first].lock();
    if (mutexes[second].tryLock()) mutexes[second].unlock();
    mutexes[first].unlock();
  },
  nestedSync: (first, second) => mutexes[first].executeLockedSync(() => mutexes[second].executeLockedSync(() => {})),
  /** Holds the first one and waits for the second, until a deadlock ends that or the flag is raised. */
  hold(index, flag, until) {
    mutexes[index].executeLockedSync(() => {
      raise(flag);
      waitForFlag(until);
    });
  },
  /** Holds all, and does not come back to its event loop until the flag is raised. */
  holdAll(flag, until) {
    for (const mutex of mutexes) mutex.lock();
    raise(flag);
    waitForFlag(until);
    for (const mutex of mutexes) mutex.unlock();
  },
  holdAndLock(first, second, flag, until) {
    mutexes[first].lock();
    raise(flag);
    waitForFlag(until);
    mutexes[second].lock();
    mutexes[second].unlock();
    mutexes[first].unlock();
  },
  async holdAndAwait(first, second, flag, until) {
    await mutexes[first].executeLocked(async () => {
      raise(flag);
      while (!isRaised(until)) await new Promise((resolve) => setTimeout(resolve, 1));
      await mutexes[second].executeLocked(() => {});
    });
  },
  /** In one turn: many short holds, one of the second until the flag is raised, and one of the first until the last is. */
  holdAfterMany(times, first, until, second, last) {
    for (let time = 0; time < times; time++) mutexes[1].executeLockedSync(() => {});
    steps.hold(1, first, until);
    steps.hold(0, second, last);
  },
  /** Returns for how long, by a clock of its own: at least. */
  holdFor(index, ms) {
    const startedAt = performance.now();
    mutexes[index].lock();
    spin(ms);
    mutexes[index].unlock();
    return performance.now() - startedAt;
  },
  /** Waits again and again; returns how long, by a clock of its own. */
  waitOften(index, times) {
    const waits = [];
    for (let time = 0; time < times; time++) {
      const startedAt = performance.now();
      mutexes[index].lock();
      waits.push(performance.now() - startedAt);
      spin(4);
      mutexes[index].unlock();
      spin(1);
    }
    return waits;
  },
  lock: (index) => mutexes[index].lock(),
  lockAll: (timeout) => lockAll(mutexes, { timeout }).unlock(),
  waitAt: (index) => wait(new Int32Array(data.buffer), index, 0),
  async holdNamed(directory, name) {
    named = await new LockManager({ directory }).acquireAsync(name);
  },
  freeNamed: () => named.unlock(),
  lockNamed: (directory, name) => new LockManager({ directory }).requestSync(name, () => {}),
  exit: (code) => process.exit(code),
  end,
};

parentPort.on('message', async ({ id, steps: [[name, ...args]] }) => {
  try {
    doing(`${name}(${args.join(', ')})`);
    answer(id, [await steps[name](...args)]);
  } catch (error) {
    answerError(id, error);
  }
});
doing('waiting for its first step');
