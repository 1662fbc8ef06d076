'use strict';
// `multithreading` from npm: a mutex of two states over Atomics that hands out guards. It locks the first word of a
// buffer, so each lock has a buffer of its own.

let Mutex;

class Lock {
  #mutex;
  #guard;
  constructor(buffer) {
    this.#mutex = new Mutex(undefined, buffer);
  }

  lock() {
    this.#guard = this.#mutex.blockingLock();
    return true;
  }

  async lockAsync() {
    this.#guard = await this.#mutex.lock();
    return true;
  }

  unlock() {
    this.#guard.dispose();
  }

  acquire() {
    const guard = this.#mutex.blockingLock();
    return { unlock: () => guard.dispose() };
  }
}

module.exports = {
  name: 'multithreading',
  minNode: 22,
  entry: { import: 'multithreading' },
  async load() {
    ({ Mutex } = await import('multithreading'));
  },
  share: (count) => Array.from({ length: count }, () => new SharedArrayBuffer(4)),
  open: (buffers, index) => new Lock(buffers[index]),
};
