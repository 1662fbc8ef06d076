// Uses the timed mutex from a worker, against the main thread's use of it.

const { mutex: timedMutex } = require('../../examples/timed-mutex.js');
const { data, finish, raise, waitForFlag } = require('../helpers/inside.js');

finish(() => {
  const lock = timedMutex(data.memory, data.index);
  const first = lock.lock();
  raise(0);
  waitForFlag(1);
  lock.unlock();
  waitForFlag(2);
  const whileMainHolds = lock.lock(20);
  raise(3);
  const afterMain = lock.lock(30_000);
  lock.unlock();
  return { first, whileMainHolds, afterMain };
});
