const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createMutex } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const upTo = (count) => Array.from({ length: count }, (_, index) => index);

/** Waiters of one thread that note their number when they hold the mutex, and then free it. */
const noters = (mutex, log) => ({
  lockAsync: async (number) => {
    await mutex.lockAsync();
    log.push(number);
    mutex.unlock();
  },
  acquireAsync: async (number) => {
    const guard = await mutex.acquireAsync();
    log.push(number);
    guard.unlock();
  },
  executeLocked: (number) => mutex.executeLocked(() => log.push(number)),
  enter: (number) =>
    new Promise((resolve) => {
      mutex.enter((token) => {
        log.push(number);
        mutex.leave(token);
        resolve();
      });
    }),
});

for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked', 'enter']) {
  test(
    `${verb}: the waiters of one thread are served in call order`,
    watched(async () => {
      const { mutex } = createMutex();
      const log = [];
      mutex.tryLock();
      const done = upTo(200).map(noters(mutex, log)[verb]);
      mutex.unlock();
      await Promise.all(done);
      assert.deepEqual(log, upTo(200));
    }),
  );
}

test(
  'all awaiting verbs of one thread share one order',
  watched(async () => {
    const { mutex } = createMutex();
    const log = [];
    const verbs = Object.values(noters(mutex, log));
    mutex.tryLock();
    const done = upTo(100).map((number) => verbs[number % verbs.length](number));
    mutex.unlock();
    await Promise.all(done);
    assert.deepEqual(log, upTo(100));
  }),
);

test(
  'waiters that come while others are served queue behind them',
  watched(async () => {
    const { mutex } = createMutex();
    const log = [];
    const late = [];
    mutex.tryLock();
    const early = upTo(20).map(async (number) => {
      await mutex.lockAsync();
      log.push(number);
      late.push(noters(mutex, log).lockAsync(20 + number));
      mutex.unlock();
    });
    mutex.unlock();
    await Promise.all(early);
    await Promise.all(late);
    assert.deepEqual(log, upTo(40));
  }),
);

test(
  'blocked workers are served in the order in which they came, but for one that is looking up when its turn comes',
  watched(async (t, threads) => {
    const rounds = 20;
    const { buffer, mutex } = createMutex();
    const workers = await threads.puppets(4, buffer);
    let inOrder = 0;
    let pairs = 0;
    for (let round = 0; round < rounds; round++) {
      const order = new Int32Array(new SharedArrayBuffer(64));
      mutex.tryLock();
      const done = [];
      for (const [index, worker] of workers.entries()) {
        done.push(worker.run([['lock'], ['note', order, index + 1], ['unlock']]));
        await threads.queued(mutex, index + 1);
      }
      mutex.unlock();
      await Promise.all(done);
      const served = [...order.slice(1, 1 + order[0])];
      assert.deepEqual([...served].sort(), [1, 2, 3, 4]);
      for (const [index, early] of served.entries()) {
        const after = served.slice(index + 1);
        inOrder += after.filter((late) => early < late).length;
        pairs += after.length;
      }
    }
    t.diagnostic(`${inOrder} of ${pairs} pairs in order`);
    // Any order at all would have half of the pairs right.
    assert.ok(inOrder >= 0.75 * pairs, `${inOrder} of ${pairs} pairs in order`);
  }),
);

test(
  "in a mixed queue everybody is served, and one event loop's waits in their order",
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const order = new Int32Array(new SharedArrayBuffer(64));
    const workers = await threads.puppets(2, buffer);
    const log = [];
    mutex.tryLock();
    const done = [];
    for (const [index, worker] of workers.entries()) {
      done.push(noters(mutex, log).lockAsync(2 * index));
      done.push(worker.run([['lock'], ['note', order, index + 1], ['unlock']]));
      done.push(noters(mutex, log).executeLocked(2 * index + 1));
      await threads.queued(mutex, 3 * (index + 1));
    }
    mutex.unlock();
    await Promise.all(done);
    assert.deepEqual(log, [0, 1, 2, 3]);
    assert.deepEqual([...order.slice(1, 3)].sort(), [1, 2]);
  }),
);

test(
  'a newcomer to a free mutex does not overtake the waiters of its own thread',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('lock');
    const log = [];
    const first = noters(mutex, log).lockAsync(1);
    const second = noters(mutex, log).acquireAsync(2);
    await threads.queued(mutex, 2);
    worker.run([['unlock'], ['raise', 0]]);
    assert.equal(threads.spinUntilRaised(0), true); // this loop is busy, so that it cannot take the mutex yet
    const newcomer = noters(mutex, log).lockAsync(3);
    await Promise.all([first, second, newcomer]);
    assert.deepEqual(log, [1, 2, 3]);
  }),
);

test(
  'a lockAsync() that gave up leaves the others in order',
  watched(async () => {
    const { mutex } = createMutex();
    const log = [];
    const { lockAsync } = noters(mutex, log);
    const controller = new AbortController();
    mutex.tryLock();
    const first = lockAsync(1);
    const timedOut = mutex.lockAsync(1);
    const second = lockAsync(2);
    const aborted = mutex.lockAsync({ signal: controller.signal });
    const third = lockAsync(3);
    assert.equal(await timedOut, false);
    controller.abort();
    await assert.rejects(aborted);
    mutex.unlock();
    await Promise.all([first, second, third]);
    assert.deepEqual(log, [1, 2, 3]);
  }),
);

test(
  'a timed-out lock() leaves the queue in order',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [leaver] = await threads.puppets(1, buffer);
    const log = [];
    const { lockAsync } = noters(mutex, log);
    mutex.tryLock();
    const waits = [lockAsync(1)];
    const left = leaver.call('lock', 200);
    await threads.until('the leaver has come or gone', () => mutex.inspect().waiters.length !== 1);
    waits.push(lockAsync(2), lockAsync(3));
    assert.equal(await left, false);
    assert.equal(mutex.inspect().waiters.length, 3);
    mutex.unlock();
    await Promise.all(waits);
    assert.deepEqual(log, [1, 2, 3]);
  }),
);
