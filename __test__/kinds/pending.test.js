// The number of pending waits of this thread: while there is one, promises go the slow way, so that none overtakes another.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockTable, lockAllAsync, Mutex, Once, RwLock, Semaphore } = require('../..');
const { thread } = require('../../lib/engine/thread.js');

test('what is settled at once, in whatever way, is not pending', async () => {
  const buffer = new SharedArrayBuffer(64);
  const [mutex, other] = [0, 4].map((offset) => new Mutex(buffer, offset));
  const semaphore = new Semaphore(buffer, 8, 1);
  const rw = new RwLock(buffer, 16);
  const once = new Once(buffer, 24);
  const options = { timeout: 1000 };
  const held = [];
  const ways = {
    'a lock that is free': async () => held.push(await mutex.acquireAsync(options)),
    'a lock that is held': () => mutex.lockAsync(0),
    'a guard of what is held': () => assert.rejects(mutex.acquireAsync(0), { code: 'ERR_LOCK_TIMEOUT' }),
    permits: async () => held.push(await semaphore.acquireAsync(1, options)),
    'no permits': () => assert.rejects(semaphore.acquireAsync(1, { timeout: 0 }), { code: 'ERR_LOCK_TIMEOUT' }),
    'a read lock': async () => held.push(await rw.read.acquireAsync(options)),
    'a write lock behind it': () => rw.write.lockAsync(0),
    once: () => once.run(() => {}, options),
    'once again': () => once.run(() => {}, options),
    'several locks': async () => held.push(await lockAllAsync([other], options)),
    'several that are held': () => assert.rejects(lockAllAsync([mutex], { timeout: 0 }), { code: 'ERR_LOCK_TIMEOUT' }),
    'a signal that has aborted': () => assert.rejects(mutex.lockAsync({ signal: AbortSignal.abort() })),
    'a word that was overwritten'() {
      new Int32Array(buffer)[8] = 1;
      return assert.rejects(new Mutex(buffer, 32).lockAsync(), { code: 'ERR_LOCK_CORRUPT' });
    },
  };
  for (const [what, act] of Object.entries(ways)) {
    await act();
    assert.equal(thread.pending, 0, what);
  }
  const pending = mutex.lockAsync();
  assert.equal(thread.pending, 1);
  held[0].unlock();
  await pending;
  assert.equal(thread.pending, 0);
});

/** Verbs of a lock, and those that run a function in a hold: each promises that what was asked for was had, and has gone back. */
const ofLock = (lock) => ({
  lockAsync: () => lock.lockAsync().then(() => lock.unlock()),
  acquireAsync: () => lock.acquireAsync().then((guard) => guard.unlock()),
  executeLocked: () => lock.executeLocked(() => {}),
});

/** Each holds something, and returns what frees it, and the verbs that ask for it. */
const HELD = {
  Mutex: () => {
    const mutex = new Mutex(new SharedArrayBuffer(4));
    mutex.tryLock();
    const enter = () => new Promise((resolve) => mutex.enter((token) => resolve(mutex.leave(token))));
    const all = () => lockAllAsync([mutex]).then((guard) => guard.unlock());
    return [() => mutex.unlock(), { ...ofLock(mutex), enter, lockAllAsync: all }];
  },
  'RwLock.read': () => {
    const { read, write } = new RwLock(new SharedArrayBuffer(8));
    write.tryLock();
    return [() => write.unlock(), ofLock(read)];
  },
  'RwLock.write': () => {
    const { write } = new RwLock(new SharedArrayBuffer(8));
    write.tryLock();
    return [() => write.unlock(), ofLock(write)];
  },
  LockTable: () => {
    const table = new LockTable(new SharedArrayBuffer(8), 0, 2);
    table.tryLock(1);
    return [
      () => table.unlock(1),
      {
        lockAsync: () => table.lockAsync(1).then(() => table.unlock(1)),
        acquireAsync: () => table.acquireAsync(1).then((guard) => guard.unlock()),
        executeLocked: () => table.executeLocked(1, () => {}),
        lockAllAsync: () => table.lockAllAsync([1]).then((guard) => guard.unlock()),
      },
    ];
  },
  Semaphore: () => {
    const semaphore = new Semaphore(new SharedArrayBuffer(4), 0, 1);
    const permits = semaphore.tryAcquire();
    return [
      () => permits.release(),
      {
        acquireAsync: () => semaphore.acquireAsync().then((permits) => permits.release()),
        execute: () => semaphore.execute(() => {}),
      },
    ];
  },
};

for (const [kind, make] of Object.entries(HELD)) {
  for (const verb of Object.keys(make()[1])) {
    test(`${verb} of ${kind} comes behind one of this thread that waits, though what they ask for is free again`, async () => {
      const [free, { [verb]: ask }] = make();
      const order = [];
      const first = ask().then(() => order.push('first'));
      free();
      const second = ask().then(() => order.push('second'));
      await Promise.all([first, second]);
      assert.deepEqual(order, ['first', 'second']);
    });
  }
}
