'use strict';
// The limits' building blocks: the barest way to make a thread sleep and to wake a thread or an event loop.
//
// This is the seam for native ones. If the addon is built with its bench exports, they are used and named so;
// otherwise plain JavaScript's nearest: Atomics.wait/notify for the futex, Atomics.waitAsync/notify for the loop.
// A native build exports from binding.js, as `bench`:
//   futexWait(int32Array, index, value)     sleeps while the word holds value
//   futexWake(int32Array, index)            wakes one
//   loopWaker(callback) -> id               a threadsafe function of this environment that calls callback()
//   wakeLoop(id)                            calls it, from any thread
//   closeLoopWaker(id)

const path = require('node:path');

function loadNative() {
  const root = process.env.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..', '..');
  try {
    return require(path.join(root, 'binding.js')).bench;
  } catch {
    return undefined;
  }
}

const native = loadNative();

const futexWait = native?.futexWait ?? ((words, i, value) => Atomics.wait(words, i, value));
const futexWake = native?.futexWake ?? ((words, i) => Atomics.notify(words, i, 1));

// The loop's waker lives in two words of shared memory: what the native waker's id is, and what Atomics waits on.
const ID = 0;
const SIGNAL = 1;

class LoopWaiter {
  words = new Int32Array(new SharedArrayBuffer(8));
  #resolve;
  constructor() {
    if (native) this.words[ID] = native.loopWaker(() => this.#resolve());
  }

  /** A promise for the next wake of this loop. */
  next() {
    if (native)
      return new Promise((resolve) => {
        this.#resolve = resolve;
      });
    Atomics.store(this.words, SIGNAL, 0);
    return Atomics.waitAsync(this.words, SIGNAL, 0).value;
  }

  close() {
    native?.closeLoopWaker(this.words[ID]);
  }
}

/** From any thread: wakes the loop that these words belong to. */
function wakeLoop(words) {
  if (native) return native.wakeLoop(words[ID]);
  Atomics.store(words, SIGNAL, 1);
  Atomics.notify(words, SIGNAL, 1);
}

module.exports = {
  futexWait,
  futexWake,
  LoopWaiter,
  wakeLoop,
  futexName: native ? 'bare futex' : 'bare futex (Atomics.wait)',
  loopName: native ? 'bare loop wake (tsfn)' : 'bare loop wake (waitAsync)',
};
