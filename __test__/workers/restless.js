// Takes mutexes in all ways, for ever, until it is terminated in the middle of something.

const { Mutex } = require('../..');
const { data, doing, raise } = require('../helpers/inside.js');

const mutexes = data.offsets.map((byteOffset) => new Mutex(data.buffer, byteOffset));
let state = data.seed;
const roll = (sides) => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 16) % sides;
};
const linger = () => {
  for (let steps = roll(5) * 1000; steps > 0; steps--) Math.sqrt(steps);
};

const verbs = {
  lock(mutex) {
    if (!mutex.lock(roll(2) === 0 ? 1000 : 0.1)) return;
    linger();
    mutex.unlock();
  },
  tryLock(mutex) {
    if (!mutex.tryLock()) return;
    linger();
    mutex.unlock();
  },
  async lockAsync(mutex) {
    const waits = Array.from({ length: 3 }, async () => {
      if (!(await mutex.lockAsync(roll(3) === 0 ? 1 : Infinity))) return;
      linger();
      mutex.unlock();
    });
    await Promise.all(waits);
  },
  async aborted(mutex) {
    const controller = new AbortController();
    const pending = mutex.lockAsync({ signal: controller.signal });
    setImmediate(() => controller.abort());
    try {
      await pending;
      mutex.unlock();
    } catch {}
  },
  executeLocked: (mutex) => mutex.executeLocked(() => new Promise((resolve) => setImmediate(resolve))),
  enter: (mutex) =>
    new Promise((resolve) => {
      mutex.enter((token) => {
        mutex.leave(token);
        resolve();
      });
    }),
};

const main = async () => {
  const names = Object.keys(verbs);
  for (;;) {
    const mutex = mutexes[roll(mutexes.length)];
    const name = names[roll(names.length)];
    doing(`${name} at ${mutex.byteOffset}`);
    await verbs[name](mutex);
    // It locks: from now on its end may come.
    raise(data.flag);
  }
};

process.removeAllListeners('warning');
main();
