'use strict';

// Blocks in a microtask that Node still runs after an uncaught error, and reports what came of it in shared memory:
// messages are not delivered any more.

const { workerData } = require('node:worker_threads');
const { lockAll, lockAllAsync, LockManager, Mutex, RwLock, locks } = require('../..');

const { buffer, directory, verb } = workerData;
const mutex = new Mutex(buffer);
const outcome = new Int32Array(buffer, 4, 1);
const ANSWERED = 1;
const THREW_THREAD_ENDING = 2;
const THREW_ANOTHER = 3;

const manager = directory === undefined ? null : new LockManager({ directory });
const rwlock = new RwLock(new SharedArrayBuffer(8));
const verbs = {
  inspectRwLock: () => rwlock.inspect(),
  executeLockedSync: () => mutex.executeLockedSync(() => {}),
  lockAll: () => lockAll([mutex]),
  lockAllAsync: () => lockAllAsync([mutex]),
  acquireAsyncOfNames: () => locks.acquireAsync(['free', 'held'], { timeout: 60_000 }),
  requestOfNames: () => locks.request(['free', 'held'], { timeout: 60_000 }, () => {}),
  acquireOfMachine: () => manager.acquire('free').unlock(),
  acquireOfDamaged: () => manager.acquire('damaged'),
  newManagerOfMachine: () => new LockManager({ directory }),
};

queueMicrotask(() => {
  throw new Error('Thrown on purpose');
});
const note = (value) => Atomics.store(outcome, 0, value);
const noteError = ({ code }) => note(code === 'ERR_LOCK_THREAD_ENDING' ? THREW_THREAD_ENDING : THREW_ANOTHER);

queueMicrotask(() => {
  try {
    const result = verbs[verb] ? verbs[verb]() : mutex[verb]();
    if (result instanceof Promise) result.then(() => note(ANSWERED), noteError);
    else note(ANSWERED);
  } catch (error) {
    noteError(error);
  }
});
