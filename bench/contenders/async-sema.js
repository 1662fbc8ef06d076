'use strict';
// `async-sema` from npm: a semaphore for the asynchronous tasks of one thread; no shared memory.

let Sema;

class Permits {
  #sema;
  constructor(sema) {
    this.#sema = sema;
  }

  release() {
    this.#sema.release();
  }
}

class Semaphore {
  #sema;
  constructor(permits) {
    this.#sema = new Sema(permits);
  }

  tryAcquire() {
    return this.#sema.tryAcquire() === undefined ? null : new Permits(this.#sema);
  }

  async acquireAsync() {
    await this.#sema.acquire();
    return new Permits(this.#sema);
  }
}

module.exports = {
  name: 'async-sema',
  oneThread: true,
  entry: { require: 'async-sema' },
  load() {
    ({ Sema } = require('async-sema'));
  },
  semaphore: {
    share: () => null,
    open: (_, permits) => new Semaphore(permits),
  },
};
