'use strict';
// `async-mutex` from npm: for the asynchronous tasks of one thread; no shared memory.

let Mutex;

class Lock {
  #mutex = new Mutex();
  #release;

  async lockAsync() {
    this.#release = await this.#mutex.acquire();
    return true;
  }

  unlock() {
    this.#release();
  }

  executeLocked(fn) {
    return this.#mutex.runExclusive(fn);
  }
}

module.exports = {
  name: 'async-mutex',
  oneThread: true,
  entry: { require: 'async-mutex' },
  load() {
    ({ Mutex } = require('async-mutex'));
  },
  share: () => null,
  open: () => new Lock(),
};
