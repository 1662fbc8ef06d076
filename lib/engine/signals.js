// Aborting pending waits. One listener on each signal, whatever the number of waits: runtimes compare a new listener
// with all that are there, so that one for each wait would cost the square of their number.

const events = require('node:events');
const { reasonOf } = require('../arguments.js');

const groups = new WeakMap();

class Group {
  #signal;
  #waits = new Set();
  #stop = null;

  constructor(signal) {
    this.#signal = signal;
  }

  add(wait) {
    if (this.#waits.size === 0) {
      this.#stop = addAbortListener(this.#signal, () => this.#abort());
      groups.set(this.#signal, this);
    }
    this.#waits.add(wait);
  }

  delete(wait) {
    if (!this.#waits.delete(wait) || this.#waits.size > 0) return;
    groups.delete(this.#signal);
    this.#stop();
  }

  #abort() {
    for (const wait of this.#waits) wait.abort(reasonOf(this.#signal));
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
  (groups.get(signal) ?? new Group(signal)).add(wait);
};

/** `wait` is over. */
exports.unlisten = (signal, wait) => {
  groups.get(signal)?.delete(wait);
};
