// A cache that eight workers read, each blocking for its turns, and that the main thread rewrites by awaiting its own. The
// workers are terminated at random and replaced: the holds of a reader that ends go back by themselves, so that the writer always
// gets in, and no reader ever sees an entry that is half-written.

const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const { RwLock } = require('..');

const ENTRIES = 64;
const READERS = 8;
const VERSIONS = 60;
const LONGEST_LIFE_MS = 150;

/** The offsets of the lock, of what the readers have counted, and of the entries. */
const LOOKS = RwLock.BYTES;
const TORN = LOOKS + 4;
const CACHE = TORN + 4;

function look(buffer) {
  const rw = new RwLock(buffer, 0, { name: 'cache' });
  const counts = new Int32Array(buffer, LOOKS, 2);
  const cache = new Int32Array(buffer, CACHE, ENTRIES);
  parentPort.postMessage('reads from now on');
  for (;;) {
    rw.read.executeLockedSync(() => {
      if (cache.some((entry) => entry !== cache[0])) Atomics.add(counts, 1, 1);
      Atomics.add(counts, 0, 1);
    });
  }
}

async function main() {
  const buffer = new SharedArrayBuffer(CACHE + 4 * ENTRIES);
  const rw = new RwLock(buffer, 0, { name: 'cache' });
  const counts = new Int32Array(buffer, LOOKS, 2);
  const cache = new Int32Array(buffer, CACHE, ENTRIES);
  let isOver = false;
  let ended = 0;

  const keepOneReading = async () => {
    while (!isOver) {
      const worker = new Worker(__filename, { workerData: buffer });
      await new Promise((resolve) => worker.once('message', resolve));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_LIFE_MS));
      await worker.terminate();
      ended += 1;
    }
  };
  const readers = Array.from({ length: READERS }, keepOneReading);

  let longestMs = 0;
  for (let version = 1; version <= VERSIONS || ended < READERS || Atomics.load(counts, 0) === 0; version++) {
    const since = performance.now();
    await rw.write.executeLocked(() => {
      longestMs = Math.max(longestMs, performance.now() - since);
      // One entry after the other: whoever looked now would see two versions.
      for (let index = 0; index < ENTRIES; index++) cache[index] = version;
    });
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  isOver = true;
  await Promise.all(readers);

  const [looks, torn] = counts;
  const { holders } = rw.inspect();
  console.log(
    `${looks} looks, ${torn} of them torn; ${ended} readers were terminated, ${holders.length} holds are left.`,
  );
  console.log(`The writer waited ${longestMs.toFixed(1)} ms at most.`);
  if (torn > 0 || holders.length > 0 || rw.readers > 0) process.exitCode = 1;
}

if (isMainThread) main();
else look(workerData);
