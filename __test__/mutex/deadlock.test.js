const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex, stats } = require('../..');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const blockingVerbs = {
  lock: (mutex, options) => mutex.lock(options),
  acquire: (mutex, options) => mutex.acquire(options),
  executeLockedSync: (mutex, options) => mutex.executeLockedSync(() => assert.fail('ran'), options),
};

/** The ways in which this thread comes to hold the mutex; each returns what frees it again. */
const holds = {
  'tryLock()': (mutex) => {
    mutex.tryLock();
    return () => mutex.unlock();
  },
  'lock()': (mutex) => {
    mutex.lock();
    return () => mutex.unlock();
  },
  'a guard': (mutex) => {
    const guard = mutex.tryAcquire();
    return () => guard.unlock();
  },
  'an asynchronous task': async (mutex) => {
    await mutex.lockAsync();
    return () => mutex.unlock();
  },
  'executeLocked()': async (mutex) => {
    let free;
    await new Promise((resolve) => {
      mutex.executeLocked(() => {
        resolve();
        return new Promise((freed) => {
          free = freed;
        });
      });
    });
    return free;
  },
  'a token of enter()': async (mutex) => {
    const token = await new Promise((resolve) => mutex.enter(resolve));
    return () => mutex.leave(token);
  },
};

for (const [hold, take] of Object.entries(holds)) {
  for (const [verb, block] of Object.entries(blockingVerbs)) {
    test(
      `${verb}() of what ${hold} of this thread holds throws a DeadlockError, and the hold goes on`,
      watched(async (_, threads) => {
        const { mutex } = createMutex({ allowMainThread: true });
        const free = await take(mutex);
        assert.throws(() => block(mutex), expected.deadlock(OFFSET));
        assert.throws(() => block(mutex, { timeout: Infinity }), expected.deadlock(OFFSET));
        assert.equal(mutex.isHeldByThisThread, true);
        assert.deepEqual(mutex.inspect().waiters, []);
        free();
        await threads.until('the mutex is free', () => !mutex.isLocked);
        assert.equal(mutex.tryLock(), true);
        mutex.unlock();
      }),
    );
  }
}

test('lock() with a timeout of what this thread holds returns false, and the hold goes on', () => {
  const { mutex } = createMutex({ allowMainThread: true });
  mutex.tryLock();
  for (const timeout of [0, -1, 0.5, 20]) assert.equal(mutex.lock(timeout), false, String(timeout));
  assert.equal(mutex.isHeldByThisThread, true);
  mutex.unlock();
});

test('acquire() and executeLockedSync() with a timeout of what this thread holds throw a TimeoutError', () => {
  const { mutex } = createMutex({ allowMainThread: true });
  mutex.tryLock();
  for (const timeout of [0, 10]) {
    assert.throws(() => mutex.acquire({ timeout }), expected.timeout(OFFSET));
    assert.throws(() => mutex.executeLockedSync(() => assert.fail('ran'), { timeout }), expected.timeout(OFFSET));
  }
  assert.equal(mutex.isHeldByThisThread, true);
  mutex.unlock();
});

test(
  'lockAsync() of what this thread holds is a wait, not a deadlock',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const pending = mutex.lockAsync();
    mutex.unlock();
    assert.equal(await pending, true);
    mutex.unlock();
  }),
);

test(
  'lock() of a mutex that another thread holds is no deadlock while own waits are pending',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [holder, worker] = await threads.puppets(2, buffer);
    await holder.call('lock');
    const pending = worker.run([['lockAsync'], ['unlock']]);
    await threads.queued(mutex, 1);
    const blocked = worker.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 2);
    await holder.call('unlock');
    assert.deepEqual(await blocked, [true, undefined]);
    assert.deepEqual(await pending, [true, undefined]);
  }),
);

const offsets = (count) => Array.from({ length: count }, (_, index) => OFFSET + 4 * index);

/** Has each worker hold its own mutex, then block on the next one's; the last step closes the ring. */
const closeRing = async (threads, buffer, workers, hold = 'lock') => {
  const own = offsets(workers.length);
  await Promise.all(workers.map((worker, index) => worker.call(own[index], hold)));
  const outcomes = [];
  for (const [index, worker] of workers.entries()) {
    const next = own[(index + 1) % own.length];
    outcomes.push(
      worker.call(next, 'lock').then(
        (isHeld) => ({ worker, next, isHeld }),
        (error) => ({ worker, next, error }),
      ),
    );
    if (index < workers.length - 1) await threads.queued(new Mutex(buffer, next), 1);
  }
  return { own, outcomes };
};

