'use strict';
// V8's own Atomics.Mutex (--harmony-struct): a shared object, and a hold that lasts as long as a callback.
// Only some versions of V8 have lockAsync.

class Lock {
  #mutex;
  #release;
  constructor(mutex) {
    this.#mutex = mutex;
    if (typeof Atomics.Mutex.lockAsync === 'function') {
      this.lockAsync = () => this.#lockAsync();
      this.unlock = () => this.#release();
      this.executeLocked = (fn) => Atomics.Mutex.lockAsync(this.#mutex, fn);
    }
  }

  executeLockedSync(fn) {
    return Atomics.Mutex.lock(this.#mutex, fn);
  }

  #lockAsync() {
    return new Promise((resolve) => {
      Atomics.Mutex.lockAsync(
        this.#mutex,
        () =>
          new Promise((release) => {
            this.#release = release;
            resolve(true);
          }),
      );
    });
  }
}

module.exports = {
  name: 'atomics-mutex',
  nodeFlags: ['--harmony-struct'],
  entry: null,
  load() {
    if (typeof Atomics.Mutex !== 'function') throw new Error('this V8 has no Atomics.Mutex');
  },
  share: (count) => Array.from({ length: count }, () => new Atomics.Mutex()),
  open: (mutexes, index) => new Lock(mutexes[index]),
};
