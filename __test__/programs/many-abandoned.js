// A worker ends while it holds six mutexes; the main thread takes them all and ends by itself. Prints how long that took.

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Mutex } = require('../..');

const COUNT = 6;
const at = (buffer) => Array.from({ length: COUNT }, (_, index) => new Mutex(buffer, 4 * index));

if (isMainThread) {
  const buffer = new SharedArrayBuffer(4 * COUNT);
  new Worker(__filename, { workerData: buffer }).once('exit', () => {
    for (const mutex of at(buffer)) {
      // Where 'exit' comes before the end.
      while (!mutex.tryLock());
    }
    const since = performance.now();
    process.once('exit', () => console.log(JSON.stringify({ ms: performance.now() - since })));
  });
} else {
  for (const mutex of at(workerData)) mutex.lock();
}
