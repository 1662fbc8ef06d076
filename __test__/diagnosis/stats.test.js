const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, locks, stats } = require('../..');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const WAITING = 1 << 29;

/** Returns a function that returns what has changed since. */
const since = () => {
  const before = stats();
  return () => {
    const now = stats();
    const changes = Object.keys(now).filter((name) => now[name] !== before[name] && name !== 'longestWaitMs');
    return Object.fromEntries(changes.map((name) => [name, now[name] - before[name]]));
  };
};

test('stats() returns plain numbers, none of them negative', () => {
  const counts = stats();
  assert.ok(Object.values(counts).every((value) => Number.isFinite(value) && value >= 0));
  assert.deepEqual(Object.keys(counts).sort(), [
    'abandoned',
    'aborts',
    'blocked',
    'contended',
    'deadlocks',
    'ended',
    'handovers',
    'longestWaitMs',
    'passedBy',
    'pending',
    'timeouts',
  ]);
});

test(
  'what need not wait is not counted',
  watched(async () => {
    const changes = since();
    const { mutex } = createMutex({ allowMainThread: true });
    mutex.lock();
    assert.equal(mutex.tryLock(), false);
    assert.equal(mutex.lock(0), false);
    assert.equal(await mutex.lockAsync(0), false);
    mutex.unlock();
    await mutex.executeLocked(() => {});
    assert.deepEqual(changes(), {});
  }),
);

test(
  'waits are counted when they begin and when they end, of all threads and in all threads',
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const [worker] = await threads.puppets(1, buffer);
    const changes = since();
    const blocked = worker.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 1);
    const pending = mutex.lockAsync();
    assert.deepEqual(changes(), { blocked: 1, pending: 1 });
    assert.deepEqual(await holder.call('stats'), stats());
    await holder.call('unlock');
    await pending;
    mutex.unlock();
    await blocked;
    const { handovers, ...rest } = changes();
    assert.deepEqual(rest, { contended: 2 });
    assert.ok(handovers === undefined || handovers === 1);
  }),
);

test(
  'the mutex that is handed to a thread that has long slept is a handover',
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const [worker] = await threads.puppets(1, buffer);
    const changes = since();
    // Not while it looks up from its sleep, so it may take more than one try.
    let tries = 0;
    while (changes().handovers === undefined) {
      const blocked = worker.run([['lock'], ['unlock']]);
      await threads.queued(mutex, 1);
      await threads.until('it has slept for more than a millisecond', () => mutex.inspect().waiters[0].waitedMs > 2);
      await holder.run([['unlock']]);
      await blocked;
      await holder.call('lock');
      tries += 1;
    }
    assert.deepEqual(changes(), { contended: tries, handovers: 1 });
  }),
);

test(
  'waits that end without the mutex are counted by why',
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const [worker] = await threads.puppets(1, buffer);
    const changes = since();
    const controller = new AbortController();
    const aborted = mutex.lockAsync({ signal: controller.signal });
    controller.abort();
    await assert.rejects(aborted);
    assert.deepEqual(changes(), { aborts: 1 });
    assert.deepEqual(await Promise.all([worker.call('lock', 5), mutex.lockAsync(5)]), [false, false]);
    assert.deepEqual(changes(), { aborts: 1, timeouts: 2 });
    await assert.rejects(holder.call('lock'), { code: 'ERR_LOCK_DEADLOCK' });
    assert.deepEqual(changes(), { aborts: 1, timeouts: 2, deadlocks: 1 });
  }),
);

test(
  'threads that end leave no wait behind, and what they held is counted once',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex, holder } = await createHeld(threads);
    const changes = since();
    const [worker] = await threads.puppets(1, buffer);
    worker.call('lockAsync');
    await threads.queued(mutex, 1);
    worker.call('lock');
    await threads.queued(mutex, 2);
    assert.deepEqual(changes(), { blocked: 1, pending: 1 });
    const { end } = endings.find(({ name }) => name === 'terminate()');
    await end(worker);
    assert.deepEqual(changes(), {});
    await end(holder);
    for (let count = 0; count < 2; count++) {
      mutex.tryLock();
      mutex.unlock();
    }
    assert.deepEqual(changes(), { abandoned: 1 });
  }),
);

test(
  'an event loop that is too busy to come for what is kept for it is passed by, once, and the mutex is free to others',
  watched(async (_, threads) => {
    const { buffer, mutex, word } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const changes = since();
    for (let round = 0; changes().passedBy === undefined; round++) {
      const flag = round % 60;
      threads.flags[flag] = 0;
      await threads.until('the mutex is free', () => mutex.tryLock());
      let isServed = false;
      const pending = worker.run([['lockAsync'], ['unlock']]).then(() => {
        isServed = true;
      });
      await threads.queued(mutex, 1);
      // It is woken, and comes in vain: the next time the mutex is kept for it.
      mutex.unlock();
      if (mutex.tryLock()) {
        await threads.until('it has come', () => isServed || (word() & WAITING) !== 0);
        const busy = worker.call('spinUntil', flag);
        const giveUpAt = performance.now() + 20;
        mutex.unlock();
        await threads.until('it was passed by', () => changes().passedBy > 0 || performance.now() > giveUpAt);
        if (changes().passedBy > 0 && !isServed) {
          assert.equal(changes().passedBy, 1);
          assert.equal(mutex.tryLock(), true);
          assert.equal(changes().passedBy, 1, 'nothing is kept for it before it has come again');
          mutex.unlock();
        }
        threads.raise(flag);
        await busy;
      }
      await pending;
      assert.ok(isServed);
    }
  }),
);

test(
  'the longest wait grows to that of the wait that was longest',
  watched(async () => {
    const { mutex } = createMutex();
    const { longestWaitMs } = stats();
    const startedAt = performance.now();
    mutex.tryLock();
    const pending = mutex.lockAsync();
    const least = longestWaitMs + 20;
    await new Promise((resolve) => setTimeout(resolve, least + 2));
    mutex.unlock();
    await pending;
    mutex.unlock();
    const longest = stats().longestWaitMs;
    assert.ok(longest >= least && longest <= performance.now() - startedAt, `${least} <= ${longest}`);
    const another = mutex.lockAsync();
    await another;
    mutex.unlock();
    assert.equal(stats().longestWaitMs, longest);
  }),
);

test(
  'the longest wait may be for a name, though none was used when the counts were first asked for',
  watched(async () => {
    const least = stats().longestWaitMs + 20;
    const held = await locks.acquireAsync('a name');
    const pending = locks.acquireAsync('a name');
    await new Promise((resolve) => setTimeout(resolve, least + 2));
    held.unlock();
    (await pending).unlock();
    assert.ok(stats().longestWaitMs >= least, `${least} <= ${stats().longestWaitMs}`);
  }),
);

test(
  'waits for notifications are not counted',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const condition = new Condition(buffer, OFFSET + 4);
    const changes = since();
    const guard = mutex.tryAcquire();
    assert.equal(await condition.waitAsync(mutex, 5), false);
    guard.unlock();
    assert.deepEqual(changes(), {});
  }),
);
