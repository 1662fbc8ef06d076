// The main thread waits for a permit; the argument is the option `ref`. If the wait is to keep the process alive, an
// unreferenced worker releases the permit 200 ms later.

const { once } = require('node:events');
const { Worker } = require('node:worker_threads');
const { Semaphore } = require('../..');

const buffer = new SharedArrayBuffer(8);
const state = new Int32Array(buffer, 4, 1);
process.on('exit', () => console.log('exit'));

const main = async () => {
  const code = `
    const { workerData } = require('node:worker_threads');
    const { Semaphore } = require(${JSON.stringify(require.resolve('../..'))});
    const state = new Int32Array(workerData, 4, 1);
    Atomics.wait(state, 0, 0);
    Atomics.wait(state, 0, 1, 200);
    new Semaphore(workerData, 0, 0).release();
  `;
  const ref = process.argv[2] === 'true';
  if (ref) {
    const worker = new Worker(code, { eval: true, workerData: buffer });
    await once(worker, 'online');
    worker.unref();
  }
  new Semaphore(buffer, 0, 0)
    .acquireAsync(1, { ref })
    .then(({ count }) => console.log(count === 1 ? 'granted' : `granted ${count}`));
  Atomics.store(state, 0, 1);
  Atomics.notify(state, 0);
  console.log('waiting');
};

main();
