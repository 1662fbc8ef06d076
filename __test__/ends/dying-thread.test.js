'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockManager, Mutex, locks } = require('../..');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const ANSWERED = 1;
const THREW_THREAD_ENDING = 2;

/** The outcome of a verb of ../workers/dying.js. */
async function outcomeOf({ buffer = new SharedArrayBuffer(8), ...rest }) {
  const workerData = { buffer, ...rest };
  const worker = new Worker(path.join(__dirname, '..', 'workers', 'dying.js'), { workerData });
  worker.on('error', () => {});
  await new Promise((resolve) => worker.on('exit', resolve));
  return new Int32Array(buffer)[1];
}

const VERBS = [
  'lock',
  'acquire',
  'executeLockedSync',
  'lockAll',
  'lockAllAsync',
  'acquireAsyncOfNames',
  'requestOfNames',
];

for (const verb of [...VERBS, 'inspect', 'inspectRwLock']) {
  const never = verb.startsWith('inspect') ? 'never says nothing' : 'never returns without the lock';
  test(`${verb}() in a thread that an uncaught error ends throws, and ${never}`, {
    timeout: limit(40_000),
    ...needs('code after the end'),
  }, async () => {
    const buffer = new SharedArrayBuffer(8);
    const mutex = new Mutex(buffer);
    mutex.tryLock();
    const name = await locks.acquireAsync('held');
    const outcome = await outcomeOf({ buffer, verb });
    name.unlock();
    assert.equal(outcome, THREW_THREAD_ENDING);
    assert.deepEqual(await locks.query(), { held: [], pending: [] });
    assert.equal(mutex.inspect().waiters.length, 0);
    mutex.unlock();
  });
}

test('a free lock of the machine is had, and unlocked, in a thread that an uncaught error ends', {
  timeout: limit(40_000),
  ...needs('code after the end'),
}, async (t) => {
  const directory = createFolder(t);
  assert.equal(await outcomeOf({ directory, verb: 'acquireOfMachine' }), ANSWERED);
  const lock = await new LockManager({ directory }).acquireAsync('free');
  assert.deepEqual([lock.abandoned, lock.unlock()], [false, true]);
});

for (const [verb, what] of [
  ['acquireOfDamaged', 'a lock of the machine whose file cannot be opened'],
  ['newManagerOfMachine', 'a manager of the machine'],
]) {
  test(`${what} is refused by name in a thread that an uncaught error ends`, {
    timeout: limit(40_000),
    ...needs('code after the end'),
  }, async (t) => {
    const directory = createFolder(t);
    fs.mkdirSync(path.join(directory, 'v1-damaged.lock'));
    assert.equal(await outcomeOf({ directory, verb }), THREW_THREAD_ENDING);
  });
}

test("a listener of 'exit' runs before the thread's end has begun: it waits for the mutex, and gets it", {
  timeout: limit(40_000),
  ...needs('code after the end'),
}, async () => {
  const buffer = new SharedArrayBuffer(8);
  const mutex = new Mutex(buffer);
  mutex.tryLock();
  const worker = new Worker(path.join(__dirname, '..', 'workers', 'exit-listener.js'), { workerData: buffer });
  worker.on('error', () => {});
  const ended = new Promise((resolve) => worker.on('exit', resolve));
  while (mutex.inspect().waiters.length === 0) await new Promise(setImmediate);
  mutex.unlock();
  await ended;
  assert.equal(new Int32Array(buffer)[1], 1);
});

test('a thread that ends in a subscriber does not free the mutex that another thread has locked since', {
  timeout: limit(40_000),
  ...needs('ends in subscribers'),
}, async () => {
  const [PENDING, UNLOCKED, LOCKED_ELSEWHERE] = [1, 2, 3];
  const buffer = new SharedArrayBuffer(8);
  const stage = new Int32Array(buffer, 4, 1);
  const reaches = async (value) => {
    while (Atomics.load(stage, 0) !== value) await new Promise(setImmediate);
  };
  const mutex = new Mutex(buffer);
  mutex.tryLock();
  const worker = new Worker(path.join(__dirname, '..', 'workers', 'exits-in-subscriber.js'), { workerData: buffer });
  const ended = new Promise((resolve) => worker.on('exit', resolve));
  await reaches(PENDING);
  mutex.unlock();
  await reaches(UNLOCKED);
  assert.equal(mutex.tryLock(), true);
  Atomics.store(stage, 0, LOCKED_ELSEWHERE);
  await ended;
  assert.equal(mutex.isHeldByThisThread, true);
  mutex.unlock();
  assert.equal(mutex.isLocked, false);
});
