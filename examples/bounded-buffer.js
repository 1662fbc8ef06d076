// A bounded buffer. Producers are workers: they block while it is full. The consumer is the main thread: it awaits while the
// buffer is empty. A mutex protects the buffer; two conditions mean "not full" and "not empty".
//
// node examples/bounded-buffer.js [items] [producers] [batch]

const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Condition, Mutex } = require('sablock');

const CAPACITY = 1024;
const SLOTS = 5; // mutex, notFull, notEmpty, taken, put

class BoundedBuffer {
  static BYTES = 4 * (SLOTS + CAPACITY);
  #cells;
  #slots;
  #batch;

  /** `batch`: the largest number of items that are put in, or taken out, under one lock. */
  constructor(buffer, batch) {
    this.#batch = batch;
    this.mutex = new Mutex(buffer, 0);
    this.notFull = new Condition(buffer, 4);
    this.notEmpty = new Condition(buffer, 8);
    this.#cells = new Int32Array(buffer, 12, 2); // the numbers of items taken and put so far
    this.#slots = new Int32Array(buffer, 4 * SLOTS, CAPACITY);
  }

  get #size() {
    return (this.#cells[1] - this.#cells[0]) | 0;
  }

  /** Puts in the items from `from` to `end - 1`. Blocks this worker while there is no room. */
  put(from, end) {
    for (let next = from; next < end; ) {
      const guard = this.mutex.acquire();
      this.notFull.waitFor(this.mutex, () => this.#size < CAPACITY);
      const count = Math.min(end - next, CAPACITY - this.#size, this.#batch);
      for (let i = 0; i < count; i++) this.#slots[(this.#cells[1]++ >>> 0) % CAPACITY] = next++;
      guard.unlock();
      this.notEmpty.notifyOne();
    }
  }

  /** Takes the items that are there, up to a batch. Waits until there is one. */
  async take() {
    const guard = await this.mutex.acquireAsync();
    await this.notEmpty.waitForAsync(this.mutex, () => this.#size > 0);
    const items = [];
    while (this.#size > 0 && items.length < this.#batch) items.push(this.#slots[(this.#cells[0]++ >>> 0) % CAPACITY]);
    guard.unlock();
    this.notFull.notifyAll();
    return items;
  }
}

const main = async (items = 50_000, producers = 2, batch = 256) => {
  const buffer = new SharedArrayBuffer(BoundedBuffer.BYTES);
  const bounded = new BoundedBuffer(buffer, batch);
  const seen = new Uint8Array(items);
  const startedAt = performance.now();
  for (let index = 0; index < producers; index++) {
    const from = Math.floor((items * index) / producers);
    const end = Math.floor((items * (index + 1)) / producers);
    new Worker(__filename, { workerData: { buffer, batch, from, end } });
  }
  for (let taken = 0; taken < items; ) {
    for (const item of await bounded.take()) {
      seen[item]++;
      taken++;
    }
  }
  const wrong = seen.findIndex((times) => times !== 1);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(
    wrong === -1
      ? `${items} items of ${producers} blocking producers, each consumed once by the awaiting loop, in ${seconds} s`
      : `item ${wrong} was consumed ${seen[wrong]} times`,
  );
  if (wrong !== -1) process.exitCode = 1;
};

if (isMainThread) main(...process.argv.slice(2).map(Number));
else new BoundedBuffer(workerData.buffer, workerData.batch).put(workerData.from, workerData.end);
