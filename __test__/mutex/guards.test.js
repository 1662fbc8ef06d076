const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockGuard, Mutex } = require('../..');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const verbs = {
  acquire: (mutex) => mutex.acquire(),
  acquireAsync: (mutex) => mutex.acquireAsync(),
  tryAcquire: (mutex) => mutex.tryAcquire(),
  enter: (mutex) => new Promise((resolve) => mutex.enter(resolve)),
};

for (const [verb, acquire] of Object.entries(verbs)) {
  test(
    `${verb}(): the guard holds its mutex and says so`,
    watched(async () => {
      const { mutex } = createMutex({ allowMainThread: true });
      const guard = await acquire(mutex);
      assert.ok(guard instanceof LockGuard);
      assert.equal(guard.mutex, mutex);
      assert.equal(guard.locked, true);
      assert.equal(guard.abandoned, false);
      assert.equal(mutex.isHeldByThisThread, true);
      guard.unlock();
    }),
  );

  test(
    `${verb}(): the first unlock() of the guard frees the mutex and returns true`,
    watched(async () => {
      const { mutex, word } = createMutex({ allowMainThread: true });
      const guard = await acquire(mutex);
      assert.equal(guard.unlock(), true);
      assert.equal(guard.locked, false);
      assert.equal(word(), 0);
    }),
  );

  test(
    `${verb}(): a second unlock() of the guard returns false and touches nothing`,
    watched(async () => {
      const { mutex, word } = createMutex({ allowMainThread: true });
      const guard = await acquire(mutex);
      guard.unlock();
      assert.equal(guard.unlock(), false);
      assert.equal(word(), 0);
    }),
  );

  test(
    `${verb}(): a stale guard does not free a later hold, whatever holds it`,
    watched(async () => {
      const { mutex } = createMutex({ allowMainThread: true });
      const stale = await acquire(mutex);
      stale.unlock();

      assert.equal(mutex.tryLock(), true);
      assert.equal(stale.unlock(), false);
      assert.equal(stale.locked, false);
      assert.equal(mutex.isHeldByThisThread, true);
      mutex.unlock();

      const current = mutex.tryAcquire();
      assert.equal(stale.unlock(), false);
      stale[Symbol.dispose]();
      assert.equal(current.locked, true);
      assert.equal(mutex.isHeldByThisThread, true);
      assert.equal(current.unlock(), true);
    }),
  );

  test(
    `${verb}(): mutex.unlock() does not free the guard's hold, on any Mutex object of the word`,
    watched(async () => {
      const { buffer, mutex, word } = createMutex({ allowMainThread: true });
      const guard = await acquire(mutex);
      const held = word();
      for (const other of [mutex, new Mutex(buffer, OFFSET), new Mutex(structuredClone(buffer), OFFSET)]) {
        assert.throws(() => other.unlock(), expected.notOwner(OFFSET));
      }
      assert.equal(word(), held);
      assert.equal(guard.locked, true);
      assert.equal(guard.unlock(), true);
    }),
  );

  test(
    `${verb}(): Symbol.dispose unlocks the guard, once`,
    watched(async () => {
      const { mutex } = createMutex({ allowMainThread: true });
      const guard = await acquire(mutex);
      assert.equal(guard[Symbol.dispose](), undefined);
      assert.equal(guard.locked, false);
      assert.equal(mutex.tryLock(), true);
      guard[Symbol.dispose]();
      assert.equal(mutex.isHeldByThisThread, true);
      mutex.unlock();
    }),
  );
}

test(
  'tryAcquire() of a held mutex returns null',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    assert.equal(mutex.tryAcquire(), null);
    mutex.unlock();
    const guard = mutex.tryAcquire();
    assert.equal(mutex.tryAcquire(), null);
    guard.unlock();
  }),
);

test(
  'unlocking a guard grants the mutex to the next waiter',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const guard = mutex.tryAcquire();
    const pending = mutex.acquireAsync();
    const blocked = worker.run([['acquire'], ['unlockGuard']]);
    await threads.queued(mutex, 2);
    guard.unlock();
    assert.equal((await pending).unlock(), true);
    assert.deepEqual(await blocked, ['a guard', true]);
  }),
);

test(
  'a guard that was waited for holds as one that was not',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    mutex.tryLock();
    const pending = mutex.acquireAsync();
    mutex.unlock();
    const guard = await pending;
    assert.throws(() => new Mutex(buffer, OFFSET).unlock(), expected.notOwner(OFFSET));
    assert.equal(guard.unlock(), true);
  }),
);

test(
  'a guard that was waited for by a blocked thread holds as one that was not',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const blocked = worker.call('acquire');
    await threads.queued(mutex, 1);
    mutex.unlock();
    await blocked;
    await assert.rejects(worker.call('unlock'), expected.notOwner(OFFSET));
    assert.equal(await worker.call('unlockGuard'), true);
  }),
);

test(
  'a guard of one mutex says nothing of its neighbour',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const neighbour = new Mutex(buffer, OFFSET + 4);
    const guard = mutex.tryAcquire();
    neighbour.tryLock();
    neighbour.unlock();
    const theirs = neighbour.tryAcquire();
    assert.equal(guard.unlock(), true);
    assert.equal(theirs.locked, true);
    theirs.unlock();
  }),
);
