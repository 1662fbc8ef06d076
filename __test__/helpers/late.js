// Waits of a promise whose time is over while its event loop does not turn, and what another thread does behind them.

const sablock = require('../..');

const OPTIONS = { allowMainThread: true };
const TIMEOUT = 50;
const FOR_EVER = 15_000;

/** Blocks until nobody waits any more. */
function untilLeft(lock) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const giveUpAt = performance.now() + FOR_EVER;
  const anybodyWaits = () => {
    const { waiters } = lock.inspect();
    return (waiters.length ?? waiters) > 0;
  };
  while (anybodyWaits() && performance.now() < giveUpAt) Atomics.wait(cell, 0, 0, 2);
}

const refused = (act) => {
  try {
    return act();
  } catch (error) {
    return error.code;
  }
};

/**
 * By name: what both threads make of the memory; what the one has or does before (`hold`); its wait (`late`), and how that ends; and
 * what the other does, which the wait must not keep from it (`behind`), with what comes of it. `isOwn`: the thread itself can do that
 * too, behind its own wait.
 */
module.exports = {
  'a write behind readers': {
    make: (buffer) => new sablock.RwLock(buffer, 0, OPTIONS),
    hold: (rw) => rw.read.tryLock(),
    late: (rw) => rw.write.lockAsync(TIMEOUT),
    ends: false,
    behind(rw) {
      rw.read.lock();
      return rw.read.unlock();
    },
    gets: undefined,
    isOwn: true,
  },
  'a request for several fair permits': {
    make: (buffer) => new sablock.Semaphore(buffer, 0, 2, { ...OPTIONS, fair: true }),
    hold: (semaphore) => semaphore.tryAcquire(1),
    late: (semaphore) => semaphore.acquireAsync(2, { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: (semaphore) => semaphore.acquire(1).count,
    gets: 1,
    isOwn: true,
  },
  'an exclusive request for a name': {
    make: () => sablock.locks,
    hold: (locks) => locks.acquireAsync('late', { mode: 'shared' }),
    late: (locks) => locks.acquireAsync('late', { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: (locks) => locks.requestSync('late', { mode: 'shared' }, ({ mode }) => mode),
    gets: 'shared',
  },
  'several locks, of which the last is held': {
    make: (buffer) => [0, 4].map((offset) => new sablock.Mutex(buffer, offset, OPTIONS)),
    hold: ([, last]) => last.tryLock(),
    late: (all) => sablock.lockAllAsync(all, { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: ([first]) => first.executeLockedSync(() => 'had'),
    gets: 'had',
  },
  'several locks, of which one is shared and the last is held': {
    make: (buffer) => [new sablock.RwLock(buffer, 0, OPTIONS), new sablock.Mutex(buffer, 8, OPTIONS)],
    hold: ([, last]) => last.tryLock(),
    late: ([{ read }, last]) => sablock.lockAllAsync([read, last], { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: ([{ write }]) => write.executeLockedSync(() => 'had'),
    gets: 'had',
  },
  'several names, of which the last is held': {
    make: () => sablock.locks,
    hold: (locks) => locks.acquireAsync('late b'),
    late: (locks) => locks.acquireAsync(['late a', 'late b'], { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: (locks) => locks.requestSync('late a', ({ name }) => name),
    gets: 'late a',
  },
  'a party of a barrier': {
    make: (buffer) => new sablock.Barrier(buffer, 0, 3, OPTIONS),
    late: (barrier) => barrier.waitAsync(TIMEOUT),
    ends: 'ERR_LOCK_TIMEOUT',
    behind: (barrier) => refused(() => barrier.wait()),
    gets: 'ERR_LOCK_BROKEN',
  },
  'an event that is set afterwards': {
    make: (buffer) => new sablock.AutoResetEvent(buffer, 0, OPTIONS),
    late: (event) => event.waitAsync(TIMEOUT),
    ends: false,
    behind(event) {
      untilLeft(event);
      event.set();
      return event.wait(0);
    },
    gets: true,
  },
  'an event that stays set, and is set afterwards': {
    make: (buffer) => new sablock.ManualResetEvent(buffer, 0, OPTIONS),
    late: (event) => event.waitAsync(TIMEOUT),
    ends: false,
    behind(event) {
      untilLeft(event);
      event.set();
      return event.wait(0);
    },
    gets: true,
  },
  'a latch that opens afterwards': {
    make: (buffer) => new sablock.Latch(buffer, 0, OPTIONS),
    hold: (latch) => latch.add(1),
    late: (latch) => latch.waitAsync(TIMEOUT),
    ends: false,
    behind(latch) {
      untilLeft(latch);
      latch.countDown();
      return latch.wait(0);
    },
    gets: true,
  },
  'an exchange for which nobody came in time': {
    make: (buffer) => new sablock.Exchanger(buffer, 0, OPTIONS),
    late: (exchanger) => exchanger.exchangeAsync(1, TIMEOUT),
    ends: 'ERR_LOCK_TIMEOUT',
    behind(exchanger) {
      untilLeft(exchanger);
      return refused(() => exchanger.exchange(2, 1));
    },
    gets: 'ERR_LOCK_TIMEOUT',
  },
  'a turn that another has': {
    make: (buffer) => new sablock.Once(buffer, 0, OPTIONS),
    hold(once) {
      const held = {};
      once.run(() => new Promise((resolve) => (held.unlock = resolve)));
      return held;
    },
    late: (once) => once.run(() => {}, { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind(once) {
      untilLeft(once);
      return once.isDone;
    },
    gets: false,
  },
  'a fair permit that comes back afterwards': {
    make: (buffer) => new sablock.Semaphore(buffer, 0, 1, { ...OPTIONS, fair: true }),
    hold: (semaphore) => semaphore.tryAcquire(1).forget(),
    late: (semaphore) => semaphore.acquireAsync(1, { timeout: TIMEOUT }),
    ends: 'ERR_LOCK_TIMEOUT',
    behind(semaphore) {
      untilLeft(semaphore);
      semaphore.release(1);
      return semaphore.tryAcquire(1).count;
    },
    gets: 1,
  },
  'a condition that is notified afterwards': {
    make(buffer) {
      const mutex = new sablock.Mutex(buffer, 8, OPTIONS);
      return { mutex, condition: new sablock.Condition(buffer, 0, OPTIONS) };
    },
    hold: ({ mutex }) => mutex.tryLock(),
    late: ({ mutex, condition }) => condition.waitAsync(mutex, TIMEOUT),
    ends: false,
    behind({ condition }) {
      untilLeft(condition);
      return condition.notifyOne();
    },
    gets: 0,
  },
};
