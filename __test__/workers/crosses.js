// Takes two of several mutexes in an order that differs from thread to thread, and counts how often it got through and
// how often it got the error of a deadlock.

const { DeadlockError, Mutex } = require('../..');
const { data, doing, finish } = require('../helpers/inside.js');

const mutexes = data.offsets.map((byteOffset) => new Mutex(data.buffer, byteOffset));
const count = mutexes.length;

const cross = (outer, inner) => {
  outer.lock();
  try {
    inner.lock();
    inner.unlock();
    return true;
  } catch (error) {
    if (error instanceof DeadlockError) return false;
    throw error;
  } finally {
    outer.unlock();
  }
};

finish(() => {
  const result = { through: 0, told: 0 };
  for (let round = 0; round < data.rounds; round++) {
    const outer = mutexes[(round + data.seed) % count];
    const inner = mutexes[(round + data.seed + 1) % count];
    doing(`round ${round}: ${outer.byteOffset}, then ${inner.byteOffset}`);
    result[cross(outer, inner) ? 'through' : 'told']++;
  }
  return result;
});
