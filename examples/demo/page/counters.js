// The counters of the page and the workers that change them: starts jobs, computes the expected totals, and reads the real ones.
// Does not use HTTP.

const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { createRegion } = require('../increments.js');

const NAMES = ['no lock', 'Atomics', 'mutex'];
const STEPS_OF_WORK = 100; // about a microsecond for each change, slow enough to watch
const MOST_CHANGES = 2 ** 31 - 1; // what an Int32Array can count

/** A request that is invalid, or that the state of the counters does not allow. The page shows the message. */
class Refusal extends Error {}
exports.Refusal = Refusal;

exports.Counters = class Counters {
  #changes;
  #progress = new Int32Array(new SharedArrayBuffer(NAMES.length * Int32Array.BYTES_PER_ELEMENT));
  #counters = NAMES.map((name) => ({
    name,
    region: createRegion(undefined, STEPS_OF_WORK),
    expected: 0,
    started: 0,
    jobs: 0,
    startedAt: 0,
    endedAt: 0,
  }));
  #mutex = this.#counters[NAMES.indexOf('mutex')].region.mutex;
  #workers;

  /** `changes`: how often each worker changes the counter in one job. */
  constructor({ workers = 4, changes = 100_000 } = {}) {
    this.#changes = changes;
    const workerData = {
      counters: this.#counters.map(({ name, region }) => ({ name, buffer: region.buffer })),
      progress: this.#progress.buffer,
      stepsOfWork: STEPS_OF_WORK,
    };
    this.#workers = Array.from({ length: workers }, (_, index) => {
      const thread = new Worker(path.join(__dirname, 'worker.js'), { workerData });
      const worker = { name: `worker ${index + 1}`, thread, threadId: thread.threadId, jobs: 0 };
      thread.on('message', (counter) => this.#finish(worker, this.#counters[counter]));
      return worker;
    });
  }

  get isRunning() {
    return this.#counters.some(({ jobs }) => jobs > 0);
  }

  /** Makes each worker change a counter by 1 or -1, in addition to its other jobs. */
  start(name, by) {
    const index = NAMES.indexOf(name);
    if (index < 0) throw new Refusal(`There is no counter "${name}".`);
    if (by !== 1 && by !== -1) throw new Refusal('A counter is changed by 1 or by -1.');
    const counter = this.#counters[index];
    const started = counter.started + this.#workers.length * this.#changes;
    if (started > MOST_CHANGES)
      throw new Refusal('The counters have 32 bits, and this would be too much for them. Reset them first.');

    if (counter.jobs === 0) counter.startedAt = performance.now();
    counter.started = started;
    counter.expected += by * this.#workers.length * this.#changes;
    counter.jobs += this.#workers.length;
    for (const worker of this.#workers) {
      worker.jobs++;
      worker.thread.postMessage({ counter: index, by, changes: this.#changes });
    }
  }

  #finish(worker, counter) {
    worker.jobs--;
    counter.jobs--;
    counter.endedAt = performance.now();
  }

  /** Sets all counters to zero. Throws a Refusal while workers run. */
  reset() {
    return this.#mutex.executeLocked(() => {
      if (this.isRunning) throw new Refusal('The workers are running. Reset when they are done.');
      this.#progress.fill(0);
      for (const counter of this.#counters) {
        counter.region.counter[0] = 0;
        Object.assign(counter, { expected: 0, started: 0, startedAt: 0, endedAt: 0 });
      }
    });
  }

  /** The state of everything. Reads first what is running, so that the total of a counter that is not running is its final one. */
  async look(signal) {
    const { isRunning } = this;
    const threads = this.#threads();
    const counters = this.#counters.map((counter, index) => ({
      ...this.#standing(counter),
      done: this.#progress[index],
    }));
    const reading = this.#read(signal);
    const inspection = this.#mutex.inspect(); // after the call of #read, so that it shows this thread waiting too
    const counts = await reading;
    counters.forEach((counter, index) => {
      counter.count = counts[index];
    });
    // When nothing runs, `inspection` shows only this thread's own read.
    return { isRunning, counters, threads: withStates(threads, isRunning ? inspection : this.#mutex.inspect()) };
  }

  #threads() {
    const workers = this.#workers.map(({ name, threadId, jobs }) => ({ name, threadId, isRunning: jobs > 0 }));
    return [{ name: 'main', threadId: 0, isRunning: false }, ...workers];
  }

  #standing({ name, expected, started, jobs, startedAt, endedAt }) {
    const isRunning = jobs > 0;
    return { name, expected, started, isRunning, ms: (isRunning ? performance.now() : endedAt) - startedAt };
  }

  /** Reads the counters in the order of `NAMES`, each in its own way: that of the mutex under the lock. */
  async #read(signal) {
    const [unguarded, atomic, guarded] = this.#counters.map(({ region }) => region.counter);
    const underLock = await this.#mutex.executeLocked(() => guarded[0], { signal });
    return [unguarded[0], Atomics.load(atomic, 0), underLock];
  }

  /** Ends the workers, whatever they are doing. */
  async end() {
    await Promise.all(this.#workers.map(({ thread }) => thread.terminate()));
  }
};

/** Adds to each thread what it is doing with the mutex, or without it. */
const withStates = (threads, { ownerThreadId, waiters }) =>
  threads.map(({ name, threadId, isRunning }) => {
    const waiter = waiters.find((each) => each.threadId === threadId);
    if (threadId === ownerThreadId) return { name, state: 'holds' };
    if (waiter) return { name, state: waiter.kind === 'async' ? 'awaits' : 'blocked', waitedMs: waiter.waitedMs };
    return { name, state: isRunning ? 'runs' : 'idle' };
  });
