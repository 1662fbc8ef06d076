'use strict';

// Blocks in a microtask that Node still runs after an uncaught error, and reports what came of it in shared memory:
// messages are not delivered any more.

const { workerData } = require('node:worker_threads');
const { Mutex } = require('../..');

const { buffer, verb } = workerData;
const mutex = new Mutex(buffer);
const outcome = new Int32Array(buffer, 4, 1);
const ANSWERED = 1;
const THREW_THREAD_ENDING = 2;
const THREW_ANOTHER = 3;

queueMicrotask(() => {
  throw new Error('Thrown on purpose');
});
queueMicrotask(() => {
  try {
    mutex[verb](verb === 'executeLockedSync' ? () => {} : undefined);
    Atomics.store(outcome, 0, ANSWERED);
  } catch (error) {
    Atomics.store(outcome, 0, error.code === 'ERR_LOCK_THREAD_ENDING' ? THREW_THREAD_ENDING : THREW_ANOTHER);
  }
});
