// A user's program: a worker that blocks and a main thread that awaits, with the installed package.

const assert = require('node:assert');
const path = require('node:path');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

const home = path.dirname(require.resolve('sablock'));
const loaded = Object.keys(require.cache).filter((file) => file.startsWith(home + path.sep));
assert.deepStrictEqual(
  loaded,
  ['index.js', 'lib/load/core.js'].map((file) => path.join(home, file)),
);

const memory = isMainThread ? new SharedArrayBuffer(8) : workerData;
const mutex = new Mutex(memory, 0);
const count = new Int32Array(memory, 4, 1);

if (isMainThread) {
  const worker = new Worker(__filename, { workerData: memory });
  const ended = new Promise((resolve) => worker.on('exit', resolve));
  main(ended);
} else {
  for (let i = 0; i < 10_000; i++) {
    mutex.lock();
    count[0] += 1;
    mutex.unlock();
  }
}

async function main(ended) {
  for (let i = 0; i < 1000; i++) {
    await mutex.executeLocked(() => {
      count[0] += 1;
    });
  }
  assert.strictEqual(await ended, 0);
  assert.strictEqual(count[0], 11_000);
  console.log('The package works: require.');
}
