// The half of an RwLock that many may hold.
//
// The fast paths: one compare-exchange, after a plain load whose value it confirms. As in mutex.js, whatever may fail at the
// end of the stack comes first. A reader's hold is counted in its slot, in the expression of the compare-exchange: register.js
// says why. `tryRead` and `releaseRead` try again where other readers were quicker, and the core does the rest. The second word
// is not 0 while anybody waits, one who was woken too, so that who only tries does not pass.

const { inspect } = require('node:util');
const { markAsUncloneable } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { lockBlocking, lockWord, tryLock } = require('../engine/wait.js');
const { checkExecuted, isThenable, toAsyncOptions, toTimeout } = require('../arguments.js');
const { invalidThis, mainThread, thenableResult } = require('../errors.js');
const { execute } = require('./exclusive.js');
const {
  ALL_READERS,
  ONE_READER,
  READ,
  READ_GUARDED,
  READ_INSIDE,
  newGuard,
  readsBeside,
  refused,
  releaseRead,
  tryRead,
} = require('./rwlock-guard.js');

const { Ask, SHARED } = binding;
const { compareExchange } = Atomics;

let inner;

/** To read under an RwLock. */
class ReadLock {
  static {
    thread.addClass('ReadLock', ReadLock, (lock) => lock.#words);
    inner = (lock) => {
      if (!(#words in lock)) return undefined;
      // Its slot is there before the core counts in it.
      if (lock.#slot === null) lock.#newSlot();
      return { owner: lock.#rwlock, word: lock.#words, mayBlock: lock.#mayBlock, request: READ_GUARDED };
    };
  }

  static #RUN = {
    enter(lock, options) {
      const slot = lock.#slot ?? lock.#newSlot();
      if (options === undefined && thread.pending === 0 && tryRead(lock.#words, slot, 1)) return true;
      return lock.#lockAsync(options, READ_INSIDE, 'executeLocked');
    },
    leave(lock) {
      const error = releaseRead(lock.#words, lock.#slot, 1);
      if (error !== undefined) throw error;
    },
  };

  #rwlock;
  #words;
  #mayBlock;
  /** The counts of this thread's read holds, once it has any. */
  #slot = null;

  constructor(rwlock, words, mayBlock) {
    this.#rwlock = rwlock;
    this.#words = words;
    this.#mayBlock = mayBlock;
    markAsUncloneable?.(this);
  }

  lock(timeout) {
    const words = this.#words;
    const limit = timeout === undefined ? Infinity : toTimeout(words, timeout);
    if (!this.#mayBlock) throw mainThread(words);
    const slot = this.#slot === null ? this.#newSlot() : this.#slot;
    const was = words[0];
    // Two branches: a free lock, with numbers that V8 knows, is quicker.
    if (was === 0) {
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, 0, ONE_READER) === 0 && (slot[0] += 1) !== undefined) return true;
    } else if (was > SHARED && was < ALL_READERS) {
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, was, was + 1) === was && (slot[0] += 1) !== undefined) return true;
    }
    return tryRead(words, slot, 0) || lockBlocking(this.#rwlock, words, READ, limit, 'lock');
  }

  tryLock() {
    const words = this.#words;
    const slot = this.#slot ?? this.#newSlot();
    return (words[1] === 0 && tryRead(words, slot, 0)) || tryLock(this.#rwlock, words, READ);
  }

  lockAsync(timeout) {
    try {
      const slot = this.#slot;
      // Without a slot, which cannot be had where the memory is not its own, the promise is rejected with that.
      if (timeout === undefined && thread.pending === 0 && slot !== null) {
        const locked = Promise.resolve(true);
        if (tryRead(this.#words, slot, 0)) return locked;
      }
      return this.#lockAsync(timeout, READ, 'lockAsync');
    } catch (error) {
      if (#words in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'lockAsync'));
    }
  }

  unlock() {
    const words = this.#words;
    const slot = this.#slot === null ? this.#newSlot() : this.#slot;
    if (slot[0] === 0) throw refused(words, binding.NOT_OWNER, false, true);
    const was = words[0];
    if (was === ONE_READER) {
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, ONE_READER, 0) === ONE_READER && (slot[0] -= 1) !== undefined) return;
    } else if (was > SHARED && was <= ALL_READERS) {
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, was, was - 1) === was && (slot[0] -= 1) !== undefined) return;
    }
    const error = releaseRead(words, slot, 0);
    if (error !== undefined) throw error;
  }

  acquire(options) {
    const words = this.#words;
    const limit = options === undefined ? Infinity : toTimeout(words, options);
    if (!this.#mayBlock) throw mainThread(words, 'acquireAsync()');
    const slot = this.#slot ?? this.#newSlot();
    const guard = newGuard(this.#rwlock, words, slot, true);
    return tryRead(words, slot, 1) ? guard : lockBlocking(this.#rwlock, words, READ_GUARDED, limit, 'acquire');
  }

  tryAcquire() {
    const words = this.#words;
    const slot = this.#slot ?? this.#newSlot();
    const guard = newGuard(this.#rwlock, words, slot, true);
    return words[1] === 0 && tryRead(words, slot, 1) ? guard : tryLock(this.#rwlock, words, READ_GUARDED);
  }

  acquireAsync(options) {
    try {
      const slot = this.#slot;
      // As in `lockAsync`.
      if (options === undefined && thread.pending === 0 && slot !== null) {
        const acquired = Promise.resolve(newGuard(this.#rwlock, this.#words, slot, true));
        if (tryRead(this.#words, slot, 1)) return acquired;
      }
      return this.#lockAsync(options, READ_GUARDED, 'acquireAsync');
    } catch (error) {
      if (#words in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'acquireAsync'));
    }
  }

  executeLocked(fn, options) {
    try {
      return execute(this, this.#words, fn, options, ReadLock.#RUN);
    } catch (error) {
      if (#words in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'executeLocked'));
    }
  }

  executeLockedSync(fn, options) {
    const words = this.#words;
    let result;
    let error;
    let hasThrown = false;
    // As in exclusive.js.
    const hold = { isUnreleased: false };
    try {
      result = this.#hold(fn, options, hold);
    } catch (thrown) {
      error = thrown;
      hasThrown = true;
    }
    if (hold.isUnreleased) {
      try {
        thread.drainSoon(words);
      } catch {
        binding.wake();
      }
      const status = binding.release(words, Ask.ReadGuarded, 1, 0);
      if (status !== binding.RELEASED && !hasThrown) throw refused(words, status, false, false);
    }
    if (hasThrown) throw error;
    if (isThenable(result)) throw thenableResult(words);
    return result;
  }

  /** As that of exclusive.js. */
  #hold(fn, options, hold) {
    const words = this.#words;
    checkExecuted(words, fn, options);
    const limit = options === undefined ? Infinity : toTimeout(words, options);
    if (!this.#mayBlock) throw mainThread(words, 'executeLocked()');
    const slot = this.#slot ?? this.#newSlot();
    if (!tryRead(words, slot, 1)) {
      lockBlocking(this.#rwlock, words, READ_INSIDE, limit, 'executeLockedSync');
    }
    let result;
    let error;
    let hasThrown = false;
    try {
      result = fn();
    } catch (thrown) {
      error = thrown;
      hasThrown = true;
    }
    hold.isUnreleased = true;
    try {
      const was = words[0];
      const now = was === ONE_READER ? 0 : was - 1;
      const isPlain = was > SHARED && was <= ALL_READERS;
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (isPlain && compareExchange(words, 0, was, now) === was && (slot[1] -= 1) !== undefined) {
        hold.isUnreleased = false;
      }
    } catch {
      // For want of stack.
    }
    if (hasThrown) throw error;
    return result;
  }

  get isHeldByThisThread() {
    const slot = this.#slot ?? this.#newSlot();
    return slot[0] + slot[1] > 0 || readsBeside(this.#words);
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    return #slot in this ? `${inspect(this.#rwlock, { ...options, depth })}.read` : this;
  }

  #newSlot() {
    this.#slot = slotFor(this.#words, Ask.Read);
    return this.#slot;
  }

  #lockAsync(options, request, verb) {
    try {
      const words = this.#words;
      // Before it can be granted.
      const slot = this.#slot ?? this.#newSlot();
      const checked = toAsyncOptions(words, options);
      if (thread.pending === 0 && !checked.signal?.aborted) {
        // As for any request: see lockWord() in wait.js. The slot is known here.
        const taken = Promise.resolve(request === READ_GUARDED ? newGuard(this.#rwlock, words, slot, true) : true);
        if (tryRead(words, slot, request === READ ? 0 : 1)) return taken;
      }
      return lockWord(this.#rwlock, words, request, checked, verb);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

exports.ReadLock = ReadLock;
/** For `lockAll`: what is inside of a `read`; undefined for what is none. */
exports.innerOfRead = (lock) => inner(lock);
