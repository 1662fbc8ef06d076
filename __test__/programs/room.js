// Has very much at once of what the first argument names, and gives it back. Prints how many bytes of the heap that has kept.

const assert = require('node:assert/strict');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { locks, Mutex } = require('../..');
const { setOuter } = require('../../lib/named/held-lock.js');
const { Releases } = require('../../lib/stores/retry.js');

const MANY = 200_000;
/** The objects that live on. */
const keep = [];

const kinds = {
  async waits(count) {
    const mutex = new Mutex(new SharedArrayBuffer(4));
    mutex.tryLock();
    const unlock = () => mutex.unlock();
    const waits = Array.from({ length: count }, () => mutex.lockAsync().then(unlock));
    mutex.unlock();
    await Promise.all(waits);
  },

  async names(count) {
    const held = await Promise.all(Array.from({ length: count }, (_, index) => locks.acquireAsync(`name ${index}`)));
    const ends = [
      (lock) => lock.unlock(),
      (lock) => locks.request(lock.name, { steal: true }, (mine) => mine.markConsistent()),
      // As of a store whose lease is over.
      (lock) => {
        setOuter(lock, { lost: { reason: 'expired', heldMs: 1 } });
        return lock.locked;
      },
    ];
    await Promise.all(held.map((lock, index) => ends[index % ends.length](lock)));
    assert(held.every((lock) => !lock.locked));
  },

  async releases(count) {
    const releases = new Releases();
    for (let index = 0; index < count; index++) releases.add(`name ${index}`, Promise.resolve());
    await releases.over();
    keep.push(releases);
  },
};

const used = async () => {
  for (let round = 0; round < 3; round++) {
    await nextTurn();
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
};

const main = async (use) => {
  // Code that is compiled and loaded by the first use stays.
  await use(MANY / 100);
  const before = await used();
  await use(MANY);
  console.log((await used()) - before);
};

main(kinds[process.argv[2]]);
