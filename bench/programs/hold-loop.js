'use strict';
// Takes one lock, or a permit of a semaphore, over and over until asked to stop. What the lock protects is a plain read, the hold, and a
// plain write: two holders at once lose counts. Of several permits, a hold beyond them is not counted. One look at the clock each turn, outside the lock, finds the longest wait.

const { join } = require('../lib/workers');
const { busyFor, threadNs, sharedNs } = require('../lib/clock');

/** A semaphore as a lock. */
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

join((contender, { kind, permits, memory, data, progress, slot, hold }) => {
  const lock = kind === undefined ? contender.open(memory, 0) : permitLock(contender[kind].open(memory, permits));
  const busy = busyFor(hold);
  let holds = 0;
  let longest = 0;

  function bodyBeside() {
    if (Atomics.add(data, 1, 1) < permits) Atomics.add(data, 0, 1);
    busy();
    Atomics.sub(data, 1, 1);
    progress[slot] = ++holds;
  }

  function bodyAlone() {
    const seen = data[0];
    busy();
    data[0] = seen + 1;
    progress[slot] = ++holds;
  }

  const body = kind !== undefined && permits > 1 ? bodyBeside : bodyAlone;
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
