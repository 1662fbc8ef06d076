// What the keepers of all stores do alike: a request is made again while its time lasts, and a lease is given up before its end.

const { storeError } = require('./errors.js');

/** Between two tries, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The pauses between tries to reach a store. */
exports.pauses = async function* () {
  for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    yield;
    await pause(wait);
  }
};

exports.asStoreError = (store, error) =>
  error.isFinal !== undefined ? error : storeError(`${store} failed: ${error.message}.`, { cause: error });

/**
 * What `lockOnce()` grants to a ticket; null if it cannot be had at once, or nobody wants it any more. It is called again after an
 * error that need not stay, if `goesOn()`: the store was reached once, and is not closed.
 */
exports.lockWithRetry = async (store, ticket, lockOnce, goesOn) => {
  for await (const _ of exports.pauses()) {
    if (ticket.isCancelled) return null;
    try {
      return await lockOnce();
    } catch (error) {
      if (ticket.isCancelled) return null;
      if (ticket.isTry || error.isFinal === true || !goesOn()) throw exports.asStoreError(store, error);
    }
  }
};

/** Of a lease, what a client gives up before the server does, in milliseconds. */
exports.marginOf = (lease) => Math.min(Math.max(lease / 20, 10), 1000);

/** The releases that are under way, by name: who tries the name comes after them. */
exports.Releases = class {
  #byName = new Map();

  add(name, released) {
    const all = this.#byName.get(name) ?? new Set();
    this.#byName.set(name, all.add(released));
    const forget = () => {
      all.delete(released);
      if (all.size === 0 && this.#byName.get(name) === all) this.#byName.delete(name);
    };
    released.then(forget, forget);
  }

  /** Resolves when those of this name, or all of them, are over. */
  over(name) {
    const sets = name === undefined ? [...this.#byName.values()] : [this.#byName.get(name) ?? []];
    return Promise.allSettled(sets.flatMap((all) => [...all]));
  }
};
