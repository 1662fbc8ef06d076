// Puts the doctor's methods in the place of the package's, in every class that this thread has loaded or will load.

const { thread } = require('../engine/thread.js');
const { METHODS } = require('./methods.js');
const { NAMED_METHODS } = require('./named-methods.js');

const EXCLUSIVE = { isExclusive: true, isTry: false, isOnce: false };
const SHARED = { ...EXCLUSIVE, isExclusive: false };

const lockMethods = (mode) => ({
  lock: ['blocking', mode],
  acquire: ['blocking', mode],
  tryLock: ['blocking', { ...mode, isTry: true }],
  tryAcquire: ['blocking', { ...mode, isTry: true }],
  lockAsync: ['async', mode],
  acquireAsync: ['async', mode],
  unlock: ['unlock', mode],
  executeLocked: ['execute', mode],
  executeLockedSync: ['executeSync', mode],
});
const toMode = { downgrade: ['changeMode', SHARED], tryUpgrade: ['changeMode', EXCLUSIVE] };

const ALL = { ...METHODS, ...NAMED_METHODS };

/** By class: which method becomes what. */
const SWAPPED = {
  Mutex: { ...lockMethods(EXCLUSIVE), enter: ['enter', EXCLUSIVE] },
  WriteLock: lockMethods(EXCLUSIVE),
  ReadLock: lockMethods(SHARED),
  LockGuard: { unlock: ['unlockGuard', EXCLUSIVE] },
  RwLockGuard: { unlock: ['unlockGuard', EXCLUSIVE], ...toMode },
  RwLock: toMode,
  LockTable: {
    lock: ['lockAt', EXCLUSIVE],
    tryLock: ['lockAt', { ...EXCLUSIVE, isTry: true }],
    lockAsync: ['lockAtAsync', EXCLUSIVE],
    unlock: ['unlockAt', EXCLUSIVE],
  },
  Condition: {
    wait: ['wait', EXCLUSIVE],
    waitFor: ['wait', EXCLUSIVE],
    waitAsync: ['waitAsync', EXCLUSIVE],
    waitForAsync: ['waitAsync', EXCLUSIVE],
  },
  LockManager: {
    request: ['request', EXCLUSIVE],
    requestSync: ['requestSync', EXCLUSIVE],
    acquire: ['acquireNamed', EXCLUSIVE],
    acquireAsync: ['acquireNamedAsync', EXCLUSIVE],
  },
  HeldLock: { unlock: ['unlockNamed', EXCLUSIVE] },
  Once: {
    run: ['execute', { ...EXCLUSIVE, isOnce: true }],
    runSync: ['executeSync', { ...EXCLUSIVE, isOnce: true }],
  },
};

class Swaps {
  #tracking;
  #undo = [];

  constructor(tracking) {
    this.#tracking = tracking;
  }

  start() {
    for (const reference of thread.classes) {
      const type = reference.deref();
      if (type !== undefined) this.swap(type, thread.words.get(type));
    }
  }

  stop() {
    for (const undo of this.#undo) undo();
    this.#undo = [];
  }

  /** A class, also one that is loaded later. */
  swap(type, wordOf) {
    for (const [name, [by, kind]] of Object.entries(SWAPPED[type.name] ?? {})) {
      const { prototype } = type;
      const before = Object.getOwnPropertyDescriptor(prototype, name);
      const original = before.value;
      const method = ALL[by](this.#tracking, original, { ...kind, wordOf });
      for (const property of ['name', 'length']) {
        Object.defineProperty(method, property, { value: original[property], configurable: true });
      }
      Object.defineProperty(prototype, name, { ...before, value: method });
      this.#undo.push(() => {
        // Somebody else may have taken its place meanwhile.
        if (prototype[name] !== method) return;
        // Not changed, but new: of a method that never changes V8 takes the code itself.
        delete prototype[name];
        Object.defineProperty(prototype, name, before);
      });
    }
  }
}

exports.Swaps = Swaps;
