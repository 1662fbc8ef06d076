// The verbs of the package's classes, and what takes their place while the doctor is on: each calls the original with what it was
// called with, and notes what that did. Nothing of the arguments is read that the original does not read.

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
    const [raw, guarded] = slotFor(word, askOf(word));
    return raw + guarded;
  },
});
const READ = registered(() => Ask.Read);
const PERMITS = registered(({ isFair }) => (isFair ? Ask.FairPermits : Ask.Permits));

/** What is overheard of a verb's options: whether nothing but the lock ends its wait. */
class Options {
  isEndless = true;

  /** In the place of an argument: the original reads of it what it reads. */
  of(value) {
    if (typeof value === 'number') this.isEndless = value === Infinity;
    if (typeof value !== 'object' || value === null) return value;
    return new Proxy(value, {
      get: (target, key) => {
        const read = Reflect.get(target, key, target);
        if (ENDS.has(key) && read !== undefined && read !== Infinity && read !== false) this.isEndless = false;
        return read;
      },
    });
  }
}
const ENDS = new Set(['timeout', 'signal', 'ifAvailable', 'steal']);

/** Calls `got` with what the promise of a wait that is being granted is fulfilled with, before anybody else learns of it. */
function whenSettled({ wait }, got) {
  const { resolve } = wait;
  wait.resolve = (value) => {
    got(value);
    resolve(value);
  };
}

/** Of what was granted at once, and may have gone back for what failed then. */
async function unlessRejected(promise, got, gaveBack) {
  try {
    got(await promise);
  } catch {
    gaveBack();
  }
}

