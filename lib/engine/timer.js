// The time limit of a wait that the core keeps no clock for.

const clock = require('../load/clock.js');

/** Timers of Node.js count no further. */
const LONGEST_TIMER = 2 ** 31 - 1;

class Timer {
  #handle;

  /** Calls `expire` after so many milliseconds. What keeps the event loop alive is the wait, if anything. */
  constructor(timeout, expire) {
    this.#start(clock.now() + timeout, expire);
  }

  #start(deadline, expire) {
    const left = Math.max(deadline - clock.now(), 0);
    const look = () => {
      if (clock.now() < deadline) this.#start(deadline, expire);
      else expire();
    };
    // Rounded up: a timer may be early.
    this.#handle = clock.setTimeout(look, Math.min(Math.ceil(left), LONGEST_TIMER)).unref();
  }

  stop() {
    clock.clearTimeout(this.#handle);
  }
}

exports.Timer = Timer;
