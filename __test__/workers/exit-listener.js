// Blocks in a listener of 'exit' after an uncaught error, and reports what came of it in shared memory.

const { workerData } = require('node:worker_threads');
const { Mutex } = require('../..');

const mutex = new Mutex(workerData);
process.on('exit', () => {
  Atomics.store(new Int32Array(workerData), 1, mutex.lock(60_000) ? 1 : 2);
  mutex.unlock();
});
throw new Error('Thrown on purpose');
