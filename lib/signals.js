// Aborting pending waits. One listener on each signal, whatever the number of waits: runtimes compare a new listener
// with all that are there, so that one for each wait would cost the square of their number.

const groups = new WeakMap();

class Group {
  #signal;
  #waits = new Set();

  constructor(signal) {
    this.#signal = signal;
  }

  add(wait) {
    if (this.#waits.size === 0) {
      groups.set(this.#signal, this);
      this.#signal.addEventListener('abort', this);
    }
    this.#waits.add(wait);
  }

  delete(wait) {
    if (this.#waits.delete(wait) && this.#waits.size === 0) {
      groups.delete(this.#signal);
      this.#signal.removeEventListener('abort', this);
    }
  }

  handleEvent() {
    for (const wait of this.#waits) wait.abort(this.#signal.reason);
  }
}

/** `wait.abort(reason)` is called when the signal aborts. */
exports.listen = (signal, wait) => {
  (groups.get(signal) ?? new Group(signal)).add(wait);
};

/** `wait` is over. */
exports.unlisten = (signal, wait) => {
  groups.get(signal)?.delete(wait);
};
