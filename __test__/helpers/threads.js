// Runs a test body beside worker threads and under a watchdog. A lock's bug looks like a hang, so every body has a limit:
// when it is over, the failure says what each worker and the main thread were doing, and all workers are ended.

const assert = require('node:assert/strict');
const { after } = require('node:test');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { createBoard, readBoard } = require('./board.js');
const { limit } = require('./limits.js');

const LIMIT_MS = 40_000;
const SPIN_LIMIT_MS = limit(20_000);
const END_LIMIT_MS = limit(20_000);
const DRAIN_MS = limit(10_000);

/** A thread that a test ends on purpose leaves promises that nobody awaits. */
const handled = (promise) => {
  promise.catch(() => {});
  return promise;
};

/** One worker thread that runs a body of `__test__/workers`. */
class Thread {
  /** Its code is to throw: that is part of the test. */
  isToFail = false;
  #worker;
  #board = createBoard();
  #pending = new Map();
  #nextCall = 0;
  #error;
  #hasExited = false;

  constructor(body, data, options) {
    this.body = body;
    this.#worker = new Worker(path.join(__dirname, '..', 'workers', `${body}.js`), {
      ...options,
      workerData: { ...data, board: this.#board },
    });
    this.threadId = this.#worker.threadId;
    this.started = new Promise((resolve) => this.#worker.once('online', resolve));
    this.result = this.#promise('result');
    this.exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#hasExited = true;
        const reason = this.#error ?? new Error(`${this.describe()} ended with code ${code}`);
        for (const { reject } of this.#pending.values()) reject(reason);
        this.#pending.clear();
        resolve({ code, error: this.#error });
      });
    });
    this.#worker.on('error', (error) => {
      this.#error = error;
    });
    this.#worker.on('message', ({ id, value, error }) => {
      const call = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) call?.resolve(value);
      else call?.reject(Object.assign(new Error(error.message), error));
    });
  }

  /** Has a puppet take one step, for example `call('lock', 50)` or, on the mutex at offset 8, `call(8, 'lock')`. */
  call(...step) {
    return handled(this.run([step]).then(([value]) => value));
  }

  /** Has a puppet take several steps one after the other, without hearing from the main thread in between. */
  run(steps) {
    const id = this.#nextCall++;
    const promise = this.#promise(id);
    if (this.#hasExited) this.#pending.get(id).reject(new Error(`${this.describe()} has ended`));
    else this.#worker.postMessage({ id, steps });
    return promise;
  }

  terminate() {
    return this.#worker.terminate();
  }

  /** The error that its code threw and nobody caught; undefined if none, or if it is to. */
  get failure() {
    return this.isToFail ? undefined : this.#error;
  }

  describe() {
    return `thread ${this.threadId} (${this.body}${this.#hasExited ? ', ended' : ''}): ${readBoard(this.#board)}`;
  }

  #promise(id) {
    return handled(new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject })));
  }
}

/** The threads of one test, and the flags in shared memory by which they tell each other how far they are. */
class Threads {
  flags = new Int32Array(new SharedArrayBuffer(256));
  #all = [];
  #waitingFor = 'running its own code';
  #isOver = false;

  start(body, data = {}, options = {}) {
    const thread = new Thread(body, { ...data, flags: this.flags }, options);
    this.#all.push(thread);
    return thread;
  }

  /** Starts workers that do what `call` and `run` tell them to, on mutexes of this buffer. */
  async puppets(count, buffer, options = {}) {
    const puppets = Array.from({ length: count }, () => this.start('puppet', { buffer }, options));
    await Promise.all(puppets.map((puppet) => puppet.call('get', 'byteOffset')));
    return puppets;
  }

  raise(flag) {
    Atomics.store(this.flags, flag, 1);
    Atomics.notify(this.flags, flag);
  }

  raised(flag) {
    return this.until(`flag ${flag} is raised`, () => Atomics.load(this.flags, flag) !== 0);
  }

  /** Keeps this thread's event loop busy until the flag is raised; returns whether it was. */
  spinUntilRaised(flag) {
    const giveUpAt = performance.now() + SPIN_LIMIT_MS;
    while (Atomics.load(this.flags, flag) === 0) {
      if (performance.now() > giveUpAt) return false;
    }
    return true;
  }

  /** Looks until the state is there; a thread that has failed will not bring it about. */
  async until(what, isThere) {
    this.#waitingFor = `waiting until ${what}`;
    while (!this.#isOver && !isThere()) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const thread = this.#all.find(({ failure }) => failure !== undefined);
      if (thread !== undefined && !isThere()) {
        throw new Error(`While main was ${this.#waitingFor}, ${thread.describe()} failed`, { cause: thread.failure });
      }
    }
    this.#waitingFor = `running on after "${what}"`;
  }

  /** Looks until at least `count` waiters are in the queue of `mutex`. */
  queued(mutex, count) {
    return this.until(
      `${count} are waiting at offset ${mutex.byteOffset}`,
      () => mutex.inspect().waiters.length >= count,
    );
  }

  /**
   * Has `wait` block for `lock`, and `close` close the circle; returns the error of `close`, and the promise of `wait`. A thread is in
   * the queue before it looks for circles: if it looks last, it is told instead, gives up what `close` waits for, and `undo` frees that.
   */
  async closeCircle(lock, wait, close, undo) {
    for (;;) {
      const waiting = handled(wait());
      await this.queued(lock, 1);
      const error = await close().then(
        () => null,
        (reason) => reason,
      );
      if (error !== null) return { error, waiting };
      await assert.rejects(waiting, { code: 'ERR_LOCK_DEADLOCK' });
      await undo();
    }
  }

  describe() {
    return [`main: ${this.#waitingFor}`, ...this.#all.map((thread) => thread.describe())].join('\n  ');
  }

  async end() {
    this.#isOver = true;
    const ends = Promise.all(this.#all.map((thread) => thread.terminate()));
    const expired = new Promise((resolve) => setTimeout(resolve, END_LIMIT_MS, 'expired').unref());
    if ((await Promise.race([ends, expired])) === 'expired') throw new Error(`Not ended:\n  ${this.describe()}`);
  }
}

/** Makes a test function of `body(t, threads)`. */
exports.watched = (body, milliseconds = LIMIT_MS) => {
  const most = limit(milliseconds);
  return async (t) => {
    const threads = new Threads();
    let timer;
    const expired = new Promise((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`The test was not done after ${most} ms:\n  ${threads.describe()}`));
      }, most);
    });
    try {
      await Promise.race([body(t, threads), expired]);
    } catch (error) {
      await threads.end().catch(({ message }) => t.diagnostic(message));
      throw error;
    } finally {
      clearTimeout(timer);
    }
    await threads.end();
  };
};

// Remains of a failed test would keep its file's process alive for ever.
after(() => {
  setTimeout(() => {
    console.error(`Still alive ${DRAIN_MS} ms after the last test: ${process.getActiveResourcesInfo().join(', ')}`);
    process.exit(1);
  }, DRAIN_MS).unref();
});
