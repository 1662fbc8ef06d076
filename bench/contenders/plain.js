'use strict';
// The plain mutex: what can be had in JavaScript alone, written as well as it can be. One word, three states; a
// locker that finds it taken marks it contended, so that an unlock without waiters costs one exchange and no call.
// Timeouts are kept across lost races by one monotonic deadline. What it cannot do is the reason for sablock:
// no owner, no fairness, no cancelling, and Atomics.waitAsync does not keep the event loop alive.

const { performance } = require('node:perf_hooks');

const UNLOCKED = 0;
const LOCKED = 1;
const CONTENDED = 2;

const forEver = () => Infinity;

/** One deadline, fixed now: a function that returns the milliseconds left until it. */
function timeLeft(timeout) {
  if (timeout === Infinity) return forEver;
  const deadline = performance.now() + timeout;
  return () => deadline - performance.now();
}

class PlainGuard {
  #mutex;
  constructor(mutex) {
    this.#mutex = mutex;
  }

  unlock() {
    const mutex = this.#mutex;
    if (mutex === null) return false;
    this.#mutex = null;
    mutex.unlock();
    return true;
  }
}

class PlainMutex {
  #word;
  constructor(buffer, byteOffset = 0) {
    this.#word = new Int32Array(buffer, byteOffset, 1);
  }

  tryLock() {
    return Atomics.compareExchange(this.#word, 0, UNLOCKED, LOCKED) === UNLOCKED;
  }

  lock(timeout) {
    return Atomics.compareExchange(this.#word, 0, UNLOCKED, LOCKED) === UNLOCKED || this.#lockContended(timeout);
  }

  async lockAsync(options) {
    return (
      Atomics.compareExchange(this.#word, 0, UNLOCKED, LOCKED) === UNLOCKED ||
      this.#lockContendedAsync(options?.timeout)
    );
  }

  unlock() {
    const was = Atomics.exchange(this.#word, 0, UNLOCKED);
    if (was !== LOCKED) this.#unlockContended(was);
  }

  acquire() {
    this.lock();
    return new PlainGuard(this);
  }

  async executeLocked(fn) {
    await this.lockAsync();
    try {
      return await fn();
    } finally {
      this.unlock();
    }
  }

  executeLockedSync(fn) {
    this.lock();
    try {
      return fn();
    } finally {
      this.unlock();
    }
  }

  #lockContended(timeout = Infinity) {
    const left = timeLeft(timeout);
    while (Atomics.exchange(this.#word, 0, CONTENDED) !== UNLOCKED) {
      const ms = left();
      if (ms <= 0) return false;
      Atomics.wait(this.#word, 0, CONTENDED, ms);
    }
    return true;
  }

  async #lockContendedAsync(timeout = Infinity) {
    const left = timeLeft(timeout);
    while (Atomics.exchange(this.#word, 0, CONTENDED) !== UNLOCKED) {
      const ms = left();
      if (ms <= 0) return false;
      const wait = Atomics.waitAsync(this.#word, 0, CONTENDED, ms);
      if (wait.async) await wait.value;
    }
    return true;
  }

  #unlockContended(was) {
    if (was === UNLOCKED) throw new Error('Unlocked a mutex that nobody held');
    Atomics.notify(this.#word, 0, 1);
  }
}

class PlainPermit {
  #semaphore;
  constructor(semaphore) {
    this.#semaphore = semaphore;
  }

  release() {
    const semaphore = this.#semaphore;
    this.#semaphore = null;
    semaphore?.release();
  }
}

/** The number of permits that are free, and of threads that sleep. */
class PlainSemaphore {
  #words;
  constructor(buffer) {
    this.#words = new Int32Array(buffer);
  }

  tryAcquire() {
    const words = this.#words;
    for (;;) {
      const free = Atomics.load(words, 0);
      if (free === 0) return null;
      if (Atomics.compareExchange(words, 0, free, free - 1) === free) return new PlainPermit(this);
    }
  }

  acquire() {
    for (;;) {
      const permit = this.tryAcquire();
      if (permit !== null) return permit;
      Atomics.add(this.#words, 1, 1);
      Atomics.wait(this.#words, 0, 0);
      Atomics.sub(this.#words, 1, 1);
    }
  }

  release() {
    Atomics.add(this.#words, 0, 1);
    if (Atomics.load(this.#words, 1) > 0) Atomics.notify(this.#words, 0, 1);
  }
}

module.exports = {
  name: 'plain',
  entry: { require: __filename },
  load() {},
  semaphore: {
    share(permits) {
      const buffer = new SharedArrayBuffer(8);
      new Int32Array(buffer)[0] = permits;
      return buffer;
    },
    open: (buffer) => new PlainSemaphore(buffer),
  },
  share: (count) => new SharedArrayBuffer(4 * count),
  open: (buffer, index) => new PlainMutex(buffer, 4 * index),
};
