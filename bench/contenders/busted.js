'use strict';
// A lock that locks nothing. `node bench/run.js --contender busted` must end with an error in every scenario that
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

module.exports = {
  name: 'busted',
  entry: { require: __filename },
  load() {},
  share: (count) => new SharedArrayBuffer(4 * count),
  open: () => new BustedLock(),
};
