// Blocks four workers in lock() on a mutex that the main thread holds, prints when it is about to end, and ends in the
// way that the first argument names. With a second argument, asynchronous waits of all threads are pending as well.

const { once } = require('node:events');
const { Worker } = require('node:worker_threads');
const { Mutex } = require('../..');

const [, , ending, waitsEverywhere] = process.argv;
const WORKERS = 4;
const buffer = new SharedArrayBuffer(16);
const mutex = new Mutex(buffer);
const other = new Mutex(buffer, 4);

const code = `
  const { workerData } = require('node:worker_threads');
  const { Mutex } = require(${JSON.stringify(require.resolve('../..'))});
  const { buffer, waitsEverywhere } = workerData;
  if (waitsEverywhere) for (let count = 0; count < 20; count++) new Mutex(buffer, 4).lockAsync(count % 2 ? undefined : 60_000);
  Atomics.add(new Int32Array(buffer, 8, 1), 0, 1);
  new Mutex(buffer).lock();
`;

const endings = {
  'process.exit()': () => process.exit(3),
  'an uncaught error': () => {
    throw new Error('Thrown on purpose');
  },
  'an unhandled rejection': () => Promise.reject(new Error('Rejected on purpose')),
  'an empty event loop': (workers) => {
    for (const worker of workers) worker.unref();
  },
};

const main = async () => {
  mutex.tryLock();
  other.tryLock();
  const workers = Array.from(
    { length: WORKERS },
    () => new Worker(code, { eval: true, workerData: { buffer, waitsEverywhere } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'online')));
  if (waitsEverywhere) for (let count = 0; count < 20; count++) mutex.lockAsync(count % 2 ? undefined : 60_000);
  const blocked = () => mutex.inspect().waiters.filter(({ kind }) => kind === 'blocking').length;
  while (blocked() < WORKERS) await new Promise((resolve) => setTimeout(resolve, 1));
  console.log(JSON.stringify({ endedAt: Date.now(), blocked: blocked() }));
  setImmediate(() => endings[ending](workers));
};

main();
