// A call that is cut off, by a time limit of `vm` or by the end of the stack, leaves no guard that frees a hold which is not its own.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const { Condition, LockTable, Mutex, RwLock, lockAll } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const OPTIONS = { allowMainThread: true };
const LIMIT_MS = 20;
const shared = (bytes) => new SharedArrayBuffer(bytes);

/** A lock of each kind: the lock, and how `use(lock)` is run in a hold whose guard it gets. */
const makeMutex = () => new Mutex(shared(4), 0, OPTIONS);
const makeWrite = () => new RwLock(shared(RwLock.BYTES), 0, OPTIONS).write;
const makeRow = () => new LockTable(shared(8), 0, 2, OPTIONS).at(1);
const acquires = (lock, use) => use(lock.acquire());
const WAYS = {
  'acquire() of a mutex': [makeMutex, acquires],
  'tryAcquire() of a mutex': [makeMutex, (lock, use) => use(lock.tryAcquire())],
  'acquireAsync() of a mutex': [makeMutex, async (lock, use) => use(await lock.acquireAsync())],
  'enter() of a mutex': [
    makeMutex,
    (lock, use) =>
      new Promise((resolve) => {
        lock.enter((token) => resolve(use(token)));
      }),
  ],
  'executeLockedSync() of a mutex': [makeMutex, (lock, use) => ignoring(() => lock.executeLockedSync(() => use(null)))],
  'executeLocked() of a mutex': [makeMutex, (lock, use) => lock.executeLocked(() => use(null)).catch(() => {})],
  'acquire() of a write': [makeWrite, acquires],
  'executeLockedSync() of a write': [makeWrite, (lock, use) => ignoring(() => lock.executeLockedSync(() => use(null)))],
  'acquire() of a row of a table': [makeRow, acquires],
  'lockAll() of a mutex': [makeMutex, (lock, use) => use(lockAll([lock]))],
  'lockAll() of a write': [makeWrite, (lock, use) => use(lockAll([lock]))],
  'lockAll() of a row of a table': [makeRow, (lock, use) => use(lockAll([lock]))],
};

function ignoring(act) {
  try {
    act();
  } catch {
    // The hold of its function is lost.
  }
}

const VERBS = {
  'wait()': (condition, lock) => condition.wait(lock),
  'waitFor()': (condition, lock) => condition.waitFor(lock, () => false),
};

/** Ends a call that would last for ever. */
function byTimeLimit(call) {
  globalThis.isCutOff = call;
  try {
    vm.runInThisContext('isCutOff()', { timeout: LIMIT_MS });
    assert.fail('the call was not cut off');
  } catch (error) {
    assert.equal(error.code, 'ERR_SCRIPT_EXECUTION_TIMEOUT');
  } finally {
    delete globalThis.isCutOff;
  }
}

for (const [way, [make, hold]] of Object.entries(WAYS)) {
  for (const [verb, wait] of Object.entries(VERBS)) {
    test(`${verb} that a time limit cuts off in ${way} leaves a guard that frees nothing`, {
      timeout: limit(60_000),
      ...needs('interruptions at calls', 'termination when busy'),
    }, async () => {
      const lock = make();
      const condition = new Condition(shared(4), 0, OPTIONS);
      let guard;
      let next;
      await hold(lock, (made) => {
        guard = made;
        // On a busy machine the time may be over before the wait has begun.
        while (lock.isHeldByThisThread) byTimeLimit(() => wait(condition, lock));
        if (guard !== null) assert.equal(guard.locked, false);
        next = lock.tryAcquire();
      });
      // Its function has ended, or this is the `finally` of its user.
      if (guard !== null) assert.equal(guard.unlock(), false);
      assert.deepEqual([next.locked, lock.isHeldByThisThread, lock.tryLock()], [true, true, false]);
      assert.equal(next.unlock(), true);
      assert.equal(lock.isHeldByThisThread, false);
      const fresh = lock.tryAcquire();
      assert.deepEqual([fresh.locked, fresh.unlock()], [true, true]);
    });
  }

  test(`wait() that the end of the stack cuts off in ${way} leaves a guard that frees nothing but its own hold`, {
    timeout: limit(120_000),
    ...needs('stack ends'),
  }, async () => {
    const condition = new Condition(shared(4), 0, OPTIONS);
    for (let depth = 0; depth < 60; depth++) {
      const lock = make();
      let guard;
      let next = null;
      await hold(lock, (made) => {
        guard = made;
        let left = depth;
        const dive = () => {
          try {
            dive();
          } catch {
            // The end of the stack: the call comes some frames before it.
          }
          if (left-- === 0) ignoring(() => condition.wait(lock, 0.01));
        };
        dive();
        if (!lock.isHeldByThisThread) next = lock.tryAcquire();
        if (guard !== null) assert.equal(guard.locked, next === null);
      });
      if (guard !== null) assert.equal(guard.unlock(), next === null);
      if (next !== null) assert.equal(next.unlock(), true);
      assert.equal(lock.isHeldByThisThread, false);
    }
  });
}

/** Two locks of a kind, and how many hold the second. */
const RUNNERS = {
  'read.executeLockedSync()': () => {
    const [one, other] = [1, 2].map(() => new RwLock(shared(RwLock.BYTES), 0, OPTIONS));
    const blocker = () => one.write.lockAsync({ timeout: 500 });
    return { one: one.read, other: other.read, blocker, isHeld: () => other.readers === 1 };
  },
  'write.executeLockedSync()': () => {
    const [one, other] = [1, 2].map(() => new RwLock(shared(RwLock.BYTES), 0, OPTIONS));
    return {
      one: one.write,
      other: other.write,
      blocker: () => one.write.lockAsync({ timeout: 500 }),
      isHeld: () => other.isWriteLocked,
    };
  },
  'mutex.executeLockedSync()': () => {
    const [one, other] = [1, 2].map(makeMutex);
    return { one, other, blocker: () => one.lockAsync({ timeout: 500 }), isHeld: () => other.isLocked };
  },
};

for (const [verb, make] of Object.entries(RUNNERS)) {
  test(`${verb} that is cut off while it releases is forgotten by the next call`, {
    timeout: limit(60_000),
    ...needs('interruptions at calls', 'termination when busy'),
  }, async () => {
    const prototype = Object.getPrototypeOf(thread);
    const drainSoon = Object.getOwnPropertyDescriptor(prototype, 'drainSoon');
    let isReleasing = false;
    let locks;
    let guard;
    let waits;
    // On a busy machine the time may be over before the release has begun.
    while (!isReleasing) {
      locks = make();
      guard = locks.other.acquire();
      byTimeLimit(() =>
        locks.one.executeLockedSync(() => {
          // Somebody waits, so that the release cannot be one operation; the limit comes in what it calls.
          waits = locks.blocker();
          Object.defineProperty(prototype, 'drainSoon', {
            ...drainSoon,
            value() {
              isReleasing = true;
              for (;;);
            },
          });
        }),
      );
    }
    const { other, isHeld } = locks;
    Object.defineProperty(prototype, 'drainSoon', drainSoon);
    assert.throws(() => other.executeLockedSync('no function'), { code: 'ERR_INVALID_ARG_TYPE' });
    assert.deepEqual([guard.locked, isHeld()], [true, true]);
    assert.equal(guard.unlock(), true);
    assert.equal(isHeld(), false);
    assert.equal(await waits, false);
  });
}
