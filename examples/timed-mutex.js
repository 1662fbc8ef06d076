// A mutex with another interface: `mutex(memory, offset)` over an Int32Array, where the offset counts elements and not bytes.
// It replaces such a mutex in code that was written for one.

const { once } = require('node:events');
const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

const mutex = (memory, offset = 0) => {
  const held = new Mutex(memory.buffer, memory.byteOffset + memory.BYTES_PER_ELEMENT * offset);
  return {
    lock: (timeout = Infinity) => held.lock(timeout),
    lockAsync: (timeout = Infinity) => held.lockAsync(timeout),
    tryLock: () => held.tryLock(),
    unlock: () => held.unlock(),
  };
};

exports.mutex = mutex;

// The example: a worker holds the lock in element 3. The main thread tries to lock it, waits 20 ms for it, and then waits
// until the worker unlocks.

const LOCK = 3;
const HELD_BY_WORKER = 0;
const FREE_IT = 1;

const runWorker = (memory) => {
  const { lock, unlock } = mutex(memory, LOCK);
  lock();
  Atomics.store(memory, HELD_BY_WORKER, 1);
  Atomics.wait(memory, FREE_IT, 0);
  unlock();
};

const runMain = async () => {
  const memory = new Int32Array(new SharedArrayBuffer(32));
  const { lockAsync, tryLock, unlock } = mutex(memory, LOCK);
  const worker = new Worker(__filename, { workerData: { memory } });
  const ended = once(worker, 'exit');
  while (Atomics.load(memory, HELD_BY_WORKER) === 0) await new Promise(setImmediate);

  const results = [tryLock(), await lockAsync(20)];
  Atomics.store(memory, FREE_IT, 1);
  Atomics.notify(memory, FREE_IT);
  results.push(await lockAsync());
  unlock();
  await ended;

  console.log(`tryLock, lockAsync(20), lockAsync: ${results.join(', ')}`);
  if (results.join() !== 'false,false,true') process.exitCode = 1;
};

if (isMainThread && require.main === module) runMain();
else if (workerData?.memory && require.main === module) runWorker(workerData.memory);
