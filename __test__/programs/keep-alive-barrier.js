// The main thread waits at a barrier, to which an unreferenced worker comes 200 ms later; the argument is the option `ref`.

const { once } = require('node:events');
const { Worker } = require('node:worker_threads');
const { Barrier } = require('../..');

const buffer = new SharedArrayBuffer(12);
const state = new Int32Array(buffer, 8, 1);
process.on('exit', () => console.log('exit'));

const main = async () => {
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { Barrier } = require(${JSON.stringify(require.resolve('../..'))});
    const state = new Int32Array(workerData, 8, 1);
    parentPort.postMessage('here');
    Atomics.wait(state, 0, 0);
    Atomics.wait(state, 0, 1, 200);
    new Barrier(workerData, 0, 2).wait();
  `;
  const worker = new Worker(code, { eval: true, workerData: buffer });
  await once(worker, 'message');
  worker.unref();
  new Barrier(buffer, 0, 2)
    .waitAsync({ ref: process.argv[2] === 'true' })
    .then((index) => console.log(`passed ${index}`));
  Atomics.store(state, 0, 1);
  Atomics.notify(state, 0);
  console.log('waiting');
};

main();
