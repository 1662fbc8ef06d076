'use strict';
// Takes one lock, or the one permit of a semaphore, over and over until asked to stop. What the lock protects is a plain read, the hold, and a plain
// write: two holders at once lose counts. One look at the clock each turn, outside the lock, finds the longest wait.

const { join } = require('../lib/workers');
const { busyFor, threadNs, sharedNs } = require('../lib/clock');

/** A semaphore of one permit as a lock. */
function permitLock(semaphore) {
  let permit;
  return {
    lock() {
      permit = semaphore.acquire();
    },
    unlock() {
      permit.release();
    },
  };
}

join((contender, { isSemaphore, memory, data, progress, slot, hold }) => {
  const lock = isSemaphore ? permitLock(contender.semaphore.open(memory, 1)) : contender.open(memory, 0);
  const busy = busyFor(hold);
  let holds = 0;
  let longest = 0;

  function body() {
    const seen = data[0];
    busy();
    data[0] = seen + 1;
    progress[slot] = ++holds;
  }

  let last;
  function turn() {
    const now = threadNs();
    if (now - last > longest) longest = now - last;
    last = now;
  }

  function blocking(stopped) {
    while (!stopped()) {
      lock.lock();
      body();
      lock.unlock();
      turn();
    }
  }

  function callbacks(stopped) {
    while (!stopped()) {
      lock.executeLockedSync(body);
      turn();
    }
  }

  async function awaiting(stopped) {
    while (!stopped()) {
      await lock.lockAsync();
      body();
      lock.unlock();
      turn();
    }
  }

  const loop = lock.lock ? blocking : lock.executeLockedSync ? callbacks : awaiting;
  return async (stopped) => {
    const start = sharedNs();
    last = threadNs();
    await loop(stopped);
    return { holds, longestWait: Math.max(0, longest - hold * 1000), start, end: sharedNs() };
  };
});
