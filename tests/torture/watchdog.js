// A thread that ends the process if the main thread itself no longer turns.

const { Worker, isMainThread, workerData } = require('node:worker_threads');

if (isMainThread) {
  /** `feed()` must be called at least every `ms` milliseconds. */
  exports.startWatchdog = (ms) => {
    const bowl = new Int32Array(new SharedArrayBuffer(4));
    const watchdog = new Worker(__filename, { workerData: { bowl, ms } });
    watchdog.unref();
    const feed = () => {
      Atomics.add(bowl, 0, 1);
      Atomics.notify(bowl, 0);
    };
    setInterval(feed, 1000).unref();
    return { feed };
  };
} else {
  const { bowl, ms } = workerData;
  for (;;) {
    if (Atomics.wait(bowl, 0, Atomics.load(bowl, 0), ms) !== 'timed-out') continue;
    require('node:fs').writeSync(2, `The main thread has stood still for ${ms} ms.\n0 passed, 1 failed\n`);
    process.kill(process.pid, 'SIGABRT');
  }
}
