// The time limit of a wait that the core keeps no clock for.

/** Timers of Node.js count no further. */
const LONGEST_TIMER = 2 ** 31 - 1;

// From the beginning: who replaces the timers of a test does not stop the clock of other threads and processes.
const { setTimeout, clearTimeout } = globalThis;

class Timer {
  #handle;

  /** Calls `expire` after so many milliseconds. What keeps the event loop alive is the wait, if anything. */
  constructor(timeout, expire) {
    this.#start(performance.now() + timeout, expire);
  }

  #start(deadline, expire) {
    const left = Math.max(deadline - performance.now(), 0);
    const look = () => {
      if (performance.now() < deadline) this.#start(deadline, expire);
      else expire();
    };
    // Rounded up: a timer may be early.
    this.#handle = setTimeout(look, Math.min(Math.ceil(left), LONGEST_TIMER)).unref();
  }

  stop() {
    clearTimeout(this.#handle);
  }
}

exports.Timer = Timer;