/** By their names below. Each makes the method in place of `original`; `wordOf` leads to what is locked. */
const KINDS = {
  /** Takes it, and blocks for it if need be. `at` is where its options are. */
  take(doctor, original, { how, at = 0, isRow = false }, wordOf) {
    const { method } = {
      method(...args) {
        if (doctor.isBusy) return Reflect.apply(original, this, args);
        const options = new Options();
        if (args.length > at) args[at] = options.of(args[at]);
        const result = doctor.inside(original, this, args);
        if (result === false || result === null) return result;
        const trace = doctor.trace(method);
        doctor.quietly(() => {
          const info = doctor.locks.ofWord(wordOf(this));
          if (options.isEndless) doctor.order?.blocking(info, trace);
          doctor.began(info, isRow ? info.address + 4 * args[0] : info.address, how, trace, result);
        });
        return result;
      },
    };
    return method;
  },

  /** Takes it if that can be done at once. */
  tryTake(doctor, original, { how, isRow = false }, wordOf) {
    const { method } = {
      method(...args) {
        const result = doctor.isBusy ? Reflect.apply(original, this, args) : doctor.inside(original, this, args);
        if (doctor.isBusy || result === false || result === null) return result;
        const trace = doctor.trace(method);
        doctor.quietly(() => {
          const info = doctor.locks.ofWord(wordOf(this));
          const address = isRow ? info.address + 4 * args[0] : info.address;
          doctor.began(info, address, how, trace, result);
        });
        return result;
      },
    };
    return method;
  },

  /** Returns a promise of it. */
  takeAsync(doctor, original, { how, at = 0, isRow = false, isGuarded = false }, wordOf) {
    const { method } = {
      method(...args) {
        if (doctor.isBusy) return Reflect.apply(original, this, args);
        const options = new Options();
        if (args.length > at) args[at] = options.of(args[at]);
        const seen = doctor.quietly(() => {
          // What is no index is the original's affair, to read and to refuse.
          if (isRow && typeof args[0] !== 'number') return null;
          const word = wordOf(this);
          const row = isRow ? new Int32Array(word.buffer, word.byteOffset + 4 * args[0], 1) : word;
          return { word: row, info: doctor.locks.ofWord(word), before: how.count(row) };
        });
        const promise = doctor.inside(original, this, args);
        if (seen === null) return promise;
        const { last } = doctor.waits;
        const trace = last === null ? doctor.trace(method) : last.site;
        doctor.quietly(() => {
          const { word, info, before } = seen;
          const address = isRow ? info.address + 4 * args[0] : info.address;
          const sighting = options.isEndless ? (doctor.order?.awaiting(info, trace) ?? null) : null;
          const begin = () => {
            const hold = doctor.began(info, address, how, trace);
            hold.sighting = sighting;
            if (!isGuarded) return;
            hold.isRaw = false;
            const got = (guard) => doctor.quietly(() => doctor.gave(guard, hold));
            if (last !== null) whenSettled(last, got);
            else unlessRejected(promise, got, () => doctor.quietly(() => doctor.end(hold)));
          };
          if (last !== null) {
            last.granted = begin;
            if (sighting !== null) last.awaited = (serials) => sighting.confirm(serials);
          } else if (how.count(word) > before) {
            begin();
          }
        });
        return promise;
      },
    };
    return method;
  },

  /** Gives it back; a guard says how it was held. */
  release(doctor, original, { how, isRow = false }, wordOf) {
    const { method } = {
      method(...args) {
        if (doctor.isBusy) return Reflect.apply(original, this, args);
        const hold = doctor.quietly(() => {
          const isExclusive = how === undefined ? this.mode !== 'shared' : how.isExclusive;
          const { address } = doctor.locks.ofWord(wordOf(this));
          return doctor.heldBy(this, isRow ? address + 4 * args[0] : address, isExclusive);
        });
        doctor.ending = hold;
        try {
          const result = isRow ? doctor.inside(original, this, args) : Reflect.apply(original, this, args);
          const isOver = hold !== null && result !== false && !(how === PERMITS && this.count > 0);
          if (isOver) doctor.quietly(() => doctor.end(hold));
          return result;
        } finally {
          doctor.ending = null;
        }
      },
    };
    return method;
  },

  /** Runs a function that holds; `at` is where that is, and its options come next. */
  run(doctor, original, { how, at = 0 }, wordOf) {
    const { method } = {
      method(...args) {
        const fn = args[at];
        const info =
          typeof fn !== 'function' || doctor.isBusy ? null : doctor.quietly(() => doctor.locks.ofWord(wordOf(this)));
        if (info === null) return Reflect.apply(original, this, args);
        const trace = doctor.trace(method);
        const options = new Options();
        if (args.length > at + 1) args[at + 1] = options.of(args[at + 1]);
        let sighting = null;
        args[at] = (...given) => doctor.run(info, how, trace, sighting, fn, given);
        const promise = doctor.inside(original, this, args);
        doctor.quietly(() => {
          sighting = options.isEndless ? (doctor.order?.awaiting(info, trace) ?? null) : null;
          const { last } = doctor.waits;
          if (last !== null && sighting !== null) last.awaited = (serials) => sighting.confirm(serials);
        });
        return promise;
      },
    };
    return method;
  },

  /** Runs a function that holds, to its end. */
  runSync(doctor, original, { how }, wordOf) {
    const { method } = {
      method(...args) {
        const [fn] = args;
        const info =
          typeof fn !== 'function' || doctor.isBusy ? null : doctor.quietly(() => doctor.locks.ofWord(wordOf(this)));
        if (info === null) return Reflect.apply(original, this, args);
        const options = new Options();
        if (args.length > 1) args[1] = options.of(args[1]);
        const trace = doctor.trace(method);
        args[0] = (...given) => {
          if (options.isEndless) doctor.quietly(() => doctor.order?.blocking(info, trace));
          return doctor.runSync(info, how, trace, fn, given);
        };
        return doctor.inside(original, this, args);
      },
    };
    return method;
  },

  /** Calls back with what it has taken. */
  enter(doctor, original, _details, wordOf) {
    const { method } = {
      method(...args) {
        const [callback] = args;
        if (typeof callback !== 'function' || doctor.isBusy) return Reflect.apply(original, this, args);
        args[0] = (token) => {
          const hold = doctor.quietly(() => doctor.holds.find(doctor.locks.ofWord(wordOf(this)).address, true)) ?? null;
          return hold === null ? callback(token) : doctor.runIn(hold, callback, [token], null);
        };
        return Reflect.apply(original, this, args);
      },
    };
    return method;
  },

  /** Changes how it is held. */
  change(doctor, original, { how }, wordOf) {
    const { method } = {
      method(...args) {
        const result = Reflect.apply(original, this, args);
        if (result === false) return result;
        doctor.quietly(() => {
          const hold = doctor.heldBy(this, doctor.locks.ofWord(wordOf(this)).address, !how.isExclusive);
          if (hold !== null) doctor.holds.setMode(hold, how.isExclusive);
        });
        return result;
      },
    };
    return method;
  },

  /** `request(name, callback)`, or `request(name, options, callback)`, of the manager of named locks. */
  request(doctor, original, { isSync = false }) {
    const { method } = {
      method(...args) {
        const at = args.length > 2 ? 2 : 1;
        const callback = args[at];
        if (typeof callback !== 'function' || doctor.isBusy) return Reflect.apply(original, this, args);
        const options = new Options();
        if (at === 2) args[1] = options.of(args[1]);
        let sighting = null;
        args[at] = (lock) => {
          // Of several names.
          const locks = Array.isArray(lock) ? lock : [lock];
          const holds = locks.map((one) => (one === null ? undefined : doctor.holdOf.get(one)));
          if (holds.length === 0 || holds.includes(undefined)) return callback(lock);
          if (isSync) return doctor.freely(callback, lock);
          const run = (fn, hold) => () => doctor.runIn(hold, fn, [], sighting);
          return holds.reduce(run, () => callback(lock))();
        };
        const asked = { options, isSync, trace: doctor.trace(method) };
        return doctor.asking(original, this, args, asked, (made) => {
          sighting = made;
        });
      },
    };
    return method;
  },

  /** A request for several names goes on with the next. */
  nextName(doctor, original) {
    const { method } = {
      method(...args) {
        doctor.quietly(() => doctor.goOn(this));
        return Reflect.apply(original, this, args);
      },
    };
    return method;
  },

  /** `acquire` and `acquireAsync` of the manager: its held locks are noted where they are granted. */
  acquireNamed(doctor, original, { isSync = false }) {
    const { method } = {
      method(...args) {
        if (doctor.isBusy) return Reflect.apply(original, this, args);
        const options = new Options();
        if (args.length > 1) args[1] = options.of(args[1]);
        return doctor.asking(original, this, args, { options, isSync, trace: doctor.trace(method) });
      },
    };
    return method;
  },
};

