'use strict';
// Locks that lock nothing. `node bench/run.js --contender busted` must end with an error in every scenario that
// says it checks exclusion: a check that cannot fail is no check.

class BustedLock {
  lock() {
    return true;
  }

  async lockAsync() {
    return true;
  }

  tryLock() {
    return true;
  }

  unlock() {}
}

class BustedSemaphore {
  tryAcquire() {
    return { release() {} };
  }

  acquire() {
    return this.tryAcquire();
  }

  async acquireAsync() {
    return this.tryAcquire();
  }
}

module.exports = {
  name: 'busted',
  entry: { require: __filename },
  load() {},
  share: (count) => new SharedArrayBuffer(4 * count),
  open: () => new BustedLock(),
  rwlock: {
    share: () => null,
    open: () => ({ read: new BustedLock(), write: new BustedLock() }),
  },
  semaphore: {
    share: () => null,
    open: () => new BustedSemaphore(),
  },
  barrier: {
    share: () => null,
    open: () => ({ wait: () => false }),
  },
};
