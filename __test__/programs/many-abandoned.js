// A worker ends while it holds six mutexes; the main thread takes them all and ends by itself. Prints of each timer that is
// started meanwhile whether it keeps the process alive.

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Mutex } = require('../..');
const clock = require('../../lib/load/clock.js');

const COUNT = 6;
const at = (buffer) => Array.from({ length: COUNT }, (_, index) => new Mutex(buffer, 4 * index));

if (isMainThread) {
  const { setTimeout } = clock;
  const timers = [];
  clock.setTimeout = (...args) => {
    timers.push(setTimeout(...args));
    return timers.at(-1);
  };
  const buffer = new SharedArrayBuffer(4 * COUNT);
  new Worker(__filename, { workerData: buffer }).once('exit', () => {
    for (const mutex of at(buffer)) {
      // The event 'exit' may come before the end.
      while (!mutex.tryLock());
    }
    console.log(JSON.stringify(timers.map((timer) => timer.hasRef())));
  });
} else {
  for (const mutex of at(workerData)) mutex.lock();
}
