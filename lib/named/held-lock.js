// One hold of a name: what a callback gets, and what acquire() and acquireAsync() return.

const { inspect } = require('node:util');
const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { MODES } = require('./options.js');

const errors = lazily(() => require('./errors.js'));

const secret = Symbol('HeldLock');

/** Of a lock that nothing is granted to yet, and of one that is spent. */
const NONE = -1;

let setGranted;
let setOuter;
let whenStolen;
let giveBack;
let isStolen;
let numberOf;
let loseIfMine;

/** What few locks have: most are held and released, and nothing else. */
class Rest {
  /** What is locked outside of the process; see backend.js. */
  outer = null;
  isStolen = false;
  whenStolen = null;
  controller = null;
}

class HeldLock {
  static {
    thread.addClass(HeldLock, (lock) => lock);
    setGranted = (lock, number) => {
      lock.#number = number;
      thread.held.add(number, lock);
    };
    setOuter = (lock, outer) => {
      lock.#more().outer = outer;
    };
    whenStolen = (lock, act) => {
      const rest = lock.#more();
      if (rest.isStolen) act(errors().stolen(lock.#name));
      else rest.whenStolen = act;
    };
    giveBack = (lock) => {
      const number = lock.#number;
      lock.#rest?.outer?.unlock();
      binding.giveBackName(number);
      lock.#number = NONE;
      thread.held.delete(number);
    };
    isStolen = (lock) => lock.#rest?.isStolen === true;
    numberOf = (lock) => lock.#number;
    loseIfMine = (lock) => {
      const isMine = #number in lock;
      if (isMine) lock.#lose();
      return isMine;
    };
  }

  #name;
  /** As `binding.NameMode` has it. */
  #mode;
  /** Of the request, which holds it. */
  #number = NONE;
  /** What few locks have, as a `Rest`. */
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
    return this.#number !== NONE;
  }

  get abandoned() {
    if (this.#number === NONE) return false;
    const outer = this.#rest?.outer ?? null;
    return outer === null ? binding.isNameAbandoned(this.#number) : outer.abandoned;
  }

  get signal() {
    const rest = this.#more();
    if (rest.controller === null) {
      rest.controller = new AbortController();
      if (rest.isStolen) rest.controller.abort(errors().stolen(this.#name));
    }
    return rest.controller.signal;
  }

  markConsistent() {
    if (this.#mode === binding.NameMode.Shared) throw errors().sharedRepair(this.#name);
    if (this.#number === NONE) throw errors().notHeld(this.#name);
    if (binding.markNameConsistent(this.#number) !== binding.RELEASED) {
      this.#lose();
      throw errors().notHeld(this.#name);
    }
    this.#rest?.outer?.markConsistent();
  }

  unlock() {
    const number = this.#number;
    if (number === NONE) return false;
    // What may fail (a stack that overflows) comes first: after the binding has released it, nothing does.
    thread.drainSoon();
    this.#rest?.outer?.unlock();
    const status = binding.releaseName(number);
    this.#number = NONE;
    thread.held.delete(number);
    if (status === binding.RELEASED) return true;
    this.#tellStolen();
    return false;
  }

  /** The thread has learned that somebody else has it now. */
  #lose() {
    if (this.#number === NONE) return;
    thread.held.delete(this.#number);
    this.#number = NONE;
    this.#tellStolen();
  }

  #more() {
    this.#rest ??= new Rest();
    return this.#rest;
  }

  #tellStolen() {
    const rest = this.#more();
    rest.isStolen = true;
    if (rest.controller === null && rest.whenStolen === null) return;
    const error = errors().stolen(this.#name);
    rest.whenStolen?.(error);
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

/** What this thread holds of names: one object for a thread, however often the package is loaded there. */
class HeldLocks {
  /** By number. */
  #locks = [];
  #size = 0;
  /** Of each load: `lose(lock)` ends a lock of its own class, and returns whether it was. */
  #loads = [];

  addLoad(lose) {
    this.#loads.push(lose);
  }

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

  /** Tells those that were stolen. */
  drain() {
    for (let number = binding.nextStolen(); number >= 0; number = binding.nextStolen()) {
      const lock = this.#locks[number];
      if (lock !== undefined) this.#loads.some((lose) => lose(lock));
    }
  }
}

/** A table of holds that has emptied keeps no more room than this. */
const MANY = 1024;

thread.held ??= new HeldLocks();
thread.held.addLoad(loseIfMine);

exports.HeldLock = HeldLock;
/** A lock of this name that is not granted yet. */
exports.newLock = (name, mode) => new HeldLock(secret, name, mode);
/** It is granted, by the request of this number. */
exports.setGranted = setGranted;
/** The number of the request that holds it. */
exports.numberOf = numberOf;
/** It is locked outside of the process too. */
exports.setOuter = setOuter;
/** `act(error)` is called once it is known that the lock was stolen, perhaps now. */
exports.whenStolen = whenStolen;
/** Its code never ran with it: the next gets it, unmarked. */
exports.giveBack = giveBack;
exports.isStolen = isStolen;
