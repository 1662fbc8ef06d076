'use strict';
// The pending scenario has very many asynchronous waits in one thread. Each way returns nanoseconds (or
// bytes) for each wait; all check that every wait ended, in order and as it should.

const { sleep, threadNs } = require('./clock');
const { has } = require('./contenders');

const cpuNs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
};

function deferred() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** Collects the ends of `count` waits; `all` resolves with the moment of the last one. */
class Ends {
  ended = 0;
  outOfOrder = 0;
  unexpected = 0;
  tooEarly = 0;
  #count;
  #all = deferred();
  constructor(count) {
    this.#count = count;
  }

  end(i, asExpected) {
    if (i !== this.ended) this.outOfOrder++;
    if (!asExpected) this.unexpected++;
    if (++this.ended === this.#count) this.#all.resolve(threadNs());
  }

  get all() {
    return this.#all.promise;
  }

  /** To be called just before the waits may end. */
  noneYet() {
    this.tooEarly = this.ended;
    return threadNs();
  }

  fault({ ordered = true } = {}) {
    if (this.tooEarly) return `${this.tooEarly} of the waits ended before they could`;
    if (this.unexpected) return `${this.unexpected} of the waits ended otherwise than they should`;
    if (ordered && this.outOfOrder) return `${this.outOfOrder} of the waits ended out of their order`;
    return undefined;
  }
}

/** All wait for one lock; each, once it has it, unlocks at once, so that they get it one after the other. */
async function handOn(lock, count) {
  await lock.lockAsync();
  const ends = new Ends(count);
  const start = threadNs();
  for (let i = 0; i < count; i++) {
    lock.lockAsync().then((got) => {
      ends.end(i, got);
      lock.unlock();
    });
  }
  const enqueued = threadNs();
  await sleep(0);
  const released = ends.noneYet();
  lock.unlock();
  const last = await ends.all;
  return { enqueue: (enqueued - start) / count, end: (last - released) / count, wrong: ends.fault() };
}

/** One wait for each of `count` locks, all of them held by now; then all are unlocked. */
async function oneEach(contender, count) {
  const memory = contender.share(count);
  const locks = Array.from({ length: count }, (_, i) => contender.open(memory, i));
  if (!has(locks[0], 'lockAsync', 'unlock')) return null;
  for (const lock of locks) await lock.lockAsync();
  const ends = new Ends(count);
  const start = threadNs();
  for (let i = 0; i < count; i++) {
    locks[i].lockAsync().then((got) => {
      ends.end(i, got);
      locks[i].unlock();
    });
  }
  const enqueued = threadNs();
  await sleep(0);
  const released = ends.noneYet();
  for (const lock of locks) lock.unlock();
  const last = await ends.all;
  return { enqueue: (enqueued - start) / count, end: (last - released) / count, wrong: ends.fault({ ordered: false }) };
}

/** All are aborted: by one signal together, or by one of its own each. */
async function abort(lock, count, together) {
  await lock.lockAsync();
  const reason = new Error('aborted');
  const one = new AbortController();
  const controllers = Array.from({ length: count }, () => (together ? one : new AbortController()));
  const ends = new Ends(count);
  const start = threadNs();
  for (let i = 0; i < count; i++) {
    lock.lockAsync({ signal: controllers[i].signal }).then(
      () => ends.end(i, false),
      (error) => ends.end(i, error === reason),
    );
  }
  const enqueued = threadNs();
  await sleep(0);
  const aborted = ends.noneYet();
  if (together) one.abort(reason);
  else for (const controller of controllers) controller.abort(reason);
  const last = await ends.all;
  lock.unlock();
  return { enqueue: (enqueued - start) / count, end: (last - aborted) / count, wrong: ends.fault() };
}

/** All time out, long after the last was enqueued: the processor's time for each, from enqueued to ended. */
async function timeOut(lock, count) {
  await lock.lockAsync();
  const timeout = 100 + count / 100;
  const ends = new Ends(count);
  let early = 0;
  const start = threadNs();
  for (let i = 0; i < count; i++) {
    const asked = threadNs();
    lock.lockAsync({ timeout }).then((got) => {
      if (threadNs() - asked < timeout * 1e6) early++;
      ends.end(i, got === false);
    });
  }
  const enqueued = threadNs();
  const before = cpuNs();
  await ends.all;
  const spent = cpuNs() - before;
  lock.unlock();
  const fault = early ? `${early} of the waits timed out too early` : ends.fault({ ordered: false });
  return { enqueue: (enqueued - start) / count, end: spent / count, wrong: fault };
}

/** Measures what all of them keep in memory, for each, promise included. Wants a fresh process with a small young generation. */
async function memory(lock, count) {
  await lock.lockAsync();
  const pending = new Array(count).fill(null);
  globalThis.gc();
  await sleep(20);
  const before = process.memoryUsage().rss;
  for (let i = 0; i < count; i++) pending[i] = lock.lockAsync();
  globalThis.gc();
  await sleep(20);
  globalThis.gc();
  const bytes = (process.memoryUsage().rss - before) / count;
  lock.unlock();
  for (const wait of pending) {
    await wait;
    lock.unlock();
  }
  return { bytes };
}

/**
 * A lock's asynchronous face on nothing but a queue of promises, one listener for each signal and a setTimeout for
 * each timeout: what these cost by themselves.
 */
class PromiseQueue {
  #waiting = [];
  #next = 0;
  #held = false;
  #signals = new WeakMap();

  lockAsync(options) {
    if (!this.#held) {
      this.#held = true;
      return Promise.resolve(true);
    }
    const { promise, resolve } = deferred();
    if (options?.signal) this.#rejectOnAbort(resolve, options.signal);
    else if (options?.timeout)
      setTimeout(resolve, options.timeout + 1, false); // it fires up to 1 ms early
    else this.#waiting.push(resolve);
    return promise;
  }

  unlock() {
    if (this.#next === this.#waiting.length) this.#held = false;
    else this.#waiting[this.#next++](true);
  }

  #rejectOnAbort(resolve, signal) {
    const cancelled = this.#signals.get(signal);
    if (cancelled) return cancelled.push(resolve);
    const resolves = [resolve];
    this.#signals.set(signal, resolves);
    signal.addEventListener(
      'abort',
      () => {
        for (const cancel of resolves) cancel(Promise.reject(signal.reason));
      },
      { once: true },
    );
  }
}

module.exports = { handOn, oneEach, abort, timeOut, memory, PromiseQueue };