const locked = (how) => ({
  lock: ['take', { how }],
  acquire: ['take', { how }],
  tryLock: ['tryTake', { how }],
  tryAcquire: ['tryTake', { how }],
  lockAsync: ['takeAsync', { how }],
  acquireAsync: ['takeAsync', { how, isGuarded: true }],
  unlock: ['release', { how }],
  executeLocked: ['run', { how }],
  executeLockedSync: ['runSync', { how }],
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
  LockTable: {
    lock: ['take', row],
    tryLock: ['tryTake', row],
    lockAsync: ['takeAsync', row],
    unlock: ['release', row],
  },
  Semaphore: {
    acquire: ['take', { how: PERMITS, at: 1 }],
    tryAcquire: ['tryTake', { how: PERMITS }],
    acquireAsync: ['takeAsync', { how: PERMITS, at: 1, isGuarded: true }],
    execute: ['run', { how: PERMITS }],
    executeSync: ['runSync', { how: PERMITS }],
  },
  SemaphorePermits: { release: ['release', { how: PERMITS }], forget: ['release', { how: PERMITS }] },
  Once: { run: ['run', { how: EXCLUSIVE }], runSync: ['runSync', { how: EXCLUSIVE }] },
  Locking: { next: ['nextName', {}] },
  LockManager: {
    request: ['request', {}],
    requestSync: ['request', { isSync: true }],
    acquire: ['acquireNamed', { isSync: true }],
    acquireAsync: ['acquireNamed', {}],
  },
};

/** The method that takes the place of one of a class; undefined if it stays. */
exports.methodsOf = (doctor, className, wordOf) =>
  Object.entries(VERBS[className] ?? {}).map(([name, [kind, details]]) => [
    name,
    (original) => KINDS[kind](doctor, original, details, wordOf),
  ]);
