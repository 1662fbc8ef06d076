// A test runner that clears the require cache loads the package again into the same thread: still one agent.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { loadAgain } = require('../helpers/load-again.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

test(
  'the package loaded twice is one agent: a hold of one is a hold of the other',
  watched(async () => {
    const { buffer, mutex } = createMutex({ allowMainThread: true });
    const Second = loadAgain().Mutex;
    assert.notEqual(Second, Mutex);
    const twin = new Second(buffer, OFFSET, { allowMainThread: true });
    mutex.tryLock();
    assert.equal(twin.isHeldByThisThread, true);
    assert.equal(twin.tryLock(), false);
    assert.throws(() => twin.lock(), { code: 'ERR_LOCK_DEADLOCK' });
    twin.unlock();
    assert.equal(mutex.isLocked, false);
    const guard = twin.tryAcquire();
    assert.throws(() => mutex.unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.equal(guard.unlock(), true);
  }),
);

test(
  'the package loaded twice has one order of waiters',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const instances = [mutex, new (loadAgain().Mutex)(buffer, OFFSET), new (loadAgain().Mutex)(buffer, OFFSET)];
    const numbers = Array.from({ length: 60 }, (_, index) => index);
    const log = [];
    mutex.tryLock();
    const done = numbers.map(async (number) => {
      const instance = instances[number % instances.length];
      await instance.lockAsync();
      log.push(number);
      instances[(number + 1) % instances.length].unlock();
    });
    mutex.unlock();
    await Promise.all(done);
    assert.deepEqual(log, numbers);
  }),
);

test(
  'the package loaded twice: a newcomer of one does not overtake the waiters of the other',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const twin = new (loadAgain().Mutex)(buffer, OFFSET);
    const [worker] = await threads.puppets(1, buffer);
    const log = [];
    const note = async (instance, number) => {
      await instance.lockAsync();
      log.push(number);
      instance.unlock();
    };
    await worker.call('lock');
    const first = note(mutex, 1);
    await threads.queued(mutex, 1);
    worker.run([['unlock'], ['raise', 0]]);
    assert.equal(threads.spinUntilRaised(0), true);
    await Promise.all([first, note(twin, 2), note(mutex, 3)]);
    assert.deepEqual(log, [1, 2, 3]);
  }),
);

test(
  'the package loaded twice in a worker is one agent, whose end abandons the holds of both',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const other = new Mutex(buffer, OFFSET + 4);
    const worker = threads.start('loads-twice', { buffer, offsets: [OFFSET, OFFSET + 4] });
    assert.deepEqual(await worker.result, { seenByBoth: [true, true] });
    await worker.exited;
    for (const abandoned of [mutex, other]) {
      assert.equal(await abandoned.lockAsync(), true);
      assert.equal(abandoned.abandoned, true);
    }
  }),
);

test('an error of one loaded instance is known by its code in the other', () => {
  const { buffer, mutex } = createMutex();
  const twin = new (loadAgain().Mutex)(buffer, OFFSET);
  for (const instance of [mutex, twin]) assert.throws(() => instance.unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
});

test(
  'the package loaded twice has the same named locks, and each learns of what is stolen from it',
  watched(async () => {
    const { locks } = require('../..');
    const twin = loadAgain().locks;
    assert.notEqual(twin, locks);
    const mine = await locks.acquireAsync('twice');
    assert.equal(await twin.acquireAsync('twice', { ifAvailable: true }), null);
    const waiting = twin.request('twice', ({ name }) => name);
    mine.unlock();
    assert.equal(await waiting, 'twice');
    const victims = [
      await locks.acquireAsync('twice', { mode: 'shared' }),
      await twin.acquireAsync('twice', { mode: 'shared' }),
    ];
    const aborted = victims.map(({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)));
    const thief = await twin.acquireAsync('twice', { steal: true });
    await Promise.all(aborted);
    assert.deepEqual(
      victims.map(({ locked }) => locked),
      [false, false],
    );
    thief.markConsistent();
    thief.unlock();
  }),
);
