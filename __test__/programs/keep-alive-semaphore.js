// The main thread waits for a permit that an unreferenced worker releases 200 ms later; the argument is the option `ref`.

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
  const worker = new Worker(code, { eval: true, workerData: buffer });
  await once(worker, 'online');
  worker.unref();
  new Semaphore(buffer, 0, 0)
    .acquireAsync(1, { ref: process.argv[2] === 'true' })
    .then(({ count }) => console.log(count === 1 ? 'granted' : `granted ${count}`));
  Atomics.store(state, 0, 1);
  Atomics.notify(state, 0);
  console.log('waiting');
};

main();
