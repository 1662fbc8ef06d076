'use strict';
// Node's own Web Locks, `require('node:worker_threads').locks`: asynchronous, by name, the hold lasts as long as a
// callback's promise. lock and unlock are made of it as its users make them.

const workerThreads = require('node:worker_threads');

const locks = workerThreads.locks;
let shared = 0;

class Lock {
  #name;
  #release;
  constructor(name) {
    this.#name = name;
  }

  lockAsync(options) {
    return new Promise((resolve, reject) => {
      const hold = () =>
        new Promise((release) => {
          this.#release = release;
          resolve(true);
        });
      locks.request(this.#name, { signal: options?.signal }, hold).catch(reject);
    });
  }

  unlock() {
    this.#release();
  }

  executeLocked(fn) {
    return locks.request(this.#name, fn);
  }
}

module.exports = {
  name: 'locks',
  knownWrong: 'Node 24.21 and 26.10 grant one exclusive lock to two threads now and then',
  entry: { require: 'node:worker_threads' },
  load() {
    if (!locks) throw new Error('this Node has no worker_threads.locks');
  },
  share: () => `bench-${process.pid}-${shared++}-`,
  open: (prefix, index) => new Lock(prefix + index),
};
