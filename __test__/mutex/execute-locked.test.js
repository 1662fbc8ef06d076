const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const createForMain = () => createMutex({ allowMainThread: true });

test(
  'executeLocked() resolves with what its function returns',
  watched(async () => {
    const { mutex } = createMutex();
    const result = { some: 'object' };
    assert.equal(await mutex.executeLocked(() => result), result);
    assert.equal(await mutex.executeLocked(() => undefined), undefined);
  }),
);

test(
  'executeLocked() holds the mutex until the promise of its function settles',
  watched(async () => {
    const { mutex } = createMutex();
    let finish;
    const running = mutex.executeLocked(() => new Promise((resolve) => (finish = resolve)));
    while (!finish) await nextTurn();
    await nextTurn();
    assert.equal(mutex.isHeldByThisThread, true);
    assert.equal(mutex.tryLock(), false);
    finish('done');
    assert.equal(await running, 'done');
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'executeLocked() awaits any thenable',
  watched(async () => {
    const { mutex } = createMutex();
    // biome-ignore lint/suspicious/noThenProperty: a foreign promise is the subject
    assert.equal(await mutex.executeLocked(() => ({ then: (resolve) => setImmediate(resolve, 7) })), 7);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'an error thrown in executeLocked() is passed on and leaves the mutex free',
  watched(async () => {
    const { mutex } = createMutex();
    const error = new Error('Thrown inside');
    const run = () => {
      throw error;
    };
    await assert.rejects(mutex.executeLocked(run), (caught) => caught === error);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'a rejection in executeLocked() is passed on and leaves the mutex free',
  watched(async () => {
    const { mutex } = createMutex();
    const run = async () => {
      await nextTurn();
      throw null;
    };
    await assert.rejects(mutex.executeLocked(run), (caught) => caught === null);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'executeLocked() serves the next one when a function throws',
  watched(async () => {
    const { mutex } = createMutex();
    const failing = mutex.executeLocked(async () => {
      await nextTurn();
      throw new Error('Thrown inside');
    });
    const next = mutex.executeLocked(() => 'next');
    await assert.rejects(failing);
    assert.equal(await next, 'next');
  }),
);

test(
  'executeLocked() does not call its function in the turn of the call while the mutex is held',
  watched(async (t) => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const run = t.mock.fn();
    const running = mutex.executeLocked(run);
    await nextTurn();
    assert.equal(run.mock.callCount(), 0);
    mutex.unlock();
    await running;
    assert.equal(run.mock.callCount(), 1);
  }),
);

test(
  'mutex.unlock() inside executeLocked() is refused, and the hold goes on',
  watched(async () => {
    const { mutex } = createMutex();
    const isStillHeld = await mutex.executeLocked(() => {
      assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
      return mutex.isHeldByThisThread;
    });
    assert.equal(isStillHeld, true);
    assert.equal(mutex.isLocked, false);
  }),
);

test('executeLockedSync() returns what its function returns, and holds meanwhile', () => {
  const { mutex } = createForMain();
  assert.equal(
    mutex.executeLockedSync(() => mutex.isHeldByThisThread),
    true,
  );
  assert.equal(mutex.isLocked, false);
});

test('an error thrown in executeLockedSync() is passed on and leaves the mutex free', () => {
  const { mutex } = createForMain();
  const error = new Error('Thrown inside');
  const run = () => {
    throw error;
  };
  assert.throws(
    () => mutex.executeLockedSync(run),
    (caught) => caught === error,
  );
  assert.equal(mutex.isLocked, false);
});

test('mutex.unlock() inside executeLockedSync() is refused, and the hold goes on', () => {
  const { mutex } = createForMain();
  mutex.executeLockedSync(() => {
    assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
    assert.equal(mutex.isHeldByThisThread, true);
  });
  assert.equal(mutex.isLocked, false);
});

for (const [kind, run] of [
  ['a promise', () => Promise.resolve(1)],
  ['the promise of an async function', async () => {}],
  // biome-ignore lint/suspicious/noThenProperty: a foreign promise is the subject
  ['a thenable', () => ({ then() {} })],
]) {
  test(`executeLockedSync() refuses a function that returns ${kind}, after unlocking`, () => {
    const { mutex } = createForMain();
    assert.throws(() => mutex.executeLockedSync(run), { name: 'TypeError', message: new RegExp(`\\b${OFFSET}\\b`) });
    assert.equal(mutex.isLocked, false);
  });
}

test(
  'executeLockedSync() runs on a worker that had to wait',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const running = worker.run([
      ['stayInsideSync', 0],
      ['get', 'isHeldByThisThread'],
    ]);
    await threads.queued(mutex, 1);
    mutex.unlock();
    await threads.until('the worker is inside', () => mutex.isLocked);
    assert.equal(mutex.tryLock(), false);
    threads.raise(0);
    assert.deepEqual(await running, [undefined, false]);
    assert.equal(mutex.tryLock(), true);
  }),
);

test('executeLockedSync() returns what is no thenable as it is: null, and an object whose then is no function', () => {
  const { mutex } = createMutex({ allowMainThread: true });
  // biome-ignore lint/suspicious/noThenProperty: what is not quite a thenable is the subject.
  for (const value of [null, undefined, 0, { then: 5 }]) {
    assert.equal(
      mutex.executeLockedSync(() => value),
      value,
    );
  }
  // biome-ignore lint/suspicious/noThenProperty: a function that is a thenable.
  const thenable = Object.assign(() => {}, { then() {} });
  assert.throws(() => mutex.executeLockedSync(() => thenable), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.equal(mutex.isLocked, false);
});
