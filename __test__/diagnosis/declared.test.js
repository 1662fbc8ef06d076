// Inspections, counts and queries are what the declarations say: each field, and no other.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const sablock = require('../../index.js');
const { startActors } = require('../helpers/actors.js');
const { declaredIn } = require('../helpers/declared.js');
const { createFolder } = require('../helpers/folder.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const { LockManager, inspectAll, stats } = sablock;
const misfits = declaredIn(
  'inspection.d.ts',
  'mutex.d.ts',
  'rwlock.d.ts',
  'semaphore.d.ts',
  'barrier.d.ts',
  'named.d.ts',
);

test('a value that is not as it is declared is found', () => {
  const one = { threadId: 0, mode: 'exclusive', count: 1 };
  assert.deepEqual(misfits(one, 'MutexHolder'), []);
  assert.deepEqual(misfits([{ ...one, count: null }], 'MutexHolder[]'), ['MutexHolder[][0].count: null is no number']);
  assert.deepEqual(misfits({ ...one, mode: 'shared' }, 'MutexHolder'), [
    `MutexHolder.mode: "shared" is no 'exclusive'`,
  ]);
  const { count, ...rest } = one;
  assert.deepEqual(misfits({ ...rest, more: 1 }, 'MutexHolder'), [
    'MutexHolder.more: not declared',
    'MutexHolder.count: not there',
  ]);
  assert.deepEqual(misfits('other', 'HoldMode').length, 1);
});

/** By kind: how it is made, what its inspection is, what holds it, and what waits, in a worker too. */
const KINDS = {
  Mutex: {
    type: 'MutexInspection',
    hold: (lock) => lock.tryLock(),
    want: (lock, options) => [lock.lockAsync(options)],
    block: (lock) => lock.lock(50),
  },
  RwLock: {
    type: 'RwLockInspection',
    hold: (lock) => lock.read.tryLock(),
    want: (lock, options) => [lock.write.lockAsync(options), lock.read.lockAsync(options)],
    block: (lock) => lock.read.lock(50),
  },
  Semaphore: {
    type: 'SemaphoreInspection',
    args: [2],
    hold: (lock) => lock.tryAcquire(2),
    want: (lock, options) => [lock.acquireAsync(1, options)],
    block: (lock) => lock.acquire(1, 50),
  },
  Barrier: {
    type: 'BarrierInspection',
    args: [9],
    hold: (lock) => lock.join(),
    want: (lock, options) => [lock.waitAsync(options)],
    block: (lock) => lock.wait(50),
  },
  Latch: {
    type: 'PrimitiveInspection',
    hold: (lock) => lock.enter(),
    want: (lock, options) => [lock.waitAsync(options)],
    block: (lock) => lock.wait(50),
  },
  Once: {
    type: 'PrimitiveInspection',
    hold: (lock) => {
      lock.run(() => new Promise(() => {}));
    },
    want: (lock, options) => [lock.run(() => {}, options)],
    block: (lock) => lock.runSync(() => {}, 50),
  },
};

for (const [kind, { type, args = [], hold, want, block }] of Object.entries(KINDS)) {
  test(
    `what inspect() and inspectAll() tell of a ${kind} is as it is declared, whoever holds it and waits`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      for (const name of [undefined, `declared ${kind}`]) {
        const buffer = new SharedArrayBuffer(sablock[kind].BYTES);
        const [actor] = await startActors(threads, 1, buffer);
        const lock = new sablock[kind](buffer, 0, ...args, { name });
        const check = () => assert.deepEqual(misfits(lock.inspect(), type), []);
        check();
        await actor.do(
          (here, kind, args, hold) => {
            here.lock = new here.sablock[kind](here.buffer, 0, ...args);
            here.held = new Function(`return ${hold};`)()(here.lock);
          },
          kind,
          args,
          String(hold),
        );
        assert.equal(lock.inspect().holders.length, 1);
        check();
        const controller = new AbortController();
        const waits = want(lock, { signal: controller.signal });
        const [blocker] = await startActors(threads, 1, buffer);
        const blocked = blocker.do(
          (here, kind, args, block) => {
            const lock = new here.sablock[kind](here.buffer, 0, ...args);
            try {
              new Function(`return ${block};`)()(lock);
            } catch {
              // The time is over.
            }
          },
          kind,
          args,
          String(block).replace(/\b50\b/, '60_000'),
        );
        blocked.catch(() => {});
        await threads.until('both wait', () => new Set(lock.inspect().waiters.map((waiter) => waiter.kind)).size === 2);
        check();
        const all = inspectAll();
        assert.equal(all.length, 1);
        assert.deepEqual(misfits(all, '(QueuedMutexInspection | QueuedPrimitiveInspection)[]'), []);
        controller.abort();
        await Promise.allSettled(waits);
        await Promise.all([actor.terminate(), blocker.terminate()]);
        check();
      }
    }),
  );
}

test(
  'what stats() and query() tell is as it is declared, in each scope',
  watched(async (t) => {
    assert.deepEqual(misfits(stats(), 'Stats'), []);
    for (const manager of [new LockManager(), new LockManager({ directory: createFolder(t) })]) {
      const held = [await manager.acquireAsync('a'), await manager.acquireAsync('b', { mode: 'shared' })];
      const waits = [manager.acquireAsync('a'), manager.acquireAsync('b')];
      let snapshot;
      do {
        snapshot = await manager.query();
        assert.deepEqual(misfits(snapshot, 'LockManagerSnapshot'), []);
      } while (snapshot.held.length !== 2 || snapshot.pending.length !== 2);
      for (const lock of held) lock.unlock();
      for (const lock of await Promise.all(waits)) lock.unlock();
    }
    assert.deepEqual(misfits(stats(), 'Stats'), []);
  }),
);
