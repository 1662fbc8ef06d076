'use strict';
// `@rocicorp/lock` from npm: a readers-writer lock for the asynchronous tasks of one thread; no shared memory.

let RWLock;

class Lock {
  #acquire;
  #release;
  constructor(acquire) {
    this.#acquire = acquire;
  }

  async lockAsync() {
    this.#release = await this.#acquire();
    return true;
  }

  unlock() {
    this.#release();
  }
}

module.exports = {
  name: 'rocicorp-lock',
  oneThread: true,
  entry: { import: '@rocicorp/lock' },
  async load() {
    ({ RWLock } = await import('@rocicorp/lock'));
  },
  rwlock: {
    share: () => null,
    open() {
      const rwlock = new RWLock();
      return { read: new Lock(() => rwlock.read()), write: new Lock(() => rwlock.write()) };
    },
  },
};
