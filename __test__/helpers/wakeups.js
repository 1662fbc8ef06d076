// The things that a thread can be woken from, in one form: `prepare` and `wake` run on the thread that wakes, `wait` on the one
// that waits, `waiting` counts those in the queue. A kind with `order` has several threads wait, one behind the other, each by
// the way that it names; who gets in lets in the next.

const sablock = require('../..');
const { binding } = require('../../lib/engine/thread.js');

const options = { allowMainThread: true };

/** An object for each thread, and how it waits there. */
const lock = (face, hold) => ({
  prepare: () => (hold ?? face).tryLock(),
  wake: () => (hold ?? face).unlock(),
  wait: () => face.lock() && face.unlock(),
  waitAsync: async () => (await face.lockAsync()) && face.unlock(),
});
const passage = (face, { prepare, wake }) => ({
  prepare,
  wake,
  wait: () => face.wait(),
  waitAsync: () => face.waitAsync(),
});
/** Makes permits, of two in all. */
function permitsOf(semaphore) {
  let permits;
  return {
    ...queueOf(semaphore),
    order: ['2', '1', '2'],
    prepare() {
      permits = semaphore.tryAcquire(2);
    },
    wake: () => permits.release(),
    wait: (count) => semaphore.acquire(Number(count)).release(),
    waitAsync: async (count) => (await semaphore.acquireAsync(Number(count))).release(),
  };
}

const queueOf = (face) => ({ waiting: () => face.inspect().waiters.length });

const kinds = {
  'a mutex'(buffer) {
    const mutex = new sablock.Mutex(buffer, 0, options);
    return { ...lock(mutex), ...queueOf(mutex) };
  },
  'a write lock behind a reader'(buffer) {
    const rw = new sablock.RwLock(buffer, 0, options);
    return { ...lock(rw.write, rw.read), ...queueOf(rw) };
  },
  'a read lock behind a writer'(buffer) {
    const rw = new sablock.RwLock(buffer, 0, options);
    return { ...lock(rw.read, rw.write), ...queueOf(rw) };
  },
  'readers and writers in turn'(buffer) {
    const rw = new sablock.RwLock(buffer, 0, options);
    const [read, write] = [lock(rw.read), lock(rw.write)];
    return {
      ...write,
      ...queueOf(rw),
      order: ['read', 'write', 'read', 'write'],
      wait: (way) => (way === 'read' ? read : write).wait(),
      waitAsync: (way) => (way === 'read' ? read : write).waitAsync(),
    };
  },
  'permits of a semaphore': (buffer) => permitsOf(new sablock.Semaphore(buffer, 0, 2, options)),
  'permits of a fair semaphore': (buffer) => permitsOf(new sablock.Semaphore(buffer, 0, 2, { ...options, fair: true })),
  'an event that stays set'(buffer) {
    const event = new sablock.ManualResetEvent(buffer, 0, options);
    const sides = { prepare: () => event.reset(), wake: () => event.set() };
    return { ...passage(event, sides), ...queueOf(event) };
  },
  'an event that lets one pass'(buffer) {
    const event = new sablock.AutoResetEvent(buffer, 0, options);
    const sides = { prepare: () => event.reset(), wake: () => event.set() };
    return { ...passage(event, sides), ...queueOf(event) };
  },
  'a latch'(buffer) {
    const latch = new sablock.Latch(buffer, 0, options);
    const sides = { prepare: () => latch.add(), wake: () => latch.countDown() };
    return { ...passage(latch, sides), ...queueOf(latch) };
  },
  'a barrier'(buffer) {
    const barrier = new sablock.Barrier(buffer, 0, 2, options);
    return { ...passage(barrier, { prepare() {}, wake: () => barrier.wait() }), ...queueOf(barrier) };
  },
  'an exchanger'(buffer) {
    const exchanger = new sablock.Exchanger(buffer, 0, options);
    return {
      prepare() {},
      wake: () => exchanger.exchange(1),
      wait: () => exchanger.exchange(2),
      waitAsync: () => exchanger.exchangeAsync(2),
      ...queueOf(exchanger),
    };
  },
  'a condition'(buffer) {
    const mutex = new sablock.Mutex(buffer, 0, options);
    const condition = new sablock.Condition(buffer, 4, options);
    const words = new Int32Array(buffer);
    return {
      prepare() {},
      wake: () => condition.notifyOne(),
      wait: () => mutex.executeLockedSync(() => condition.wait(mutex)),
      waitAsync: () => mutex.executeLocked(() => condition.waitAsync(mutex)),
      waiting: () => binding.waiting(words, 1),
    };
  },
  'wait()'(buffer) {
    const words = new Int32Array(buffer);
    return {
      prepare() {},
      wake: () => sablock.notify(words, 0),
      wait: () => sablock.wait(words, 0, 0),
      waitAsync: () => sablock.waitAsync(words, 0, 0).value,
      waiting: () => binding.waiting(words, 0),
    };
  },
  'several locks'(buffer) {
    const mutexes = [0, 4, 8].map((offset) => new sablock.Mutex(buffer, offset, options));
    return {
      ...lock(mutexes[1]),
      ...queueOf(mutexes[1]),
      wait: () => sablock.lockAll(mutexes).unlock(),
      waitAsync: async () => (await sablock.lockAllAsync(mutexes)).unlock(),
    };
  },
};

exports.names = Object.keys(kinds);

/** The kind on shared memory, as this thread sees it; `BYTES` of it. */
exports.kindNamed = (name, buffer) => ({ order: ['it'], ...kinds[name](buffer) });
exports.BYTES = 64;
