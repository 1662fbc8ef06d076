// A pool of workers that take jobs from a ring buffer in shared memory. The main thread puts jobs in. The mutex protects the
// ring, and idle workers sleep in `Atomics.wait` on a counter of changes until there is a job.

const { once } = require('node:events');
const { setTimeout: pause } = require('node:timers/promises');
const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

const WORKERS = 3;
const JOBS = 2000;
const CAPACITY = 16;
const NO_MORE = -1;

/** A ring of numbers; `put` and `take` are called with the mutex held. */
class Ring {
  static BYTES = Mutex.BYTES + 4 * (3 + CAPACITY);
  #header;
  #slots;

  constructor(buffer) {
    this.mutex = new Mutex(buffer, 0);
    this.#header = new Int32Array(buffer, Mutex.BYTES, 3); // taken, put, changes
    this.#slots = new Int32Array(buffer, Mutex.BYTES + 12, CAPACITY);
  }

  put(job) {
    const [taken, put] = this.#header;
    if (put - taken === CAPACITY) return false;
    this.#slots[put % CAPACITY] = job;
    this.#header[1]++;
    Atomics.add(this.#header, 2, 1);
    Atomics.notify(this.#header, 2, 1);
    return true;
  }

  take() {
    const [taken, put] = this.#header;
    if (taken === put) return undefined;
    this.#header[0]++;
    return this.#slots[taken % CAPACITY];
  }

  /** Blocks a worker until it has a job. */
  waitForJob() {
    for (;;) {
      const changes = Atomics.load(this.#header, 2);
      const job = this.mutex.executeLockedSync(() => this.take());
      if (job !== undefined) return job;
      Atomics.wait(this.#header, 2, changes); // returns at once if a job was put in since `changes` was read
    }
  }
}

const runWorker = ({ buffer, squares }) => {
  const ring = new Ring(buffer);
  for (let job = ring.waitForJob(); job !== NO_MORE; job = ring.waitForJob()) squares[job] += job * job;
};

const runMain = async () => {
  const buffer = new SharedArrayBuffer(Ring.BYTES);
  const squares = new Float64Array(new SharedArrayBuffer(8 * JOBS));
  const ring = new Ring(buffer);
  const workers = Array.from({ length: WORKERS }, () => new Worker(__filename, { workerData: { buffer, squares } }));
  const ends = Promise.all(workers.map((worker) => once(worker, 'exit')));

  const put = async (job) => {
    while (!(await ring.mutex.executeLocked(() => ring.put(job)))) await pause(1);
  };
  for (let job = 0; job < JOBS; job++) await put(job);
  for (let count = 0; count < WORKERS; count++) await put(NO_MORE);
  await ends;

  const wrong = squares.findIndex((square, job) => square !== job * job);
  console.log(
    wrong === -1 ? `${JOBS} jobs, each done once by ${WORKERS} workers` : `job ${wrong} gave ${squares[wrong]}`,
  );
  if (wrong !== -1) process.exitCode = 1;
};

if (isMainThread) runMain();
else runWorker(workerData);
