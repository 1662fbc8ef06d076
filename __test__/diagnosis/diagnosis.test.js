const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

test('a mutex knows its buffer and its byte offset, and keeps them', () => {
  const buffer = new SharedArrayBuffer(16);
  const mutex = new Mutex(buffer, 8);
  assert.equal(mutex.buffer, buffer);
  assert.equal(mutex.byteOffset, 8);
  assert.equal(Reflect.set(mutex, 'byteOffset', 4), false);
  assert.equal(Reflect.set(mutex, 'buffer', new SharedArrayBuffer(16)), false);
  assert.deepEqual([mutex.byteOffset, mutex.buffer], [8, buffer]);
});

test('a mutex takes four bytes, aligned to four', () => {
  assert.equal(Mutex.BYTES, 4);
  assert.equal(Mutex.ALIGN, 4);
  assert.equal(Reflect.set(Mutex, 'BYTES', 8), false);
});

test(
  'isLocked is true exactly while some thread holds the mutex',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const seen = [mutex.isLocked];
    mutex.tryLock();
    seen.push(mutex.isLocked, await worker.call('get', 'isLocked'));
    mutex.unlock();
    seen.push(mutex.isLocked, await worker.call('get', 'isLocked'));
    await worker.call('acquire');
    seen.push(mutex.isLocked, await worker.call('get', 'isLocked'));
    await worker.call('unlockGuard');
    seen.push(mutex.isLocked);
    assert.deepEqual(seen, [false, true, true, false, false, true, true, false]);
  }),
);

test(
  'isHeldByThisThread is true only in the thread that holds the mutex',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const ask = async () => [mutex.isHeldByThisThread, await worker.call('get', 'isHeldByThisThread')];
    assert.deepEqual(await ask(), [false, false]);
    mutex.tryLock();
    assert.deepEqual(await ask(), [true, false]);
    mutex.unlock();
    await worker.call('lock');
    assert.deepEqual(await ask(), [false, true]);
    await worker.call('unlock');
    assert.deepEqual(await ask(), [false, false]);
  }),
);

test(
  'isHeldByThisThread is true for a hold of any kind, on every Mutex object of the word',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const other = new Mutex(buffer, OFFSET);
    const guard = mutex.tryAcquire();
    assert.equal(other.isHeldByThisThread, true);
    guard.unlock();
    assert.equal(await mutex.executeLocked(() => other.isHeldByThisThread), true);
    assert.equal(await mutex.lockAsync(), true);
    assert.equal(other.isHeldByThisThread, true);
    other.unlock();
    assert.equal(mutex.isHeldByThisThread, false);
  }),
);

test(
  'isLocked and isHeldByThisThread stay right while others wait',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const blocked = worker.run([['lock'], ['get', 'isHeldByThisThread'], ['unlock']]);
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 2);
    assert.deepEqual([mutex.isLocked, mutex.isHeldByThisThread], [true, true]);
    mutex.unlock();
    await pending;
    assert.deepEqual([mutex.isLocked, mutex.isHeldByThisThread], [true, true]);
    mutex.unlock();
    assert.deepEqual(await blocked, [true, true, undefined]);
    assert.deepEqual([mutex.isLocked, mutex.isHeldByThisThread], [false, false]);
  }),
);

test('a fresh mutex is not abandoned, held or not', () => {
  const { mutex } = createMutex();
  assert.equal(mutex.abandoned, false);
  mutex.tryLock();
  assert.equal(mutex.abandoned, false);
  mutex.unlock();
});
