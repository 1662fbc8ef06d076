'use strict';
// Blocks in lock() (or in a bare Atomics.wait) until main lets go, once.

const { join } = require('../lib/workers');

join((contender, { memory, data, word, progress, slot }) => {
  const lock = contender?.open(memory, 0);
  return () => {
    progress[slot] = 1;
    if (lock) {
      lock.lock();
      data[0]++;
      lock.unlock();
    } else {
      Atomics.wait(word, 0, 0);
    }
    return true;
  };
});
