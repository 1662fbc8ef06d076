const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex, RwLock, locks } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');

/** Generous: the aim is 50 ms after the thread's end, but this machine may be busy with something else. */
const HANDOVER_MS = 5000;

for (const ending of endings) {
  test(
    `after the holder's end by ${ending.name}, the next comer by tryLock() gets the mutex, marked`,
    needs('prompt ends', ...ending.needs),
    watched(async (_, threads) => {
      const { mutex, holder } = await createHeld(threads, { options: ending.options });
      await ending.end(holder);
      assert.equal(mutex.isLocked, true, 'a dead holder counts as one until somebody comes');
      assert.equal(mutex.tryLock(), true);
      assert.equal(mutex.abandoned, true);
      mutex.unlock();
    }),
  );

  test(
    `after the holder's end by ${ending.name}, only who holds the mutex sees it as abandoned`,
    needs('prompt ends', ...ending.needs),
    watched(async (_, threads) => {
      const { mutex, holder, waiters } = await createHeld(threads, { options: ending.options, others: 1 });
      await ending.end(holder);
      assert.equal(mutex.abandoned, false, 'nobody has come for it');
      assert.deepEqual(await waiters[0].run([['tryLock'], ['get', 'abandoned']]), [true, true]);
      assert.deepEqual([mutex.abandoned, mutex.inspect().abandoned], [false, true]);
      await waiters[0].call('unlock');
      assert.equal(mutex.abandoned, false);
      assert.deepEqual([mutex.tryLock(), mutex.abandoned], [true, true]);
      mutex.unlock();
      assert.equal(mutex.abandoned, false);
    }),
  );

  test(
    `at the holder's end by ${ending.name}, a blocked thread gets the mutex, marked`,
    needs(...ending.needs),
    watched(async (t, threads) => {
      const { mutex, holder, waiters } = await createHeld(threads, { options: ending.options, others: 1 });
      const blocked = waiters[0].run([['lock'], ['get', 'abandoned']]);
      await threads.queued(mutex, 1);
      await ending.end(holder);
      const endedAt = performance.now();
      assert.deepEqual(await blocked, [true, true]);
      const ms = performance.now() - endedAt;
      assert.ok(ms < HANDOVER_MS, `${ms} ms`);
      t.diagnostic(`${ms.toFixed(1)} ms after the thread's end`);
    }),
  );

  test(
    `at the holder's end by ${ending.name}, an awaiting thread gets the mutex, marked`,
    needs(...ending.needs),
    watched(async (t, threads) => {
      const { mutex, holder } = await createHeld(threads, { options: ending.options });
      const pending = mutex.lockAsync();
      await ending.end(holder);
      const endedAt = performance.now();
      assert.equal(await pending, true);
      const ms = performance.now() - endedAt;
      assert.ok(ms < HANDOVER_MS, `${ms} ms`);
      assert.equal(mutex.abandoned, true);
      mutex.unlock();
      t.diagnostic(`${ms.toFixed(1)} ms after the thread's end`);
    }),
  );
}

for (const hold of ['lock', 'tryLock', 'lockAsync', 'acquire', 'acquireAsync', 'tryAcquire', 'holdInside', 'enter']) {
  test(
    `a hold by ${hold} of a thread that ends is passed on, to be freed as any other`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const { mutex, holder } = await createHeld(threads, { hold });
      await terminate.end(holder);
      assert.equal(await mutex.lockAsync(), true);
      assert.equal(mutex.abandoned, true);
      mutex.unlock();
      const guard = mutex.tryAcquire();
      assert.equal(guard.abandoned, true);
      assert.equal(guard.unlock(), true);
    }),
  );
}

