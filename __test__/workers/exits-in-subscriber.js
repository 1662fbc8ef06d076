'use strict';

// Gets the mutex by a promise, unlocks it in a subscriber, before the promise is settled, and exits there once another
// thread has locked it.

const { subscribe } = require('node:diagnostics_channel');
const { workerData } = require('node:worker_threads');
const { Mutex } = require('../..');

const mutex = new Mutex(workerData);
const stage = new Int32Array(workerData, 4, 1);
const [, PENDING, UNLOCKED, LOCKED_ELSEWHERE] = [0, 1, 2, 3];

subscribe('sablock:contended', () => {
  mutex.unlock();
  Atomics.store(stage, 0, UNLOCKED);
  while (Atomics.load(stage, 0) !== LOCKED_ELSEWHERE);
  process.exit();
});

mutex.lockAsync();
Atomics.store(stage, 0, PENDING);
