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

module.exports = {
  name: 'plain',
  entry: { require: __filename },
  load() {},
  share: (count) => new SharedArrayBuffer(4 * count),
  open: (buffer, index) => new PlainMutex(buffer, 4 * index),
};