for (const [verb, take] of Object.entries({
  tryAcquire: (mutex) => mutex.tryAcquire(),
  acquireAsync: (mutex) => mutex.acquireAsync(),
  acquire: (mutex) => mutex.acquire(),
  enter: (mutex) => new Promise((resolve) => mutex.enter(resolve)),
})) {
  test(
    `the guard of ${verb}() says that its mutex was abandoned`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const { buffer, holder } = await createHeld(threads);
      await terminate.end(holder);
      const mutex = new Mutex(buffer, OFFSET, { allowMainThread: true });
      const guard = await take(mutex);
      assert.equal(guard.abandoned, true);
      assert.equal(guard.mutex.abandoned, true);
      guard.unlock();
    }),
  );
}

test(
  'executeLocked() runs on an abandoned mutex and can see the mark',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder } = await createHeld(threads);
    await terminate.end(holder);
    assert.equal(await mutex.executeLocked(() => mutex.abandoned), true);
  }),
);

test(
  'a thread that ends while it waits for another mutex passes on what it holds',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const other = new Mutex(buffer, OFFSET + 4);
    other.tryLock();
    holder.call(OFFSET + 4, 'lock');
    await threads.queued(other, 1);
    await terminate.end(holder);
    assert.equal(await mutex.lockAsync(), true);
    assert.equal(mutex.abandoned, true);
    other.unlock();
    assert.equal(other.tryLock(), true);
    assert.equal(other.abandoned, false, 'it only waited there');
  }),
);

test(
  'every mutex that the ended thread held is passed on',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const mutexes = Array.from({ length: 20 }, (_, index) => new Mutex(buffer, OFFSET + 4 * index));
    await holder.run(mutexes.slice(1).map(({ byteOffset }) => [byteOffset, byteOffset % 8 === 0 ? 'acquire' : 'lock']));
    const pending = mutexes.slice(0, 10).map((waited) => waited.lockAsync());
    await threads.queued(mutex, 1);
    await terminate.end(holder);
    assert.ok((await Promise.all(pending)).every((isHeld) => isHeld));
    assert.ok(mutexes.slice(10).every((free) => free.tryLock()));
    assert.ok(mutexes.every(({ abandoned }) => abandoned));
  }),
);

test(
  'a thread that freed its mutex before its end leaves no mark',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder } = await createHeld(threads);
    await holder.call('unlock');
    await terminate.end(holder);
    assert.equal(mutex.isLocked, false);
    assert.equal(mutex.tryLock(), true);
    assert.equal(mutex.abandoned, false);
  }),
);

test(
  'a thread that only waited leaves no mark',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const waiters = await threads.puppets(2, buffer);
    mutex.tryLock();
    waiters[0].call('lock');
    waiters[1].call('lockAsync');
    await threads.queued(mutex, 2);
    await Promise.all(waiters.map(terminate.end));
    mutex.unlock();
    assert.equal(await mutex.lockAsync(), true);
    assert.equal(mutex.abandoned, false);
  }),
);

test(
  'the mark stays across unlocks and threads until markConsistent()',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    for (let round = 0; round < 3; round++) {
      assert.equal(mutex.tryLock(), true);
      assert.equal(mutex.abandoned, true);
      mutex.unlock();
      assert.deepEqual(await waiters[0].run([['lock'], ['get', 'abandoned'], ['unlock']]), [true, true, undefined]);
      assert.equal(await mutex.lockAsync(), true);
      assert.equal(mutex.abandoned, true);
      mutex.unlock();
    }
    mutex.tryLock();
    mutex.markConsistent();
    assert.equal(mutex.abandoned, false);
    mutex.unlock();
    assert.deepEqual(await waiters[0].run([['lock'], ['get', 'abandoned'], ['unlock']]), [true, false, undefined]);
    assert.equal(mutex.tryLock(), true);
    assert.equal(mutex.abandoned, false);
  }),
);

