// Four workers and the main thread change one plain counter in shared memory. The workers block until they hold the mutex.
// The main thread must not block: it awaits the mutex.

const { once } = require('node:events');
const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

const WORKERS = 4;
const INCREMENTS = 10_000;
const MAIN_INCREMENTS = 1000;

const runWorker = (buffer) => {
  const mutex = new Mutex(buffer, 0);
  const counter = new Int32Array(buffer, Mutex.BYTES, 1);
  for (let count = 0; count < INCREMENTS; count++) {
    mutex.lock();
    counter[0]++;
    mutex.unlock();
  }
};

const runMain = async () => {
  const buffer = new SharedArrayBuffer(Mutex.BYTES + Int32Array.BYTES_PER_ELEMENT);
  const mutex = new Mutex(buffer, 0);
  const counter = new Int32Array(buffer, Mutex.BYTES, 1);

  const workers = Array.from({ length: WORKERS }, () => new Worker(__filename, { workerData: buffer }));
  const ends = Promise.all(workers.map((worker) => once(worker, 'exit')));
  for (let count = 0; count < MAIN_INCREMENTS; count++) {
    await mutex.lockAsync();
    counter[0]++;
    mutex.unlock();
  }
  await ends;

  const expected = WORKERS * INCREMENTS + MAIN_INCREMENTS;
  console.log(`counter: ${counter[0]}, expected: ${expected}`);
  if (counter[0] !== expected) process.exitCode = 1;
};

if (isMainThread) runMain();
else runWorker(workerData);
