'use strict';
// `async-rwlock` from npm: a readers-writer lock for the asynchronous tasks of one thread; no shared memory.

let RWLock;

class Lock {
  #acquire;
  #rwlock;
  constructor(rwlock, acquire) {
    this.#rwlock = rwlock;
    this.#acquire = acquire;
  }

  async lockAsync() {
    await this.#acquire();
    return true;
  }

  unlock() {
    this.#rwlock.unlock();
  }
}

module.exports = {
  name: 'async-rwlock',
  oneThread: true,
  entry: { require: 'async-rwlock' },
  load() {
    ({ RWLock } = require('async-rwlock'));
  },
  rwlock: {
    share: () => null,
    open() {
      const rwlock = new RWLock();
      return { read: new Lock(rwlock, rwlock.readLock), write: new Lock(rwlock, rwlock.writeLock) };
    },
  },
};
