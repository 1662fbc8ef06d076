// Lets waits on thousands of buffers time out or be granted while nothing else refers to those buffers, with the garbage
// collector at work: their addresses are used again for other mutexes.

const { Mutex } = require('../..');

const ROUNDS = 20;
const EACH = 100;
const result = { timedOut: 0, granted: 0 };

const waitForTimeout = () => {
  const mutex = new Mutex(new SharedArrayBuffer(64));
  mutex.tryLock();
  return mutex.lockAsync(2);
};

const waitForGrant = () => {
  const mutex = new Mutex(new SharedArrayBuffer(64));
  mutex.tryLock();
  const pending = mutex.lockAsync();
  setImmediate(() => mutex.unlock());
  return pending;
};

const main = async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const timeouts = Array.from({ length: EACH }, waitForTimeout);
    const grants = Array.from({ length: EACH }, waitForGrant);
    globalThis.gc();
    for (const isHeld of await Promise.all(timeouts)) result.timedOut += isHeld ? 0 : 1;
    for (const isHeld of await Promise.all(grants)) result.granted += isHeld ? 1 : 0;
    globalThis.gc();
  }
  console.log(JSON.stringify(result));
};

main();
