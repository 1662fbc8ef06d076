// One case of what a pending waitAsync() keeps alive, named by the first argument. The notifier is a worker that is
// unreferenced; it notifies 200 ms after it was started, which is long after a process with nothing to do would have ended.

const { Worker } = require('node:worker_threads');
const { notify, waitAsync } = require('../..');

const array = new Int32Array(new SharedArrayBuffer(16));
process.on('exit', () => console.log('exit'));

const startNotifier = () => {
  const code = `
    const { workerData: array } = require('node:worker_threads');
    const { notify } = require(${JSON.stringify(require.resolve('../..'))});
    Atomics.wait(array, 1, 0, 200);
    while (notify(array, 0) === 0) Atomics.wait(array, 1, 0, 1);
  `;
  new Worker(code, { eval: true, workerData: array }).unref();
};

const cases = {
  notified() {
    startNotifier();
    waitAsync(array, 0, 0).value.then(console.log);
  },
  unreferenced() {
    waitAsync(array, 0, 0, undefined, { ref: false }).value.then(console.log);
  },
  mixed() {
    startNotifier();
    waitAsync(array, 0, 0).value.then(console.log);
    for (let count = 0; count < 3; count++) waitAsync(array, 2, 0, undefined, { ref: false });
    waitAsync(array, 2, 0, 5, { ref: false });
  },
  async 'timed-out'() {
    console.log(await waitAsync(array, 0, 0, 50).value);
  },
  async aborted() {
    const controller = new AbortController();
    setTimeout(() => controller.abort('aborted'), 20);
    await waitAsync(array, 0, 0, 1e9, { signal: controller.signal }).value.catch(console.log);
  },
  async 'by itself'() {
    const { value } = waitAsync(array, 0, 0);
    notify(array, 0);
    console.log(await value);
  },
};

cases[process.argv[2]]();