test(
  'markConsistent() keeps the hold, and its waiters',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, word, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    const guard = mutex.tryAcquire();
    const blocked = waiters[0].run([['lock'], ['get', 'abandoned'], ['unlock']]);
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 2);
    mutex.markConsistent();
    assert.equal(guard.locked, true);
    assert.equal(guard.abandoned, false);
    assert.equal(mutex.inspect().waiters.length, 2);
    guard.unlock();
    await pending;
    assert.equal(mutex.abandoned, false);
    mutex.unlock();
    assert.deepEqual(await blocked, [true, false, undefined]);
    assert.equal(word(), 0);
  }),
);

test(
  'markConsistent() by a thread that does not hold the mutex leaves the mark',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    mutex.tryLock();
    await assert.rejects(waiters[0].call('markConsistent'), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.equal(mutex.abandoned, true);
    mutex.unlock();
    assert.throws(() => mutex.markConsistent(), { code: 'ERR_LOCK_NOT_OWNER' });
    mutex.tryLock();
    assert.equal(mutex.abandoned, true);
  }),
);

test(
  'a mutex can be abandoned again after markConsistent()',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    mutex.tryLock();
    mutex.markConsistent();
    mutex.unlock();
    await waiters[0].call('lock');
    await terminate.end(waiters[0]);
    mutex.tryLock();
    assert.equal(mutex.abandoned, true);
  }),
);

test(
  "an abandoned mutex goes down the whole queue, one event loop's waits in their order, and all see the mark",
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder, waiters } = await createHeld(threads, { others: 2 });
    const log = [];
    const wait = async (number) => {
      await mutex.lockAsync();
      log.push([number, mutex.abandoned]);
      mutex.unlock();
    };
    const blocked = [];
    const awaiting = [];
    for (const [index, waiter] of waiters.entries()) {
      awaiting.push(wait(2 * index), wait(2 * index + 1));
      blocked.push(waiter.run([['lock'], ['get', 'abandoned'], ['unlock']]));
      await threads.queued(mutex, 3 * (index + 1));
    }
    await terminate.end(holder);
    for (const [, isAbandoned] of await Promise.all(blocked)) assert.equal(isAbandoned, true);
    await Promise.all(awaiting);
    assert.deepEqual(
      log,
      [0, 1, 2, 3].map((number) => [number, true]),
    );
  }),
);

test(
  'the word of an abandoned mutex stays below 2 ** 30',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, word, holder } = await createHeld(threads);
    await terminate.end(holder);
    mutex.tryLock();
    assert.ok(word() > 0 && word() < 2 ** 30);
    mutex.unlock();
    assert.ok(word() >= 0 && word() < 2 ** 30);
    mutex.tryLock();
    mutex.markConsistent();
    mutex.unlock();
    assert.equal(word(), 0);
  }),
);

/** Guards of what a thread has left, by the lock that it is of. */
const GUARDS = {
  'a mutex': ({ mutex }) => mutex.tryAcquire(),
  'an RwLock to write': ({ rwlock }) => rwlock.write.tryAcquire(),
  'an RwLock to read': ({ rwlock }) => rwlock.read.tryAcquire(),
  'a name': () => locks.acquireAsync('left behind'),
};

for (const [what, acquire] of Object.entries(GUARDS)) {
  test(
    `the guard of ${what} that was left says so while it holds, and no longer, though the mark stays`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(64);
      const left = { mutex: new Mutex(buffer), rwlock: new RwLock(buffer, 16) };
      const [holder] = await startActors(threads, 1, buffer);
      await holder.do(async (here) => {
        new here.sablock.Mutex(here.buffer).lock();
        new here.sablock.RwLock(here.buffer, 16).write.lock();
        here.kept = await here.sablock.locks.acquireAsync('left behind');
      });
      await holder.terminate();
      const guard = await acquire(left);
      assert.equal(guard.abandoned, true);
      guard.unlock();
      assert.equal(guard.abandoned, false);
      const next = await acquire(left);
      assert.deepEqual([guard.abandoned, next.abandoned], [false, true]);
      if (what === 'a name') next.markConsistent();
      next.unlock();
    }),
  );
}
