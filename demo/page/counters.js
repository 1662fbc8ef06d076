// The counters of the page and the workers that change them: starts jobs, knows what the totals must become, and reads
// what they are. Knows nothing of HTTP.

const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { createRegion } = require('../increments.js');

const NAMES = ['no lock', 'Atomics', 'mutex'];
const STEPS_OF_WORK = 100; // about a microsecond for each change, so that there is something to look at
const MOST_CHANGES = 2 ** 31 - 1; // what an Int32Array can count

/** What the state of the counters does not allow, or nobody can do; the message is for the person at the page. */
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

  /** Has each worker change a counter by 1 or -1; beside what it does already. */
  start(name, by) {
    const index = NAMES.indexOf(name);
    if (index < 0) throw new Refusal(`There is no counter "${name}".`);
    if (by !== 1 && by !== -1) throw new Refusal('A counter is changed by 1 or by -1.');
    const counter = this.#counters[index];
    const started = counter.started + this.#workers.length * this.#changes;
    if (started > MOST_CHANGES) throw new Refusal('That is as far as 32 bits count. Reset the counters first.');

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

  /** Sets all counters to zero; refused while workers run. */
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

  /** How everything stands. What is running is seen first, so that the totals of a counter at rest are its last. */
  async look(signal) {
    const { isRunning } = this;
    const threads = this.#threads();
    const counters = this.#counters.map((counter, index) => ({
      ...this.#standing(counter),
      done: this.#progress[index],
    }));
    const reading = this.#read(signal);
    const inspection = this.#mutex.inspect(); // after asking, so that this thread is seen to wait, too
    const counts = await reading;
    counters.forEach((counter, index) => {
      counter.count = counts[index];
    });
    // At rest only this thread's own read would be seen.
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

  /** Reads the counters in the order of `NAMES`, each as its way asks for; the mutex's under the lock. */
  async #read(signal) {
    const [unguarded, atomic, guarded] = this.#counters.map(({ region }) => region.counter);
    const underLock = await this.#mutex.executeLocked(() => guarded[0], { signal });
    return [unguarded[0], Atomics.load(atomic, 0), underLock];
  }

  /** Ends the workers, wherever they are. */
  async end() {
    await Promise.all(this.#workers.map(({ thread }) => thread.terminate()));
  }
};

/** Says of each thread what it does at the mutex, or beside it. */
const withStates = (threads, { ownerThreadId, waiters }) =>
  threads.map(({ name, threadId, isRunning }) => {
    const waiter = waiters.find((each) => each.threadId === threadId);
    if (threadId === ownerThreadId) return { name, state: 'holds' };
    if (waiter) return { name, state: waiter.kind === 'async' ? 'awaits' : 'blocked', waitedMs: waiter.waitedMs };
    return { name, state: isRunning ? 'runs' : 'idle' };
  });
