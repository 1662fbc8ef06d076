// Loads the package in workers one after the other, never in the main thread: Node unloads an addon with the last worker
// that used it, unless the addon prevents it. Each worker ends with the mutex held, and so leaves its owner's word; none
// may come twice. With the argument `terminate`, each worker is terminated while it is blocked in lock().

const { once } = require('node:events');
const { Worker } = require('node:worker_threads');

const ROUNDS = 12;
const shouldTerminate = process.argv[2] === 'terminate';
const buffer = new SharedArrayBuffer(16);
const [word, state] = [new Int32Array(buffer, 0, 1), new Int32Array(buffer, 8, 1)];

const code = `
  const { Mutex } = require(${JSON.stringify(require.resolve('../..'))});
  const { workerData: { buffer, shouldTerminate } } = require('node:worker_threads');
  process.removeAllListeners('warning');
  const mutex = new Mutex(buffer);
  mutex.lock();
  mutex.markConsistent();
  if (shouldTerminate) {
    setInterval(() => {}, 1000);
    setImmediate(() => {
      Atomics.store(new Int32Array(buffer, 8, 1), 0, 1);
      mutex.lock(60_000);
    });
  }
`;

const main = async () => {
  const words = new Set();
  for (let round = 0; round < ROUNDS; round++) {
    state[0] = 0;
    const worker = new Worker(code, { eval: true, workerData: { buffer, shouldTerminate } });
    const gone = once(worker, 'exit');
    if (shouldTerminate) {
      while (Atomics.load(state, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      await worker.terminate();
    }
    await gone;
    if (word[0] === 0 || words.has(word[0])) throw new Error(`Round ${round} left ${word[0]} after ${[...words]}`);
    words.add(word[0]);
  }
  console.log('every owner was new');
};

main();
