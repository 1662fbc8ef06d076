// To lock what one may hold, whatever it is: a mutex, or `write` of an RwLock, which differ in what is asked for and in their guards.

const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { checkExecuted, isThenable, toAsyncOptions, toTimeout } = require('../arguments.js');
const { endHold, holdEnded, unlockContended, waysOf } = require('./guard.js');

const errors = lazily(() => require('../errors.js'));
const loadWaits = lazily(() => require('../engine/wait.js'));

const { Ask, GUARDED, OWNER, SHARED } = binding;
const { compareExchange, load } = Atomics;
const ME = thread.id;
const MINE_GUARDED = ME | GUARDED;

/** The method that makes a guard, of the lock and its word. */
const NEW_GUARD = Symbol('newGuard');

/** A promise of what the request takes. */
function lockAsync(lock, word, request, options, verb) {
  try {
    return loadWaits().lockWord(lock, word, request, toAsyncOptions(word, options), verb);
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Runs `fn` in a hold of `lock`: what `way.enter(lock, options)` returns, or has promised, and `way.leave(lock, hold)` gives back.
 * `word` is for messages.
 */
async function execute(lock, word, fn, options, way) {
  checkExecuted(word, fn, options);
  const hold = await way.enter(lock, options);
  let result;
  try {
    result = fn();
    if (isThenable(result)) result = await result;
  } catch (error) {
    try {
      way.leave(lock, hold);
    } catch {
      // The error of `fn` says more.
    }
    throw error;
  }
  way.leave(lock, hold);
  return result;
}

let wordOf;
let innerOf;

/** The verbs of a lock that one may hold. */
class ExclusiveLock {
  static {
    wordOf = (lock) => lock.#word;
    innerOf = (lock) => {
      if (typeof lock !== 'object' || lock === null || !(#word in lock)) return undefined;
      const { raw, guarded } = waysOf(lock.#word);
      return { lock: lock.#lock, word: lock.#word, mayBlock: lock.#mayBlock, raw, guarded };
    };
  }

  static #RUN = {
    enter(lock, options) {
      const word = lock.#word;
      const { era } = thread;
      // A lock that is free needs no request; and what is no promise is not awaited.
      if (options === undefined && thread.pending === 0 && compareExchange(word, 0, 0, MINE_GUARDED) === 0) return era;
      return lockAsync(lock.#lock, word, waysOf(word).inside, options, 'executeLocked');
    },
    leave(lock, era) {
      const word = lock.#word;
      if (!thread.hasAway && compareExchange(word, 0, MINE_GUARDED, 0) === MINE_GUARDED) return;
      const error = endHold(word, era, `${waysOf(word).inside.prefix}executeLocked()`);
      if (error !== undefined) throw error;
    },
  };

  #lock;
  #word;
  #mayBlock;

  /** `lock` is what it is of, if that is not itself. */
  constructor(word, mayBlock, lock) {
    this.#lock = lock ?? this;
    this.#word = word;
    this.#mayBlock = mayBlock;
  }

  // The fast paths: one compare-exchange. V8 inlines these methods (`npm run bench:inlining`). `binding` is called only
  // when it fails. Whatever may fail at the end of the stack, which is where any function of JS begins, comes before the
  // compare-exchange; after it there is nothing but the return.

  lock(timeout) {
    const limit = timeout === undefined ? Infinity : toTimeout(this.#word, timeout);
    if (!this.#mayBlock) throw errors().mainThread(this.#word);
    return compareExchange(this.#word, 0, 0, ME) === 0 || this.#lockContended(limit, waysOf(this.#word).raw, 'lock');
  }

  tryLock() {
    return compareExchange(this.#word, 0, 0, ME) === 0 || this.#tryContended(waysOf(this.#word).raw);
  }

  lockAsync(timeout) {
    try {
      if (timeout === undefined && thread.pending === 0) {
        const locked = Promise.resolve(true);
        if (compareExchange(this.#word, 0, 0, ME) === 0) return locked;
      }
      return lockAsync(this.#lock, this.#word, waysOf(this.#word).raw, timeout, 'lockAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(errors().invalidThis(this, 'lockAsync'));
    }
  }

  unlock() {
    if (compareExchange(this.#word, 0, ME, 0) !== ME) unlockContended(this.#word);
  }

  acquire(options) {
    const limit = options === undefined ? Infinity : toTimeout(this.#word, options);
    if (!this.#mayBlock) throw errors().mainThread(this.#word, 'acquireAsync()');
    const guard = this[NEW_GUARD](this.#lock, this.#word);
    if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return guard;
    return this.#lockContended(limit, waysOf(this.#word).guarded, 'acquire');
  }

  tryAcquire() {
    const guard = this[NEW_GUARD](this.#lock, this.#word);
    if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return guard;
    return this.#tryContended(waysOf(this.#word).guarded);
  }

  acquireAsync(options) {
    try {
      if (options === undefined && thread.pending === 0) {
        const acquired = Promise.resolve(this[NEW_GUARD](this.#lock, this.#word));
        if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return acquired;
      }
      return lockAsync(this.#lock, this.#word, waysOf(this.#word).guarded, options, 'acquireAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(errors().invalidThis(this, 'acquireAsync'));
    }
  }

  executeLocked(fn, options) {
    try {
      return execute(this, this.#word, fn, options, ExclusiveLock.#RUN);
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(errors().invalidThis(this, 'executeLocked'));
    }
  }

  executeLockedSync(fn, options) {
    let result;
    let error;
    let hasThrown = false;
    // At the end of the stack the release after `fn` may fail: code that V8 has deoptimized meanwhile needs more stack for a
    // call than it had looked for. Then it is done here, with the stack of a frame more.
    const unreleased = { era: 0 };
    try {
      result = this.#hold(fn, options, unreleased);
    } catch (thrown) {
      error = thrown;
      hasThrown = true;
    }
    if (unreleased.era !== 0) {
      const word = this.#word;
      // Until the word is free, nothing may fail for want of stack, for which `fn` may have failed.
      try {
        thread.drainSoon(word);
      } catch {
        binding.wake();
      }
      const ended = binding.endGuard(word, word.ways?.inside.ask ?? Ask.MutexGuarded, unreleased.era);
      if (ended !== binding.RELEASED) {
        const refusal = holdEnded(word, ended, `${waysOf(word).inside.prefix}executeLockedSync()`);
        // The error of `fn` says more than this one.
        if (refusal !== undefined && !hasThrown) throw refusal;
      }
    }
    if (hasThrown) throw error;
    if (isThenable(result)) throw errors().thenableResult(this.#word);
    return result;
  }

  /** Runs `fn` in a hold. No other function of JS begins in it. If it cannot release at once, it notes the era for its caller. */
  #hold(fn, options, unreleased) {
    const word = this.#word;
    checkExecuted(word, fn, options);
    const limit = options === undefined ? Infinity : toTimeout(word, options);
    if (!this.#mayBlock) throw errors().mainThread(word, 'executeLocked()');
    if (compareExchange(word, 0, 0, MINE_GUARDED) !== 0) {
      this.#lockContended(limit, waysOf(word).inside, 'executeLockedSync');
    }
    const { era } = thread;
    let result;
    let error;
    let hasThrown = false;
    try {
      result = fn();
    } catch (thrown) {
      error = thrown;
      hasThrown = true;
    }
    let isReleased = false;
    try {
      isReleased = !thread.hasAway && compareExchange(word, 0, MINE_GUARDED, 0) === MINE_GUARDED;
    } catch {
      // For want of stack.
    }
    if (!isReleased) unreleased.era = era;
    if (hasThrown) throw error;
    return result;
  }

  get isHeldByThisThread() {
    return (load(this.#word, 0) & (OWNER | SHARED)) === ME;
  }

  #lockContended(limit, request, verb) {
    return loadWaits().lockBlocking(this.#lock, this.#word, request, limit, verb);
  }

  #tryContended(request) {
    return loadWaits().tryLock(this.#lock, this.#word, request);
  }
}

exports.ExclusiveLock = ExclusiveLock;
exports.NEW_GUARD = NEW_GUARD;
exports.execute = execute;
exports.lockAsync = lockAsync;
exports.wordOf = wordOf;
/**
 * The lock that it is of, its word, whether this thread may block, and what asks for a hold, by the thread or by a guard; undefined
 * for what is neither a mutex nor a `write` of this load.
 */
exports.innerOf = innerOf;
