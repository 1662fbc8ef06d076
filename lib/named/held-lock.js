// One hold of a name: what a callback gets, and what acquire() and acquireAsync() return.

const { inspect } = require('node:util');
const { AbortController } = require('../load/clock.js');
const { tellLost } = require('../engine/diagnosis.js');
const { binding, thread } = require('../engine/thread.js');
const { LockLostError } = require('../errors.js');
const { notHeld, placeOf, sharedRepair, stolen } = require('./errors.js');
const { MODES } = require('./options.js');

const secret = Symbol('HeldLock');

/** The number of a lock that nothing is granted to yet, and of one that is spent. */
const NONE = -1;

let setGranted;
let setFence;
let setOuter;
let outerOf;
let whenStolen;
let giveBack;
let isStolen;
let lossOf;
let noteIn;
let numberOf;
let noteEnd;
let endOf;
let isRepaired;
let goesBack;

/** Fields that few locks have: most are held and released, and nothing else. */
class Rest {
  /** The lock outside of the process; see backend.js. */
  outer = null;
  isStolen = false;
  controller = null;
  fence = null;
  /** The LockLostError, once it was lost. */
  loss = null;
  /** The end inside, while this has to report it: the binding's number of an agent, or `{ pid, threadId }` outside. */
  end = null;
  /** Whether its holder has called `markConsistent()`. */
  isRepaired = false;
}

/** The names that this thread holds: one object for a thread, however often the package is loaded there. */
class HoldsOfNames {
  /** By number. */
  #locks = [];
  #size = 0;
  /** The method of a lock that ends it, whichever load its class is of: no load is kept for its sake. */
  LOSE = Symbol('lose');

