const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const { endings } = require('../helpers/endings.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { Witness } = require('../helpers/witness.js');

const FREE = { name: null, locked: false, ownerThreadId: null, abandoned: false, holders: [], waiters: [] };
const heldBy = (threadId) => ({
  ...FREE,
  locked: true,
  ownerThreadId: threadId,
  holders: [{ threadId, mode: 'exclusive', count: 1 }],
});

test('inspect() of a free mutex names no owner and no waiters', () => {
  const { mutex } = createMutex();
  assert.deepEqual(mutex.inspect(), FREE);
});

test(
  'inspect() of a mutex that was held and freed is that of a free one',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const pending = mutex.lockAsync();
    mutex.unlock();
    await pending;
    mutex.unlock();
    assert.deepEqual(mutex.inspect(), FREE);
  }),
);

test(
  'inspect() names the thread that holds',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    assert.deepEqual(mutex.inspect(), heldBy(threadId));
    assert.equal((await worker.call('inspect')).ownerThreadId, threadId);
    mutex.unlock();
    await worker.call('acquire');
    assert.deepEqual(mutex.inspect(), heldBy(worker.threadId));
  }),
);

test(
  'inspect() lists the waiters in queue order, with their threads and kinds',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [blocking, awaiting] = await threads.puppets(2, buffer);
    mutex.tryLock();
    const done = [mutex.lockAsync().then(() => mutex.unlock())];
    await threads.queued(mutex, 1);
    done.push(blocking.run([['lock'], ['unlock']]));
    await threads.queued(mutex, 2);
    done.push(awaiting.run([['lockAsync'], ['unlock']]));
    await threads.queued(mutex, 3);
    done.push(mutex.lockAsync().then(() => mutex.unlock()));
    await threads.queued(mutex, 4);

    const { waiters } = mutex.inspect();
    assert.deepEqual(
      waiters.map(({ waitedMs, ...waiter }) => waiter),
      [
        { threadId, kind: 'async', mode: 'exclusive' },
        { threadId: blocking.threadId, kind: 'blocking', mode: 'exclusive' },
        { threadId: awaiting.threadId, kind: 'async', mode: 'exclusive' },
        { threadId, kind: 'async', mode: 'exclusive' },
      ],
    );
    mutex.unlock();
    await Promise.all(done);
  }),
);

test(
  'inspect() says how long each waiter has waited',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const startedAt = performance.now();
    const first = mutex.lockAsync();
    assert.equal(await mutex.lockAsync(30), false);
    const second = mutex.lockAsync();
    const [early, late] = mutex.inspect().waiters.map(({ waitedMs }) => waitedMs);
    const ms = performance.now() - startedAt;
    assert.ok(early >= 30 && early <= ms + 1, `${early} ms of ${ms} ms`);
    assert.ok(late >= 0 && late <= ms - 29, `${late} ms of ${ms} ms`);
    for (const wait of [first, second]) {
      mutex.unlock();
      await wait;
    }
    mutex.unlock();
  }),
);

test(
  'inspect() shows the mark of an abandoned mutex',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [holder] = await threads.puppets(1, buffer);
    await holder.call('lock');
    await endings.find(({ name }) => name === 'terminate()').end(holder);
    mutex.tryLock();
    assert.deepEqual(mutex.inspect(), { ...heldBy(threadId), abandoned: true });
    mutex.unlock();
    assert.deepEqual(mutex.inspect(), { ...FREE, abandoned: true });
    mutex.tryLock();
    mutex.markConsistent();
    mutex.unlock();
    assert.deepEqual(mutex.inspect(), FREE);
  }),
);

test(
  'inspect() forgets the waiters that gave up',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const controller = new AbortController();
    mutex.tryLock();
    const aborted = mutex.lockAsync({ signal: controller.signal });
    const timedOut = [worker.call('lock', 20), mutex.lockAsync(20)];
    controller.abort();
    await assert.rejects(aborted);
    assert.deepEqual(await Promise.all(timedOut), [false, false]);
    assert.deepEqual(mutex.inspect().waiters, []);
  }),
);

test(
  'inspect() changes nothing: neither the word nor the queue nor anybody’s turn',
  watched(async (_, threads) => {
    const { buffer, mutex, word } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const log = [];
    const first = mutex.lockAsync().then(() => log.push(1) && mutex.unlock());
    const second = mutex.lockAsync().then(() => log.push(2) && mutex.unlock());
    const blocked = worker.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 3);
    const before = word();
    for (let count = 0; count < 100; count++) mutex.inspect();
    assert.equal(word(), before);
    mutex.unlock();
    await Promise.all([first, second, blocked]);
    assert.deepEqual(log, [1, 2]);
  }),
);

test(
  'inspect() during heavy use gives whole snapshots, and holds do not overlap',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const witness = new Witness(buffer, 64);
    const data = { buffer, mutexOffset: OFFSET, witnessOffset: 64, ways: ['lock'], holds: 3000 };
    const workers = [threads.start('holds', data), threads.start('holds', data)];
    let isOver = false;
    const done = Promise.all(workers.map((worker) => worker.result)).finally(() => {
      isOver = true;
    });
    const ids = workers.map((worker) => worker.threadId);
    while (!isOver) {
      const { locked, ownerThreadId, abandoned, waiters } = mutex.inspect();
      assert.equal(locked, ownerThreadId !== null);
      assert.ok(ownerThreadId === null || ids.includes(ownerThreadId), String(ownerThreadId));
      assert.equal(abandoned, false);
      assert.ok(waiters.every((waiter) => ids.includes(waiter.threadId) && waiter.kind === 'blocking'));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await done;
    assert.deepEqual({ overlaps: witness.overlaps, count: witness.count }, { overlaps: 0, count: 6000 });
  }),
);
