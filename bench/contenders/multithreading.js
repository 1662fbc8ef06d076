'use strict';
// `multithreading` from npm: a mutex of two states over Atomics that hands out guards, and a readers-writer lock, a semaphore
// and a barrier of the same make. Each locks the first words of a buffer, so each has a buffer of its own.

let multithreading;

class Lock {
  #mutex;
  #guard;
  constructor(buffer) {
    this.#mutex = new multithreading.Mutex(undefined, buffer);
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

class ReadLock {
  #rwlock;
  #guard;
  constructor(rwlock) {
    this.#rwlock = rwlock;
  }

  lock() {
    this.#guard = this.#rwlock.blockingRead();
    return true;
  }

  async lockAsync() {
    this.#guard = await this.#rwlock.read();
    return true;
  }

  unlock() {
    this.#guard.dispose();
  }
}

class WriteLock {
  #rwlock;
  #guard;
  constructor(rwlock) {
    this.#rwlock = rwlock;
  }

  lock() {
    this.#guard = this.#rwlock.blockingWrite();
    return true;
  }

  async lockAsync() {
    this.#guard = await this.#rwlock.write();
    return true;
  }

  unlock() {
    this.#guard.dispose();
  }
}

class Permits {
  #guard;
  constructor(guard) {
    this.#guard = guard;
  }

  release() {
    this.#guard.dispose();
  }
}

class Semaphore {
  #semaphore;
  constructor(buffer) {
    this.#semaphore = new multithreading.Semaphore(0, buffer);
  }

  tryAcquire() {
    const guard = this.#semaphore.tryAcquire();
    return guard && new Permits(guard);
  }

  acquire() {
    return new Permits(this.#semaphore.blockingAcquire());
  }

  async acquireAsync() {
    return new Permits(await this.#semaphore.acquire());
  }
}

/** A buffer whose first words are these, as the package's own constructors would fill it. */
function bufferOf(...words) {
  const buffer = new SharedArrayBuffer(4 * words.length);
  new Int32Array(buffer).set(words);
  return buffer;
}

module.exports = {
  name: 'multithreading',
  minNode: 22,
  entry: { import: 'multithreading' },
  async load() {
    multithreading = await import('multithreading');
  },
  share: (count) => Array.from({ length: count }, () => bufferOf(0)),
  open: (buffers, index) => new Lock(buffers[index]),
  rwlock: {
    share: () => bufferOf(0),
    open(buffer) {
      const rwlock = new multithreading.RwLock(undefined, buffer);
      return { read: new ReadLock(rwlock), write: new WriteLock(rwlock) };
    },
  },
  semaphore: {
    // The permits and the number of those who wait.
    share: (permits) => bufferOf(permits, 0),
    open: (buffer) => new Semaphore(buffer),
  },
  barrier: {
    // A lock, the parties, how many are still to come, and the generation.
    share: (parties) => bufferOf(0, parties, parties, 0),
    open(buffer) {
      const barrier = new multithreading.Barrier(undefined, buffer);
      return { wait: () => barrier.blockingWait().isLeader };
    },
  },
};
