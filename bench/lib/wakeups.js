'use strict';
// Ways to make a thread sleep and to wake a thread or an event loop: this package's, and the barest ones, of which the
// limits are made.
//
// The native ones are those of bench/native: the system's futex, and a threadsafe function. Plain JavaScript's nearest
// stand beside them under their own names: Atomics.wait and notify, and Atomics.waitAsync for a loop.

const { loadNative } = require('./builds');
const { root } = require('../contenders/sablock');

const WAITING_FUNCTIONS = {
  sablock: () => require(root),
  Atomics: () => Atomics,
  futex() {
    const { futexWait, futexWake } = loadNative();
    return { wait: futexWait, notify: futexWake };
  },
};

/** `wait`, `notify` and `waitAsync` of `name`; the system's futex has no `waitAsync`. */
const waitingFunctions = (name) => WAITING_FUNCTIONS[name]();

// A loop's waker lives in two words of shared memory, for all threads that wake it.
/** One more than the id of the native waker; 0: there is none. */
const ID = 0;
/** The value that Atomics waits on. */
const SIGNAL = 1;

/** This thread's loop, woken by a threadsafe function. */
class ThreadsafeFunctionWaiter {
  words = new Int32Array(new SharedArrayBuffer(8));
  #resolve;
  constructor() {
    this.words[ID] = 1 + loadNative().loopWaker(() => this.#resolve());
  }

  /** A promise for the next wake of this loop. */
  next() {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  close() {
    loadNative().closeLoopWaker(this.words[ID] - 1);
  }
}

/** This thread's loop, woken by Atomics.notify. */
class AtomicsWaiter {
  words = new Int32Array(new SharedArrayBuffer(8));

  next() {
    Atomics.store(this.words, SIGNAL, 0);
    return Atomics.waitAsync(this.words, SIGNAL, 0).value;
  }

  close() {}
}

/** For any thread: a function that wakes the loop that these words belong to. */
function wakerOf(words) {
  if (words[ID] !== 0) {
    const { wakeLoop } = loadNative();
    const id = words[ID] - 1;
    return () => wakeLoop(id);
  }
  return () => {
    Atomics.store(words, SIGNAL, 1);
    Atomics.notify(words, SIGNAL, 1);
  };
}

module.exports = { waitingFunctions, ThreadsafeFunctionWaiter, AtomicsWaiter, wakerOf };
