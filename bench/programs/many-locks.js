'use strict';
// Takes locks at random, one at a time, each with a counter of its own that it guards.

const { join } = require('../lib/workers');
const { sharedNs } = require('../lib/clock');
const { randomBelow } = require('../lib/random');

join((contender, { memory, data, count, slot }) => {
  const locks = Array.from({ length: count }, (_, i) => contender.open(memory, i));
  const pick = randomBelow(slot + 1);
  let holds = 0;

  let next = pick(count);

  /** The next lock is picked between the read and the write, so that two at once lose counts. */
  function inside(i) {
    const seen = data[i];
    next = pick(count);
    holds++;
    data[i] = seen + 1;
  }

  function blocking(stopped) {
    while (!stopped()) {
      const i = next;
      const lock = locks[i];
      lock.lock();
      inside(i);
      lock.unlock();
    }
  }

  function callbacks(stopped) {
    while (!stopped()) {
      const i = next;
      locks[i].executeLockedSync(() => inside(i));
    }
  }

  async function awaiting(stopped) {
    while (!stopped()) {
      const i = next;
      await locks[i].lockAsync();
      inside(i);
      locks[i].unlock();
    }
  }

  const loop = locks[0].lock ? blocking : locks[0].executeLockedSync ? callbacks : awaiting;
  return async (stopped) => {
    const start = sharedNs();
    await loop(stopped);
    return { holds, start, end: sharedNs() };
  };
});