  add(number, lock) {
    // An older one may be left there, for want of stack.
    if (this.#locks[number] === undefined) this.#size += 1;
    this.#locks[number] = lock;
  }

  delete(number) {
    this.#locks[number] = undefined;
    this.#size -= 1;
    if (this.#size === 0 && this.#locks.length > MANY) this.#locks = [];
  }

  /** Tells those that were stolen, or lost in a store. */
  drain() {
    for (let number = binding.nextLost(); number >= 0; number = binding.nextLost()) {
      const lock = this.#locks[number];
      if (lock === undefined) thread.stores?.tellLost(number);
      else lock[this.LOSE]();
    }
  }
}

/** A table of holds that has emptied keeps no more room than this. */
const MANY = 1024;

thread.held ??= new HoldsOfNames();
const { LOSE } = thread.held;

class HeldLock {
  static {
    thread.addClass('HeldLock', HeldLock, (lock) => lock);
    setGranted = (lock, number) => {
      lock.#number = number;
      thread.held.add(number, lock);
    };
    setFence = (lock, fence) => {
      lock.#more().fence = fence;
    };
    setOuter = (lock, outer) => {
      lock.#more().outer = outer;
      if ('onLost' in outer) outer.onLost = () => lock.#look();
    };
    outerOf = (lock) => lock.#rest?.outer ?? null;
    whenStolen = (lock, act) => {
      if (isStolen(lock)) act(stolen(lock.#name));
      else lock.#whenStolen = act;
    };
    noteEnd = (lock, end) => {
      lock.#more().end = end;
    };
    endOf = (lock) => lock.#rest?.end ?? null;
    isRepaired = (lock) => lock.#rest?.isRepaired === true;
    giveBack = (lock) => {
      // It was stolen, and is over.
      if (lock.#number === NONE) return;
      lock.#rest?.outer?.unlock();
      // As in `unlock`.
      const number = lock.#number;
      if (number === NONE) return;
      const end = lock.#rest?.end ?? null;
      // The next has to report it.
      if (typeof end === 'number') binding.setReport(end);
      binding.giveBackHeld(number);
      lock.#number = NONE;
      thread.held.delete(number);
    };
    goesBack = (locks) => {
      const ends = locks.map(endOf);
      return {
        requests: locks.map(numberOf),
        reports: ends.map((end) => (typeof end === 'number' ? end : 0)),
        outer: locks.flatMap((lock) => lock.#rest?.outer?.number ?? []),
      };
    };
    isStolen = (lock) => lock.#rest?.isStolen === true;
    lossOf = (lock) => lock.#rest?.loss ?? null;
    numberOf = (lock) => lock.#number;
    noteIn = (lock, isIn) => {
      if (!lock.#look()) return false;
      if (binding.noteIn(lock.#number, isIn) !== binding.GRANTED) {
        lock[LOSE]();
        return false;
      }
      lock.#rest?.outer?.noteIn?.(isIn);
      return true;
    };
  }

  #name;
  /** As `binding.NameMode` has it. */
  #mode;
  /** The number of the request, which holds it. */
  #number = NONE;
  #whenStolen = null;
  /** Fields that few locks have, as a `Rest`. */
  #rest = null;

  constructor(key, name, mode) {
    if (key !== secret) {
      throw new TypeError('Illegal constructor. Held locks come from request(), acquire() and acquireAsync().');
    }
    this.#name = name;
    this.#mode = mode;
  }

  get name() {
    return this.#name;
  }

  get mode() {
    return MODES[this.#mode];
  }

  get locked() {
    return this.#look();
  }

  get fence() {
    return this.#rest?.fence ?? null;
  }

  get key() {
    return this.#rest?.outer?.key ?? null;
  }

  get abandoned() {
    if (!this.#look()) return false;
    const outer = this.#rest?.outer ?? null;
    return outer === null ? binding.lookAtHeld(this.#number) === binding.GRANTED_ABANDONED : outer.abandoned;
  }

  get signal() {
    this.#look();
    const rest = this.#more();
    if (rest.controller === null) {
      rest.controller = new AbortController();
      if (rest.isStolen) rest.controller.abort(stolen(this.#name));
      else if (rest.loss !== null) rest.controller.abort(rest.loss);
    }
    return rest.controller.signal;
  }

  markConsistent() {
    if (this.#mode === binding.NameMode.Shared) throw sharedRepair(this.#name);
    if (!this.#look()) throw notHeld(this.#name);
    if (binding.markConsistent(this.#number) !== binding.RELEASED) {
      this[LOSE]();
      throw notHeld(this.#name);
    }
    this.#rest?.outer?.markConsistent();
    this.#more().isRepaired = true;
  }

  unlock() {
    const number = this.#number;
    if (!this.#look()) return false;
    // A call that may fail (a stack that overflows) comes first: after the binding has released it, nothing does.
    thread.drainSoon();
    // Code of users that ran in there has unlocked it, and perhaps locked another of that number: see `drainSoon`.
    if (this.#number !== number) return false;
    if (this.#rest?.outer?.unlock() === false) return this.#look();
    // Or in there.
    if (this.#number !== number) return false;
    const status = binding.releaseHeld(number, false);
    this.#number = NONE;
    thread.held.delete(number);
    if (status === binding.RELEASED) return true;
    this.#tellStolen();
    return false;
  }

  /** The thread has learned that another holds it now. */
  [LOSE]() {
    if (this.#number === NONE) return;
    thread.held.delete(this.#number);
    this.#number = NONE;
    this.#tellStolen();
  }

  /** Whether this holds it. What is locked outside of the process may have been lost: then it is over from this look on. */
  #look() {
    if (this.#number === NONE) return false;
    const lost = this.#rest?.outer?.lost ?? null;
    if (lost === null) return true;
    const number = this.#number;
    const rest = this.#rest;
    // First this: if it fails for want of stack, the next look is as this one.
    rest.loss = new LockLostError(this.#name, rest.fence, lost.reason, lost.heldMs);
    this.#number = NONE;
    try {
      thread.held.delete(number);
      tellLost(this, placeOf(this.#name), rest.loss);
      rest.controller?.abort(rest.loss);
      // Its holder learns of it before others of the process may have it.
      thread.drainSoon();
    } finally {
      binding.releaseHeld(number, false);
      binding.wake();
    }
    return false;
  }

  #more() {
    this.#rest ??= new Rest();
    return this.#rest;
  }

  #tellStolen() {
    const rest = this.#more();
    rest.isStolen = true;
    if (rest.controller === null && this.#whenStolen === null) return;
    const error = stolen(this.#name);
    this.#whenStolen?.(error);
    rest.controller?.abort(error);
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#number in this)) return this;
    const title = `HeldLock ${inspect(this.#name)}`;
    if (depth < 0) return options.stylize(`[${title}]`, 'special');
    const { mode, locked, abandoned } = this;
    return `${title} ${inspect({ mode, locked, abandoned }, { ...options, depth, compact: true })}`;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.unlock();
  }
}

exports.HeldLock = HeldLock;
/** A lock of this name that is not granted yet. */
exports.newLock = (name, mode) => new HeldLock(secret, name, mode);
/** It is granted, by the request of this number. */
exports.setGranted = setGranted;
/** The number of the request that holds it. */
exports.numberOf = numberOf;
/**
 * Whether its code runs with it: not while others are waited for that were asked for together with it. Returns whether it is still
 * held.
 */
exports.noteIn = noteIn;
/** Sets `lock.fence`. */
exports.setFence = setFence;
/** It is locked outside of the process too. */
exports.setOuter = setOuter;
exports.outerOf = outerOf;
/** `act(error)` is called once it is known that the lock was stolen, perhaps now. */
exports.whenStolen = whenStolen;
/** Its code never ran with it: the next gets it, unmarked. */
exports.giveBack = giveBack;
/** For the binding, which does the same with these locks if the time of a wait is over. */
exports.goesBack = goesBack;
exports.isStolen = isStolen;
/** The end inside that this lock has to report: the binding's number, or `{ pid, threadId }`; null once it is reported. */
exports.noteEnd = noteEnd;
exports.endOf = endOf;
exports.isRepaired = isRepaired;
/** The LockLostError of a lock that was lost; null if it was not. */
exports.lossOf = lossOf;