for (const length of [2, 3, 5]) {
  test(
    `a ring of ${length} threads, however they hold: exactly one gets a DeadlockError that names the ring`,
    watched(async (_, threads) => {
      const { buffer } = createMutex();
      const workers = await threads.puppets(length, buffer);
      for (const hold of ['lock', 'lockAsync', 'acquire']) {
        const { own, outcomes } = await closeRing(threads, buffer, workers, hold);

        const told = await Promise.race(outcomes);
        assert.equal(told.error?.code, 'ERR_LOCK_DEADLOCK', `${hold}(): ${JSON.stringify(told.error)}`);
        assert.equal(told.error.name, 'DeadlockError');
        for (const { threadId } of workers)
          assert.match(told.error.message, new RegExp(`\\b${threadId}\\b`), `thread ${threadId}`);
        for (const byteOffset of own) assert.match(told.error.message, new RegExp(`\\b${byteOffset}\\b`));

        // The one that got the error frees what it holds; one after the other the rest get what they wait for.
        const unlock = hold === 'acquire' ? 'unlockGuard' : 'unlock';
        let freeing = workers.indexOf(told.worker);
        await told.worker.call(own[freeing], unlock);
        for (let count = 1; count < length; count++) {
          const { worker, next, isHeld, error } = await outcomes[(freeing - 1 + length) % length];
          assert.equal(isHeld, true, `${hold}(): ${error?.message}`);
          freeing = workers.indexOf(worker);
          await worker.call(next, 'unlock');
          await worker.call(own[freeing], unlock);
        }
        for (const byteOffset of own) assert.equal(new Mutex(buffer, byteOffset).isLocked, false, hold);
      }
    }),
  );
}

test(
  'of a ring of more threads than there is room for, the first steps are told',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const workers = await threads.puppets(30, buffer);
    const { outcomes } = await closeRing(threads, buffer, workers);
    const { error } = await Promise.race(outcomes);
    assert.equal(error?.code, 'ERR_LOCK_DEADLOCK');
    const steps = error.message.matchAll(/thread (\d+)/gi);
    const told = new Set(Array.from(steps, ([, threadId]) => Number(threadId)));
    assert.equal(told.size, 28, error.message);
    assert.match(error.message, /, held by another, and so on\. None/);
    assert.ok([...told].every((threadId) => workers.some((worker) => worker.threadId === threadId)));
  }),
);

/** Two workers, each of which holds a mutex that the other is to wait for. */
const startRing = async (threads) => {
  const { buffer } = createMutex();
  const [first, second] = await threads.puppets(2, buffer);
  const [own, other] = offsets(2);
  await first.call(own, 'lock');
  await second.call(other, 'lock');
  return { buffer, first, second, own, other };
};

test(
  'a ring with a wait that has a timeout is left to that timeout',
  watched(async (_, threads) => {
    const { buffer, first, second, own, other } = await startRing(threads);
    const patient = first.call(other, 'lock');
    await threads.queued(new Mutex(buffer, other), 1);
    assert.equal(await second.call(own, 'lock', 100), false);
    await second.call(other, 'unlock');
    assert.equal(await patient, true);
  }),
);

test(
  'a ring that is closed by a wait without a timeout onto one with a timeout is left to that timeout',
  watched(async (_, threads) => {
    const { buffer, first, second, own, other } = await startRing(threads);
    const impatient = first.run([
      [other, 'lock', 300],
      [own, 'unlock'],
    ]);
    await threads.until('the impatient one waits', () => new Mutex(buffer, other).inspect().waiters.length === 1);
    assert.equal(await second.call(own, 'lock'), true);
    assert.deepEqual(await impatient, [false, undefined]);
  }),
);

test(
  'a chain of waits that is not closed is no deadlock',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const workers = await threads.puppets(3, buffer);
    const own = offsets(3);
    await Promise.all(workers.map((worker, index) => worker.call(own[index], 'lock')));
    const waits = [];
    for (const index of [1, 2]) {
      waits.push(
        workers[index].run([
          [own[index - 1], 'lock'],
          [own[index - 1], 'unlock'],
          [own[index], 'unlock'],
        ]),
      );
      await threads.queued(new Mutex(buffer, own[index - 1]), 1);
    }
    await workers[0].call(own[0], 'unlock');
    for (const [isHeld] of await Promise.all(waits)) assert.equal(isHeld, true);
  }),
);

test(
  'threads that cross over and over each get through or get an error, and none hangs',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const rounds = 200;
    const crossing = [0, 1, 2].map((seed) => threads.start('crosses', { buffer, offsets: offsets(3), rounds, seed }));
    const results = await Promise.all(crossing.map((worker) => worker.result));
    for (const { through, told } of results) assert.equal(through + told, rounds);
    assert.ok(results.some(({ through }) => through > 0));
    for (const byteOffset of offsets(3)) assert.equal(new Mutex(buffer, byteOffset).isLocked, false);
  }),
);

for (const [timeout, answer] of [
  [undefined, 'ERR_LOCK_DEADLOCK'],
  [500, false],
]) {
  test(
    `a subscriber that locks the mutex for which its thread is blocked, timeout ${timeout}, does not block it for ever`,
    needs('short slices'),
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(16);
      const mutex = new Mutex(buffer);
      mutex.tryLock();
      const worker = threads.start('conditional', { buffer });
      const before = stats().deadlocks;
      const answered = worker.call('lockTwice', timeout);
      await threads.raised(0);
      mutex.unlock();
      threads.raise(1);
      assert.deepEqual(await answered, [answer, 'ran']);
      assert.deepEqual([mutex.isLocked, mutex.inspect().waiters], [false, []]);
      assert.equal(stats().deadlocks - before, timeout === undefined ? 1 : 0);
    }),
  );
}
