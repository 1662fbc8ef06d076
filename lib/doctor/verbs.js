'use strict';

// The verbs of the package's classes, and what takes their place while the doctor is on: each calls the original with what it was
// called with, and notes what that did. Nothing of the arguments is read that the original does not read.

const { isOptions } = require('../arguments.js');
const { quietly } = require('../engine/diagnosis.js');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');

const { Ask, OWNER, SHARED } = binding;

/** The ways to hold. `count` is how often this thread holds what has this word. */
const EXCLUSIVE = {
  isExclusive: true,
  count: (word) => ((Atomics.load(word, 0) & (OWNER | SHARED)) === thread.id ? 1 : 0),
};
const registered = (askOf) => ({
  isExclusive: false,
  count(word) {
    try {
      const [raw, guarded] = slotFor(word, askOf(word));
      return raw + guarded;
    } catch {
      // The memory is that of something else which is held: the verb itself says so.
      return 0;
    }
  },
});
const READ = registered(() => Ask.Read);
const PERMITS = registered(({ isFair }) => (isFair ? Ask.FairPermits : Ask.Permits));

/** The options of a verb, as they are overheard; they are its argument number `at`: whether nothing but the lock ends its wait. */
class Options {
  isEndless = true;

  constructor(args, at) {
    if (args.length > at) args[at] = this.#of(args[at]);
  }

  /** In the place of an argument: the original reads of it what it reads, and refuses what is none of options, which a proxy would hide. */
  #of(value) {
    if (typeof value === 'number') this.isEndless = FOR_EVER.has(value);
    if (typeof value !== 'object' || value === null || !isOptions(value)) return value;
    return new Proxy(value, {
      get: (target, key) => {
        const read = Reflect.get(target, key, target);
        if (ENDS.has(key) && !FOR_EVER.has(read)) this.isEndless = false;
        return read;
      },
    });
  }
}
const ENDS = new Set(['timeout', 'signal', 'ifAvailable', 'steal']);
/** The values of these with which nothing does. */
const FOR_EVER = new Set([undefined, false, Infinity, NaN]);

/** Calls `got` with what the promise of a wait that is being granted is fulfilled with, or `gaveBack`, before anybody else learns of it. */
function whenSettled({ wait }, got, gaveBack) {
  const { resolve, reject } = wait;
  wait.resolve = (value) => {
    got(value);
    resolve(value);
  };
  // As when `onAbandoned` throws.
  wait.reject = (error) => {
    gaveBack();
    reject(error);
  };
}

/** Notes a hold that was granted at once, and may have gone back since something failed then. */
async function unlessRejected(promise, got, gaveBack) {
  try {
    got(await promise);
  } catch {
    gaveBack();
  }
}

/** The place that a call is about: the lock, or the row of the index that comes first. */
const placeOf = ({ address }, isRow, [index]) => (isRow ? address + 4 * index : address);

/**
 * By their names below. Each makes what runs in the place of `original`: it gets what that was called on and with, and the method,
 * above which no call is of interest. `wordOf` leads to what is locked.
 */
