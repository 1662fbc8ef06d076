// Threads that want several locks each: calls for all of them never make a circle, and one with a thread that holds another is found.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { lockAllAsync, Mutex, RwLock } = require('../..');
const { BYTES } = require('../helpers/memory.js');
const { OFFSETS, createMutexes } = require('../helpers/several.js');
const { watched } = require('../helpers/threads.js');

const MAY_BLOCK = { allowMainThread: true };
// In the order of their places: a mutex, two RwLocks, and a lock of a table.
const [MUTEX, FIRST, SECOND, ROW] = OFFSETS;

const create = () => {
  const buffer = new SharedArrayBuffer(BYTES);
  return { buffer, first: new RwLock(buffer, FIRST, MAY_BLOCK), second: new RwLock(buffer, SECOND, MAY_BLOCK) };
};

/** Counts to 60, a turn of the event loop for each, while it holds what `locksIn` returns for a round. */
async function count(total, locksIn) {
  for (let round = 0; round < 60; round++) {
    const guard = await lockAllAsync(locksIn(round));
    const before = total[0];
    await nextTurn();
    total[0] = before + 1;
    guard.unlock();
  }
}

test(
  'threads that lock the same locks in any order never wait for each other in a circle',
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes();
    const workers = await threads.puppets(3, buffer);
    const rounds = Array.from({ length: 60 }, (_, round) => round);
    const orders = [OFFSETS, [...OFFSETS].reverse(), [24, 8, 32, 16]];
    const total = new Int32Array(buffer, 64, 1);
    const runs = workers.map((worker, index) =>
      worker.run(
        rounds.flatMap((round) => [
          [round % 2 ? 'lockAll' : 'lockAllAsync', orders[(index + round) % 3]],
          ['unlockAll'],
        ]),
      ),
    );
    await count(total, (round) => (round % 2 ? mutexes : [...mutexes].reverse()));
    await Promise.all(runs);
    assert.equal(total[0], 60);
    assert.ok(mutexes.every((mutex) => mutex.tryLock()));
  }),
);

test(
  'a circle through lockAll() is found, and the thread that finds it holds none of its locks',
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes();
    const [one, other] = await threads.puppets(2, buffer);
    await one.call(32, 'lock');
    // It holds 8 and 16, and waits for 24.
    await other.call(24, 'lock');
    const { error, waiting } = await threads.closeCircle(
      mutexes[2],
      () => one.call('lockAll', [8, 16, 24]),
      () => other.call(8, 'lock'),
      () => other.call(8, 'unlock'),
    );
    assert.equal(error.code, 'ERR_LOCK_DEADLOCK');
    await other.call(24, 'unlock');
    assert.deepEqual(await waiting, []);
    await one.call('unlockAll');
    // And found by lockAll itself.
    await one.call(8, 'lock');
    const found = await threads.closeCircle(
      mutexes[0],
      () => other.call(40, 'lockInside', 8),
      () => one.call('lockAll', [36, 40]),
      () => one.call('unlockAll'),
    );
    assert.equal(found.error.code, 'ERR_LOCK_DEADLOCK');
    assert.equal(new Mutex(buffer, 36).isLocked, false);
    await one.call(8, 'unlock');
    await found.waiting;
  }),
);

test(
  'threads that lock mutexes and RwLocks in any order and mode never wait for each other in a circle',
  watched(async (_, threads) => {
    const { buffer, first, second } = create();
    const mutex = new Mutex(buffer, MUTEX, MAY_BLOCK);
    const workers = await threads.puppets(3, buffer);
    const lists = [
      [MUTEX, [FIRST, 'write'], [SECOND, 'read']],
      [[SECOND, 'write'], [FIRST, 'read'], ROW],
      [ROW, [FIRST, 'read'], [SECOND, 'read'], MUTEX],
      [
        [SECOND, 'write'],
        [FIRST, 'write'],
      ],
    ];
    const runs = workers.map((worker, index) =>
      worker.run(
        Array.from({ length: 80 }, (_, round) => [
          [round % 2 ? 'lockAll' : 'lockAllAsync', lists[(index + round) % lists.length]],
          ['unlockAll'],
        ]).flat(),
      ),
    );
    const total = new Int32Array(buffer, 64, 1);
    await count(total, (round) => (round % 2 ? [second.write, mutex] : [first.read, second.write]));
    await Promise.all(runs);
    assert.equal(total[0], 60);
    total[0] = 0;
    assert.ok(new Int32Array(buffer).every((word) => word === 0));
  }),
);

test(
  'a circle through a reader and lockAll() is found, and the thread that finds it holds none of its locks',
  watched(async (_, threads) => {
    const { buffer, first, second } = create();
    const [one, other] = await threads.puppets(2, buffer);
    await one.call('rwlock', SECOND, 'read', 'lock');
    // It holds `first` to read, and waits for the reader of `second`.
    const wanted = [
      [FIRST, 'read'],
      [SECOND, 'write'],
    ];
    const { error, waiting } = await threads.closeCircle(
      second,
      () => other.call('lockAll', wanted),
      () => one.call('lockAll', [MUTEX, [FIRST, 'write']]),
      () => one.call('unlockAll'),
    );
    assert.equal(error.code, 'ERR_LOCK_DEADLOCK');
    assert.equal(new Mutex(buffer, MUTEX).isLocked, false);
    assert.equal(first.readers, 1);
    await one.call('rwlock', SECOND, 'read', 'unlock');
    assert.deepEqual(await waiting, []);
  }),
);
