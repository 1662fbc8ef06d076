'use strict';
// Readers and writers share, in the scenarios about readers-writer locks, a lock of one of three kinds, and two words that
// a writer writes one after the other, so that who is inside beside it sees them differ.

const { byName } = require('./contenders');

/** Nothing to lock. */
const NO_LOCK = { lock: () => true, unlock() {} };

// Each opens `{ read, write }` in shared memory.
const KINDS = {
  rwlock: {
    share: (contender) => contender.rwlock.share(),
    open: (contender, memory) => contender.rwlock.open(memory),
  },
  /** The contender's mutex in place of both. */
  mutex: {
    share: (contender) => contender.share(1),
    open(contender, memory) {
      const mutex = contender.open(memory, 0);
      return { read: mutex, write: mutex };
    },
  },
  none: {
    share: () => null,
    open: () => ({ read: NO_LOCK, write: NO_LOCK }),
  },
};

const newPair = () => new Int32Array(new SharedArrayBuffer(128));
/** Not on one cache line. */
const [FIRST, SECOND] = [0, 16];

/** The use that a hold of either side makes of the pair: returns false if it has seen a write that was not over. */
const INSIDE = {
  read(pair, busy) {
    const seen = pair[FIRST];
    busy();
    return pair[SECOND] === seen;
  },
  write(pair, busy) {
    const seen = pair[FIRST];
    pair[FIRST] = seen + 1;
    busy();
    const isWhole = pair[SECOND] === seen;
    pair[SECOND] = seen + 1;
    return isWhole;
  },
};

/**
 * Returns the fault, as text, if so many holds have seen half a write, or the pair does not say that there were so many
 * `writes`.
 */
function faultOfPair(pair, torn, writes) {
  if (torn) return `${torn} holds have seen a write that was not over`;
  if (pair[FIRST] !== writes || pair[SECOND] !== writes) {
    return `${writes} writes counted ${pair[FIRST]} and ${pair[SECOND]}: two writers were inside at once`;
  }
  return undefined;
}

/** The package as a contender, for controls, whose processes load none. */
function sablock() {
  const contender = byName('sablock');
  contender.load();
  return contender;
}

module.exports = { KINDS, INSIDE, newPair, faultOfPair, sablock };
