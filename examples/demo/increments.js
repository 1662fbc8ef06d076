// The shared memory of the counter demo, and the three ways to change its counter by one. An increment reads the counter, does a
// little work, and writes the counter, as most changes of shared data do.

const { Mutex } = require('sablock');

const CELL = Int32Array.BYTES_PER_ELEMENT;
const MUTEX_OFFSET = 0;
const COUNTER_OFFSET = MUTEX_OFFSET + Mutex.BYTES;
const START_OFFSET = COUNTER_OFFSET + CELL;
const STEPS_OF_WORK = 25;

exports.createRegion = (buffer = new SharedArrayBuffer(START_OFFSET + CELL), stepsOfWork = STEPS_OF_WORK) => {
  const signal = new Int32Array(buffer, START_OFFSET, 1);
  return {
    buffer,
    stepsOfWork,
    mutex: new Mutex(buffer, MUTEX_OFFSET),
    counter: new Int32Array(buffer, COUNTER_OFFSET, 1),
    start() {
      Atomics.store(signal, 0, 1);
    },
    /** Spins, so that all workers begin at once. If they slept, they would wake up and finish one after the other. */
    waitForStart() {
      while (Atomics.load(signal, 0) === 0);
    },
  };
};

let state = 1;
const work = (steps) => {
  for (let step = 0; step < steps; step++) state = (Math.imul(state, 1664525) + 1013904223) | 0;
};

const change = ({ counter, stepsOfWork }, by) => {
  const seen = counter[0];
  work(stepsOfWork);
  counter[0] = seen + by;
};

const changeAtomically = ({ counter, stepsOfWork }, by) => {
  work(stepsOfWork);
  Atomics.add(counter, 0, by);
};

/** The ways in which a worker changes the counter, by one or by another number. It may block. */
exports.workerWays = {
  'no lock': (region, by = 1) => change(region, by),
  Atomics: (region, by = 1) => changeAtomically(region, by),
  mutex(region, by = 1) {
    region.mutex.lock();
    change(region, by);
    region.mutex.unlock();
  },
};

/** The ways in which the main thread adds one: it awaits the lock. Returns how many milliseconds it waited. */
exports.mainWays = {
  'no lock'(region) {
    change(region, 1);
    return 0;
  },
  Atomics(region) {
    changeAtomically(region, 1);
    return 0;
  },
  async mutex(region) {
    const askedAt = performance.now();
    await region.mutex.lockAsync();
    const waited = performance.now() - askedAt;
    change(region, 1);
    region.mutex.unlock();
    return waited;
  },
};
