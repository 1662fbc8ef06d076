// The published designs whose users are to find here what they know, each by its name.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex } = require('../..');
const { mutex: timedMutex } = require('../../examples/timed-mutex.js');
const { fibonacci } = require('../../examples/token-mutex-fibonacci.js');
const expected = require('../helpers/expected.js');
const { BYTES, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');
const { Witness } = require('../helpers/witness.js');

const createMemory = () => new Int32Array(new SharedArrayBuffer(BYTES), OFFSET - 40, 40);

test(
  'timed mutex: mutex(memory, offset) locks the element at that offset and no other',
  watched(async () => {
    const memory = createMemory();
    const lock = timedMutex(memory, 10);
    assert.equal(lock.tryLock(), true);
    assert.notEqual(memory[10], 0);
    assert.ok(memory.every((element, index) => index === 10 || element === 0));
    assert.equal(new Mutex(memory.buffer, memory.byteOffset + 40).isHeldByThisThread, true);
    lock.unlock();
    assert.equal(memory[10], 0);
  }),
);

test(
  'timed mutex: lock(timeout) and lockAsync(timeout) return whether they hold',
  watched(async (_, threads) => {
    const memory = createMemory();
    const lock = timedMutex(memory, 10);
    const worker = threads.start('timed-mutex', { memory, index: 10 });
    await threads.raised(0);
    assert.equal(lock.tryLock(), false, 'the worker holds');
    assert.equal(await lock.lockAsync(20), false);
    threads.raise(1);
    assert.equal(await lock.lockAsync(), true, 'the worker freed it, and waits for ever is the default');
    threads.raise(2);
    await threads.raised(3);
    lock.unlock();
    assert.deepEqual(await worker.result, { first: true, whileMainHolds: false, afterMain: true });
  }),
);

test(
  'async lock: workers lock(), the main thread runs executeLocked(), and totals are exact',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const witness = new Witness(buffer, 64);
    const lock = new Mutex(buffer, OFFSET);
    const data = { buffer, mutexOffset: OFFSET, witnessOffset: 64, ways: ['lock'], holds: 1000 };
    const workers = [threads.start('holds', data), threads.start('holds', data)];
    for (let hold = 0; hold < 200; hold++) await lock.executeLocked(() => witness.visit());
    await Promise.all(workers.map((worker) => worker.result));
    assert.deepEqual({ overlaps: witness.overlaps, count: witness.count }, { overlaps: 0, count: 2200 });
  }),
);

test('async lock: unlock() throws when the caller does not hold the lock', () => {
  const lock = new Mutex(new SharedArrayBuffer(BYTES), OFFSET);
  assert.throws(() => lock.unlock(), expected.notOwner(OFFSET));
});

test(
  'async lock: executeLocked() returns the result, awaits a promise, and unlocks when the callback throws',
  watched(async () => {
    const lock = new Mutex(new SharedArrayBuffer(BYTES), OFFSET);
    assert.equal(await lock.executeLocked(() => 'a value'), 'a value');
    let isDone = false;
    await lock.executeLocked(async () => {
      await nextTurn();
      isDone = lock.isHeldByThisThread;
    });
    assert.equal(isDone, true);
    await assert.rejects(
      lock.executeLocked(() => {
        throw new Error('From the callback');
      }),
      /From the callback/,
    );
    assert.equal(lock.isLocked, false);
  }),
);

test(
  'shared counter: four workers and main count exactly under the mutex and with Atomics',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const cells = new Int32Array(buffer, 0, 2);
    const increments = 20_000;
    const data = { buffer, mutexOffset: OFFSET, increments };
    const workers = Array.from({ length: 4 }, () => threads.start('counts', data));
    const mutex = new Mutex(buffer, OFFSET);
    let mine = 0;
    let isOver = false;
    const done = Promise.all(workers.map((worker) => worker.result)).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await mutex.lockAsync();
      cells[0]++;
      mutex.unlock();
      Atomics.add(cells, 1, 1);
      mine++;
      await nextTurn();
    }
    await done;
    assert.deepEqual([...cells], [4 * increments + mine, 4 * increments + mine]);
  }),
);

test(
  'token mutex: the Fibonacci series comes out right with the mutex',
  watched(async () => {
    assert.deepEqual(await fibonacci(7, new Mutex(new SharedArrayBuffer(4))), [0, 1, 1, 2, 3, 5, 8]);
  }),
);

test(
  'token mutex: without the mutex the same steps compute something else',
  watched(async () => {
    assert.notDeepEqual(await fibonacci(7), [0, 1, 1, 2, 3, 5, 8]);
  }),
);

test(
  'token mutex: callbacks run in order, and leave() throws on a wrong token',
  watched(async () => {
    const mutex = new Mutex(new SharedArrayBuffer(BYTES), OFFSET);
    const log = [];
    const tokens = [];
    for (const name of ['first', 'second']) {
      mutex.enter((token) => {
        log.push(name);
        tokens.push(token);
      });
    }
    while (tokens.length < 1) await nextTurn();
    assert.throws(() => mutex.leave({}), expected.notOwner(OFFSET));
    assert.deepEqual(log, ['first']);
    mutex.leave(tokens[0]);
    while (tokens.length < 2) await nextTurn();
    assert.throws(() => mutex.leave(tokens[0]), expected.notOwner(OFFSET));
    mutex.leave(tokens[1]);
    assert.deepEqual(log, ['first', 'second']);
  }),
);
