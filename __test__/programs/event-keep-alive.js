// Awaits an event of the class that the first argument names; a worker that keeps nothing alive sets it a moment later.

const { Worker } = require('node:worker_threads');
const sablock = require('../..');

const [, , type, ref] = process.argv;
const buffer = new SharedArrayBuffer(8);
const event = new sablock[type](buffer);
const started = new Int32Array(buffer, 4, 1);
const code = `
  const { workerData } = require('node:worker_threads');
  const sablock = require(${JSON.stringify(require.resolve('../..'))});
  const started = new Int32Array(workerData, 4, 1);
  const event = new sablock.${type}(workerData);
  Atomics.store(started, 0, 1);
  while (event.inspect().waiters.length === 0) Atomics.wait(started, 0, 1, 1);
  Atomics.wait(started, 0, 1, 200);
  event.set();
`;
const worker = new Worker(code, { eval: true, workerData: buffer });

const main = async () => {
  while (Atomics.load(started, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  worker.unref();
  event.waitAsync({ ref: ref === 'true' }).then(() => console.log('passed'));
  console.log('waiting');
};

main();