const KINDS = {
  /** Takes it, and blocks for it if need be, unless it only tries. `at` is where its options are. */
  take(doctor, original, { how, at = 0, isRow = false, isTry = false }, wordOf) {
    return (self, args, method) => {
      const options = isTry ? null : new Options(args, at);
      const result = doctor.inside(original, self, args);
      if (result === false || result === null) return result;
      const trace = doctor.trace(method);
      quietly(() => {
        const info = doctor.locks.ofWord(wordOf(self));
        if (options?.isEndless) doctor.order?.blocking(info, trace);
        doctor.began(info, placeOf(info, isRow, args), how, trace, result);
      });
      return result;
    };
  },

  /** Returns a promise of it. */
  takeAsync(doctor, original, { how, at = 0, isRow = false, isGuarded = false }, wordOf) {
    return (self, args, method) => {
      const options = new Options(args, at);
      const seen = quietly(() => {
        // An argument that is no index is the original's affair, to read and to refuse.
        if (isRow && typeof args[0] !== 'number') return null;
        const word = wordOf(self);
        const row = isRow ? new Int32Array(word.buffer, word.byteOffset + 4 * args[0], 1) : word;
        return { word: row, info: doctor.locks.ofWord(word), before: how.count(row) };
      });
      const promise = doctor.inside(original, self, args);
      if (seen === null) return promise;
      const wait = doctor.waits.of(promise);
      const trace = wait === null ? doctor.trace(method) : wait.site;
      quietly(() => {
        const { word, info, before } = seen;
        const sighting = doctor.sight(info, trace, options, wait);
        const begin = () => {
          const hold = doctor.began(info, placeOf(info, isRow, args), how, trace);
          hold.sighting = sighting;
          if (isGuarded) hold.isRaw = false;
          const got = (guard) => quietly(() => doctor.gave(guard, hold));
          const gaveBack = () => quietly(() => doctor.holds.end(hold));
          if (wait !== null) whenSettled(wait, got, gaveBack);
          else if (isGuarded) unlessRejected(promise, got, gaveBack);
        };
        if (wait !== null) wait.granted = begin;
        else if (how.count(word) > before) begin();
      });
      return promise;
    };
  },

  /** Gives it back; a guard says how it was held. */
  release(doctor, original, { how, isRow = false }, wordOf) {
    return (self, args) => {
      const hold = quietly(() => {
        const isExclusive = how === undefined ? self.mode !== 'shared' : how.isExclusive;
        return doctor.heldBy(self, placeOf(doctor.locks.ofWord(wordOf(self)), isRow, args), isExclusive);
      });
      const { ending } = doctor;
      doctor.ending = hold;
      try {
        const result = isRow ? doctor.busily(original, self, args) : Reflect.apply(original, self, args);
        const isOver = hold !== null && result !== false && !(how === PERMITS && self.count > 0);
        if (isOver) quietly(() => doctor.end(hold));
        return result;
      } finally {
        doctor.ending = ending;
      }
    };
  },

  /** Makes the guard of several that were taken together. */
  guard(doctor, original, _details, wordsOf) {
    return (self, args) => {
      const guard = Reflect.apply(original, self, args);
      quietly(() => doctor.gaveAll(guard, wordsOf(self)));
      return guard;
    };
  },

  /** Runs a function that holds; `at` is where that is, and its options come next. */
  run(doctor, original, { how, at = 0, isSync = false }, wordOf) {
    return (self, args, method) => {
      const fn = args[at];
      const info = typeof fn === 'function' ? quietly(() => doctor.locks.ofWord(wordOf(self))) : null;
      if (info === null) return Reflect.apply(original, self, args);
      const trace = doctor.trace(method);
      const options = new Options(args, at + 1);
      let sighting = null;
      args[at] = (...given) => {
        if (!isSync) return doctor.run(info, how, trace, sighting, fn, given);
        if (options.isEndless) quietly(() => doctor.order?.blocking(info, trace));
        return doctor.runSync(info, how, trace, fn, given);
      };
      const result = doctor.inside(original, self, args);
      if (!isSync) sighting = quietly(() => doctor.sight(info, trace, options));
      return result;
    };
  },

  /** Calls back with what it has taken. */
  enter(doctor, original, _details, wordOf) {
    return (self, args) => {
      const [callback] = args;
      if (typeof callback === 'function') {
        args[0] = (token) => {
          const hold = quietly(() => doctor.holds.find(doctor.locks.ofWord(wordOf(self)).address)) ?? null;
          return hold === null ? callback(token) : doctor.runIn([hold], callback, [token], null);
        };
      }
      return Reflect.apply(original, self, args);
    };
  },

  /** Changes how it is held. */
  change(doctor, original, { how }, wordOf) {
    return (self, args) => {
      const result = Reflect.apply(original, self, args);
      if (result === false) return result;
      quietly(() => {
        const hold = doctor.heldBy(self, doctor.locks.ofWord(wordOf(self)).address, !how.isExclusive);
        if (hold !== null) doctor.holds.setMode(hold, how.isExclusive);
      });
      return result;
    };
  },

  /** `request(name, callback)`, or `request(name, options, callback)`, of the manager of named locks. */
  request(doctor, original, { isSync = false }) {
    return (self, args, method) => {
      const at = args.length > 2 ? 2 : 1;
      const callback = args[at];
      if (typeof callback !== 'function') return Reflect.apply(original, self, args);
      const options = new Options(args, at === 2 ? 1 : Infinity);
      const asked = { options, isSync, trace: doctor.trace(method), sighting: null };
      args[at] = (lock) => {
        // It may be of several names.
        const locks = Array.isArray(lock) ? lock : [lock];
        const holds = locks.map((one) => (one === null ? undefined : doctor.holdOf.get(one)));
        if (holds.length === 0 || holds.includes(undefined)) return callback(lock);
        if (isSync) return doctor.freely(callback, lock);
        return doctor.runIn(holds, callback, [lock], asked.sighting);
      };
      return doctor.asking(original, self, args, asked);
    };
  },

  /** `acquire` and `acquireAsync` of the manager: its held locks are noted where they are granted. */
  acquireNamed(doctor, original, { isSync = false }) {
    return (self, args, method) => {
      const options = new Options(args, 1);
      return doctor.asking(original, self, args, { options, isSync, trace: doctor.trace(method), sighting: null });
    };
  },

  /** A request for several names goes on with the next, which is a call of the package's own. */
  nextName(doctor, original) {
    return (self, args) => {
      quietly(() => doctor.goOn(self));
      return Reflect.apply(original, self, args);
    };
  },
};

