// The shared memory of the counter demo, and the three ways to add one to its counter. An increment is what happens to
// shared data everywhere: read it, do a little work, write it back.

const { Mutex } = require('sablock');

const CELL = Int32Array.BYTES_PER_ELEMENT;
const MUTEX_OFFSET = 0;
const COUNTER_OFFSET = MUTEX_OFFSET + Mutex.BYTES;
const START_OFFSET = COUNTER_OFFSET + CELL;
const STEPS_OF_WORK = 25;

exports.createRegion = (buffer = new SharedArrayBuffer(START_OFFSET + CELL)) => {
  const signal = new Int32Array(buffer, START_OFFSET, 1);
  return {
    mutex: new Mutex(buffer, MUTEX_OFFSET),
    counter: new Int32Array(buffer, COUNTER_OFFSET, 1),
    start() {
      Atomics.store(signal, 0, 1);
    },
    /** Awake, so that all workers begin at once: woken from sleep, they would work one after the other. */
    waitForStart() {
      while (Atomics.load(signal, 0) === 0);
    },
  };
};

let state = 1;
const work = () => {
  for (let step = 0; step < STEPS_OF_WORK; step++) state = (Math.imul(state, 1664525) + 1013904223) | 0;
};

const increment = (counter) => {
  const seen = counter[0];
  work();
  counter[0] = seen + 1;
};

const atomicIncrement = (counter) => {
  work();
  Atomics.add(counter, 0, 1);
};

/** How a worker adds one: it may block. */
exports.workerWays = {
  'no lock': ({ counter }) => increment(counter),
  Atomics: ({ counter }) => atomicIncrement(counter),
  mutex({ mutex, counter }) {
    mutex.lock();
    increment(counter);
    mutex.unlock();
  },
};

/** How the main thread adds one: it awaits the lock. Answers how many milliseconds that took. */
exports.mainWays = {
  'no lock'({ counter }) {
    increment(counter);
    return 0;
  },
  Atomics({ counter }) {
    atomicIncrement(counter);
    return 0;
  },
  async mutex({ mutex, counter }) {
    const askedAt = performance.now();
    await mutex.lockAsync();
    const waited = performance.now() - askedAt;
    increment(counter);
    mutex.unlock();
    return waited;
  },
};
