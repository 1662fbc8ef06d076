// Several names at once: all or none. They are locked in the order of their code units, which is the same for everybody, so that
// two such requests never wait for each other.

const { inspect } = require('node:util');
const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { reasonOf } = require('../arguments.js');
const { lazily } = require('../load/lazily.js');
const { notSupported } = require('./errors.js');
const { noteIn, numberOf } = require('./held-lock.js');
const { checkRequest, timeLeft, toName } = require('./options.js');
const { obtain } = require('./requests.js');
const { giveBackAll, takenFrom } = require('./take-over.js');

const blocking = lazily(() => require('./blocking.js'));

const secret = Symbol('HeldLocks');

/** The names, each once, in the order in which they were given. */
exports.toNames = (names) => [...new Set(Array.from(names, toName))];

/** Refuses requests that are not allowed for one of the names, or for several. */
exports.checkRequests = (backend, names, options) => {
  backend.outer?.check?.();
  for (const name of names) checkRequest(backend, name, options);
  if (options.steal) {
    throw notSupported('The option "steal" is for one name at a time: several could not be had all or none.');
  }
};

/** The state of some names: those locked so far, and the one asked for next. */
class Locking {
  static {
    thread.addClass('Locking', Locking, (locking) => locking);
  }

  /** By name. */
  #locks = new Map();
  #names;
  #options;
  #deadline;

  constructor(names, options) {
    this.#names = names;
    this.#options = options;
    this.#deadline = options.timeout === Infinity ? Infinity : clock.now() + options.timeout;
  }

  /** The names in the order of their locking. */
  inOrder() {
    // By code units, whatever the language.
    return [...this.#names].sort((one, other) => (one < other ? -1 : 1));
  }

  /**
   * The options for the next name. One that is free is had though no time is left. What is locked so far goes back as soon as the
   * time is over.
   */
  next() {
    const { timeout } = this.#options;
    return {
      ...this.#options,
      timeout: timeLeft(this.#deadline, timeout),
      limit: timeout,
      isPart: true,
      beside: this.#locks,
    };
  }

  /** It is locked; perhaps the others are not yet. */
  add(lock) {
    this.#locks.set(lock.name, lock);
    if (this.#locks.size < this.#names.length) noteIn(lock, false);
  }

  /**
   * All are locked: returns them in the order in which they were asked for. Throws if one was stolen, or lost, while the next was
   * waited for.
   */
  finish() {
    const locks = this.#names.map((name) => this.#locks.get(name));
    for (const lock of locks) {
      // A subscriber to the wait may have unlocked it: then it was not taken.
      const error = noteIn(lock, true) ? null : takenFrom(lock);
      if (error !== null) throw error;
    }
    return locks;
  }

  /** One could not be had. */
  giveBack() {
    giveBackAll([...this.#locks.values()]);
    // The code of this call may throw then, and must not make them go back once more.
    this.#locks.clear();
  }
}

const identity = (lock) => lock;

/** A promise of what `use` makes of the locks of these names, in the order of the names; of `use(null)` as for one name. */
exports.obtainSeveral = async (backend, names, options, use, verb) => {
  const { signal } = options;
  const locking = new Locking(names, options);
  let locks;
  try {
    for (const name of locking.inOrder()) {
      const lock = await obtain(backend, name, locking.next(), identity, verb);
      if (lock === null) {
        locking.giveBack();
        return use(null);
      }
      locking.add(lock);
    }
    if (names.length === 0) await undefined;
    if (signal?.aborted) throw reasonOf(signal);
    locks = locking.finish();
  } catch (error) {
    locking.giveBack();
    throw error;
  }
  return use(locks);
};

/** The locks of these names, in their order; null if one had to be available and is not. Blocks. */
exports.obtainSeveralBlocking = (backend, names, options, verb, accept) => {
  const locking = new Locking(names, options);
  const numbers = [];
  try {
    for (const name of locking.inOrder()) {
      const lock = blocking().obtainBlocking(backend, name, locking.next(), verb);
      if (lock === null) {
        locking.giveBack();
        return null;
      }
      numbers[numbers.length] = numberOf(lock);
      locking.add(lock);
    }
    const locks = locking.finish();
    if (accept !== undefined) for (const lock of locks) accept(lock);
    return locks;
  } catch (error) {
    try {
      locking.giveBack();
    } catch (refusal) {
      // As in `runWithBlocking`.
      if (!(refusal instanceof RangeError)) throw refusal;
      for (let index = 0; index < numbers.length; index++) binding.letGoOfName(numbers[index]);
      binding.wake();
    }
    throw error;
  }
};

/** Several locks that were acquired together. */
class HeldLocks {
  #locks;

  constructor(key, locks) {
    if (key !== secret) {
      throw new TypeError('Illegal constructor. These come from acquire() and acquireAsync() of several names.');
    }
    this.#locks = Object.freeze(locks);
  }

  get locks() {
    return this.#locks;
  }

  get locked() {
    return this.#locks.some((lock) => lock.locked);
  }

  get abandoned() {
    return this.#locks.filter((lock) => lock.abandoned);
  }

  unlock() {
    let isReleased = false;
    const locks = this.#locks;
    for (let index = locks.length - 1; index >= 0; index--) isReleased = locks[index].unlock() || isReleased;
    return isReleased;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#locks in this)) return this;
    if (depth < 0) return options.stylize('[HeldLocks]', 'special');
    const { locked, locks } = this;
    return `HeldLocks ${inspect({ locked, locks }, { ...options, depth })}`;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.unlock();
  }
}

exports.HeldLocks = HeldLocks;
exports.newLocks = (locks) => new HeldLocks(secret, locks);