const locked = (how) => ({
  lock: ['take', { how }],
  acquire: ['take', { how }],
  tryLock: ['take', { how, isTry: true }],
  tryAcquire: ['take', { how, isTry: true }],
  lockAsync: ['takeAsync', { how }],
  acquireAsync: ['takeAsync', { how, isGuarded: true }],
  unlock: ['release', { how }],
  executeLocked: ['run', { how }],
  executeLockedSync: ['run', { how, isSync: true }],
});
const row = { how: EXCLUSIVE, at: 1, isRow: true };
const changes = { downgrade: ['change', { how: READ }], tryUpgrade: ['change', { how: EXCLUSIVE }] };

/** By class: its verbs, each with its kind. What is not here holds nothing: its waits are seen where they wait. */
const VERBS = {
  Mutex: { ...locked(EXCLUSIVE), enter: ['enter', {}] },
  WriteLock: locked(EXCLUSIVE),
  ReadLock: locked(READ),
  LockGuard: { unlock: ['release', {}] },
  RwLockGuard: { unlock: ['release', {}], ...changes },
  RwLock: changes,
  LockList: { take: ['guard', {}] },
  LockTable: {
    lock: ['take', row],
    tryLock: ['take', { ...row, isTry: true }],
    lockAsync: ['takeAsync', row],
    unlock: ['release', row],
  },
  Semaphore: {
    acquire: ['take', { how: PERMITS, at: 1 }],
    tryAcquire: ['take', { how: PERMITS, isTry: true }],
    acquireAsync: ['takeAsync', { how: PERMITS, at: 1, isGuarded: true }],
    execute: ['run', { how: PERMITS }],
    executeSync: ['run', { how: PERMITS, isSync: true }],
  },
  SemaphorePermits: { release: ['release', { how: PERMITS }], forget: ['release', { how: PERMITS }] },
  Once: { run: ['run', { how: EXCLUSIVE }], runSync: ['run', { how: EXCLUSIVE, isSync: true }] },
  Locking: { next: ['nextName', {}] },
  LockManager: {
    request: ['request', {}],
    requestSync: ['request', { isSync: true }],
    acquire: ['acquireNamed', { isSync: true }],
    acquireAsync: ['acquireNamed', {}],
  },
};

/** Whether it is noted also inside of a method of the package: users' code there may release what is held outside of it. */
const mayBeInside = (doctor, kind) => kind === 'nextName' || (kind === 'release' && thread.doctor === doctor);

/** The method that takes the place of `original`, which is one of these. */
function methodFor(doctor, original, [kind, details], wordOf) {
  const act = KINDS[kind](doctor, original, details, wordOf);
  const { method } = {
    method(...args) {
      if (doctor.isBusy && !mayBeInside(doctor, kind)) return Reflect.apply(original, this, args);
      return act(this, args, method);
    },
  };
  return method;
}

/** The methods of a class that others take the place of, each with what makes that. */
exports.methodsOf = (doctor, className, wordOf) =>
  Object.entries(VERBS[className] ?? {}).map(([name, verb]) => [
    name,
    (original) => methodFor(doctor, original, verb, wordOf),
  ]);

/** The calls of the binding that wait: what each is like. */
exports.BLOCKING = {
  acquire: 'acquire',
  waitUnlocked: 'waitUnlocked',
  lockAll: 'lockAll',
  acquireName: 'acquireName',
  lockFile: 'lockFile',
  wait: 'wait',
};
exports.QUEUEING = {
  acquireAsync: 'acquire',
  waitUnlockedAsync: 'waitUnlocked',
  lockAllAsync: 'lockAll',
  goOn: 'goOn',
  requestName: 'acquireName',
  lockFileAsync: 'lockFile',
  waitAsync: 'wait',
};
