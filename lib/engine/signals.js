// Aborting pending waits. One listener on each signal, whatever the number of waits: runtimes compare a new listener
// with all that are there, so that one for each wait would cost the square of their number.

const events = require('node:events');
const { reasonOf } = require('../arguments.js');
const { throwLater } = require('../load/clock.js');

const groups = new WeakMap();
/** Always settled, to make microtasks with. */
const settled = Promise.resolve();

class Group {
  #signal;
  #waits = new Set();
  #stop = null;

  constructor(signal) {
    this.#signal = signal;
  }

  add(wait) {
    // First this: users' code that runs in the signal may wait with the same one, and is to find this group.
    groups.set(this.#signal, this);
    this.#waits.add(wait);
    if (this.#stop !== null) return;
    try {
      const stop = addAbortListener(this.#signal, () => this.#abort());
      // It has listened too.
      const other = this.#stop;
      this.#stop = other === null ? stop : () => runBoth(other, stop);
    } catch (error) {
      this.#remove(wait);
      throw error;
    }
  }

  delete(wait) {
    if (this.#remove(wait)) this.#stop?.();
  }

  /** Whether it was the last. */
  #remove(wait) {
    if (!this.#waits.delete(wait) || this.#waits.size > 0) return false;
    groups.delete(this.#signal);
    return true;
  }

  /** Aborts the wait, unless it is over. */
  abort(wait) {
    if (this.#waits.has(wait)) wait.abort(reasonFrom(this.#signal).reason);
  }

  #abort() {
    const { reason } = reasonFrom(this.#signal);
    for (const wait of this.#waits) {
      try {
        wait.abort(reason);
      } catch (error) {
        // Another signal of this wait threw: the others are aborted all the same.
        throwLater(error);
      }
    }
  }
}

function runBoth(one, other) {
  try {
    one();
  } finally {
    other();
  }
}

/** The signal's reason, as `{ reason }`: if its getter throws, that is the error. */
function reasonFrom(signal) {
  try {
    return { reason: reasonOf(signal) };
  } catch (reason) {
    return { reason };
  }
}

/** Returns what stops it. */
function addAbortListener(signal, listener) {
  try {
    return addListener(signal, listener);
  } catch (error) {
    // At the end of the stack it may be there all the same.
    signal.removeEventListener('abort', listener);
    throw error;
  }
}

/** Listens even if another listener stops the event, where the runtime can do that (Node 20.5). */
function addListener(signal, listener) {
  if (events.addAbortListener !== undefined) {
    const disposable = events.addAbortListener(signal, listener);
    // By Node's own symbol, which need not be the one of a polyfill, or of another context.
    const [dispose] = Object.getOwnPropertySymbols(disposable);
    return () => disposable[dispose]();
  }
  signal.addEventListener('abort', listener);
  return () => signal.removeEventListener('abort', listener);
}

/** `wait.abort(reason)` is called when the signal aborts. */
exports.listen = (signal, wait) => {
  const group = groups.get(signal) ?? new Group(signal);
  group.add(wait);
  // It may have aborted while a listener was added, which was not called then. The wait is queued first.
  try {
    if (signal.aborted) settled.then(() => group.abort(wait));
  } catch (error) {
    group.delete(wait);
    throw error;
  }
};

/** `wait` is over. */
const unlisten = (signal, wait) => {
  groups.get(signal)?.delete(wait);
};

/** The same in a turn of its own: an error of the signal neither settles the wait nor keeps it from being settled. */
exports.unlistenSafely = (signal, wait) => {
  try {
    unlisten(signal, wait);
  } catch (error) {
    throwLater(error);
  }
};

/** As `{ reason }`, if the signal has aborted; else null. A signal that throws has aborted, with its error as the reason. */
exports.abortOf = (signal) => {
  try {
    if (!signal?.aborted) return null;
  } catch (reason) {
    return { reason };
  }
  return reasonFrom(signal);
};

exports.unlisten = unlisten;
