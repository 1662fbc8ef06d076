const { inspect } = require('node:util');
const { markAsUncloneable } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { lockBlocking, lockWord, tryLock } = require('../engine/wait.js');
const { checkFunction, isThenable, toAsyncOptions, toTimeout } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { mainThread, notOwner, thenableResult } = require('../errors.js');
const { SharedPrimitive, defineSize, mayBlock, wordsOf } = require('./base.js');
const { holdEnded } = require('./guard.js');
const {
  ALL_READERS,
  ONE_READER,
  READ,
  READ_GUARDED,
  READ_INSIDE,
  WRITE,
  WRITE_GUARDED,
  WRITE_INSIDE,
  endWrite,
  newGuard,
  refused,
  releaseRead,
  repairAfterUpgrade,
  tryRead,
  upgrade,
} = require('./rwlock-guard.js');

const { ABANDONED, Ask, Change, GUARDED, OWNER, READERS, SHARED } = binding;
const { compareExchange, load } = Atomics;
const ME = thread.id;
const MINE_GUARDED = ME | GUARDED;

/** What is inside of a `read`, and of a `write`; undefined for what is none. */
let innerOfRead;
let innerOfWrite;

// The fast paths: one compare-exchange, after a plain load whose value it confirms. As in mutex.js, whatever may fail at the
// end of the stack comes first. A reader's hold is counted in its slot, in the expression of the compare-exchange: register.js
// says why. `tryRead` and `releaseRead` try again where other readers were quicker, and the core does the rest.

/** To read under an RwLock. */
class ReadLock {
  static {
    thread.addClass(ReadLock, (lock) => lock.#words);
    innerOfRead = (lock) => {
      if (!(#words in lock)) return undefined;
      // Its slot is there before the core counts in it.
      if (lock.#slot === null) lock.#newSlot();
      return { owner: lock.#rwlock, word: lock.#words, mayBlock: lock.#mayBlock, request: READ_GUARDED };
    };
  }

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
    if (!this.#mayBlock) throw mainThread(words, 'lockAsync()', 'RwLock');
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
    return tryRead(words, slot, 0) || lockBlocking(this.#rwlock, words, READ, limit, 'read.lock');
  }

  tryLock() {
    const words = this.#words;
    const slot = this.#slot ?? this.#newSlot();
    return tryRead(words, slot, 0) || tryLock(this.#rwlock, words, READ);
  }

  lockAsync(timeout) {
    if (timeout === undefined && thread.pending === 0) {
      const slot = this.#slot ?? this.#newSlot();
      const locked = Promise.resolve(true);
      if (tryRead(this.#words, slot, 0)) return locked;
    }
    return this.#lockAsync(timeout, READ, 'read.lockAsync');
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
    if (!this.#mayBlock) throw mainThread(words, 'acquireAsync()', 'RwLock');
    const slot = this.#slot ?? this.#newSlot();
    const guard = newGuard(this.#rwlock, words, slot, true);
    return tryRead(words, slot, 1) ? guard : lockBlocking(this.#rwlock, words, READ_GUARDED, limit, 'read.acquire');
  }

  tryAcquire() {
    const words = this.#words;
    const slot = this.#slot ?? this.#newSlot();
    const guard = newGuard(this.#rwlock, words, slot, true);
    return tryRead(words, slot, 1) ? guard : tryLock(this.#rwlock, words, READ_GUARDED);
  }

  acquireAsync(options) {
    if (options === undefined && thread.pending === 0) {
      const slot = this.#slot ?? this.#newSlot();
      const acquired = Promise.resolve(newGuard(this.#rwlock, this.#words, slot, true));
      if (tryRead(this.#words, slot, 1)) return acquired;
    }
    return this.#lockAsync(options, READ_GUARDED, 'read.acquireAsync');
  }

  async executeLocked(fn, options) {
    const words = this.#words;
    checkFunction(words, 'fn', fn);
    const slot = this.#slot ?? this.#newSlot();
    if (options === undefined && thread.pending === 0 && tryRead(words, slot, 1)) await undefined;
    else await this.#lockAsync(options, READ_INSIDE, 'read.executeLocked');
    let result;
    try {
      result = fn();
      if (isThenable(result)) result = await result;
    } catch (error) {
      // What `fn` throws says more than why the lock could not be given back.
      releaseRead(words, slot, 1);
      throw error;
    }
    const error = releaseRead(words, slot, 1);
    if (error !== undefined) throw error;
    return result;
  }

  executeLockedSync(fn, options) {
    const words = this.#words;
    checkFunction(words, 'fn', fn);
    const limit = options === undefined ? Infinity : toTimeout(words, options);
    if (!this.#mayBlock) throw mainThread(words, 'executeLocked()', 'RwLock');
    const slot = this.#slot ?? this.#newSlot();
    if (!tryRead(words, slot, 1)) {
      lockBlocking(this.#rwlock, words, READ_INSIDE, limit, 'read.executeLockedSync');
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
    // As in mutex.js: `fn` may have failed for want of stack, so no function of JS may be needed here.
    const was = words[0];
    const now = was === ONE_READER ? 0 : was - 1;
    const isPlain = was > SHARED && was <= ALL_READERS;
    // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
    if (!(isPlain && compareExchange(words, 0, was, now) === was && (slot[1] -= 1) !== undefined)) {
      try {
        thread.drainSoon(this.#words);
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

  get isHeldByThisThread() {
    const slot = this.#slot ?? this.#newSlot();
    return slot[0] + slot[1] > 0;
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
      // Before it can be granted.
      this.#slot ??= slotFor(this.#words, Ask.Read);
      return lockWord(this.#rwlock, this.#words, request, toAsyncOptions(this.#words, options), verb);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/** To write under an RwLock: as a mutex. */
class WriteLock {
  static {
    thread.addClass(WriteLock, (lock) => lock.#words);
    innerOfWrite = (lock) =>
      #words in lock
        ? { lock: lock.#rwlock, word: lock.#words, mayBlock: lock.#mayBlock, raw: WRITE, guarded: WRITE_GUARDED }
        : undefined;
  }

  #rwlock;
  #words;
  #mayBlock;

  constructor(rwlock, words, mayBlock) {
    this.#rwlock = rwlock;
    this.#words = words;
    this.#mayBlock = mayBlock;
    markAsUncloneable?.(this);
  }

  lock(timeout) {
    const limit = timeout === undefined ? Infinity : toTimeout(this.#words, timeout);
    if (!this.#mayBlock) throw mainThread(this.#words, 'lockAsync()', 'RwLock');
    return compareExchange(this.#words, 0, 0, ME) === 0 || this.#lockContended(limit, WRITE, 'write.lock');
  }

  tryLock() {
    return compareExchange(this.#words, 0, 0, ME) === 0 || tryLock(this.#rwlock, this.#words, WRITE);
  }

  lockAsync(timeout) {
    if (timeout === undefined && thread.pending === 0) {
      const locked = Promise.resolve(true);
      if (compareExchange(this.#words, 0, 0, ME) === 0) return locked;
    }
    return this.#lockAsync(timeout, WRITE, 'write.lockAsync');
  }

  unlock() {
    if (compareExchange(this.#words, 0, ME, 0) !== ME) this.#unlockContended();
  }

  acquire(options) {
    const limit = options === undefined ? Infinity : toTimeout(this.#words, options);
    if (!this.#mayBlock) throw mainThread(this.#words, 'acquireAsync()', 'RwLock');
    const guard = newGuard(this.#rwlock, this.#words, null, false);
    if (compareExchange(this.#words, 0, 0, MINE_GUARDED) === 0) return guard;
    return this.#lockContended(limit, WRITE_GUARDED, 'write.acquire');
  }

  tryAcquire() {
    const guard = newGuard(this.#rwlock, this.#words, null, false);
    if (compareExchange(this.#words, 0, 0, MINE_GUARDED) === 0) return guard;
    return tryLock(this.#rwlock, this.#words, WRITE_GUARDED);
  }

  acquireAsync(options) {
    if (options === undefined && thread.pending === 0) {
      const acquired = Promise.resolve(newGuard(this.#rwlock, this.#words, null, false));
      if (compareExchange(this.#words, 0, 0, MINE_GUARDED) === 0) return acquired;
    }
    return this.#lockAsync(options, WRITE_GUARDED, 'write.acquireAsync');
  }

  async executeLocked(fn, options) {
    checkFunction(this.#words, 'fn', fn);
    let { era } = thread;
    if (options === undefined && thread.pending === 0 && compareExchange(this.#words, 0, 0, MINE_GUARDED) === 0) {
      await undefined;
    } else {
      era = await this.#lockAsync(options, WRITE_INSIDE, 'write.executeLocked');
    }
    let result;
    try {
      result = fn();
      if (isThenable(result)) result = await result;
    } catch (error) {
      this.#end(era);
      throw error;
    }
    const error = this.#end(era);
    if (error !== undefined) throw error;
    return result;
  }

  executeLockedSync(fn, options) {
    checkFunction(this.#words, 'fn', fn);
    const limit = options === undefined ? Infinity : toTimeout(this.#words, options);
    if (!this.#mayBlock) throw mainThread(this.#words, 'executeLocked()', 'RwLock');
    if (compareExchange(this.#words, 0, 0, MINE_GUARDED) !== 0) {
      this.#lockContended(limit, WRITE_INSIDE, 'write.executeLockedSync');
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
    // As in mutex.js.
    if (thread.hasAway || compareExchange(this.#words, 0, MINE_GUARDED, 0) !== MINE_GUARDED) {
      try {
        thread.drainSoon(this.#words);
      } catch {
        binding.wake();
      }
      const status = binding.endGuard(this.#words, era, Ask.WriteGuarded);
      if (status !== binding.RELEASED) {
        const refusal = holdEnded(this.#words, status, 'write.executeLockedSync()');
        if (refusal !== undefined && !hasThrown) throw refusal;
      }
    }
    if (hasThrown) throw error;
    if (isThenable(result)) throw thenableResult(this.#words);
    return result;
  }

  get isHeldByThisThread() {
    return (load(this.#words, 0) & (OWNER | SHARED)) === ME;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    return #words in this ? `${inspect(this.#rwlock, { ...options, depth })}.write` : this;
  }

  /** As in mutex.js. */
  #end(era) {
    const isFreed = !thread.hasAway && compareExchange(this.#words, 0, MINE_GUARDED, 0) === MINE_GUARDED;
    return isFreed ? undefined : endWrite(this.#words, era, 'write.executeLocked()');
  }

  #unlockContended() {
    thread.drainSoon(this.#words);
    const status = binding.release(this.#words, Ask.Write, 1, 0);
    if (status !== binding.RELEASED) throw refused(this.#words, status, true, true);
  }

  #lockContended(limit, request, verb) {
    return lockBlocking(this.#rwlock, this.#words, request, limit, verb);
  }

  #lockAsync(options, request, verb) {
    try {
      return lockWord(this.#rwlock, this.#words, request, toAsyncOptions(this.#words, options), verb);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/** Many readers or one writer. */
class RwLock extends SharedPrimitive {
  static {
    defineSize(RwLock, 8);
    Object.defineProperty(RwLock, 'MAX_READERS', { value: READERS, enumerable: true });
  }

  #words;
  #read;
  #write;

  constructor(buffer, byteOffset, options) {
    super('RwLock', Ask.Read, 8, buffer, byteOffset, options);
    const words = wordsOf(this);
    // For messages, and for the mark of abandonment.
    words.ask = Ask.Read;
    const onAbandoned = options?.onAbandoned;
    if (onAbandoned !== undefined) words.onAbandoned = onAbandoned;
    this.#words = words;
    this.#read = new ReadLock(this, words, mayBlock(this));
    this.#write = new WriteLock(this, words, mayBlock(this));
  }

  get read() {
    return this.#read;
  }

  get write() {
    return this.#write;
  }

  get isWriteLocked() {
    const word = load(this.#words, 0);
    return (word & SHARED) === 0 && (word & OWNER) !== 0;
  }

  get readers() {
    const word = load(this.#words, 0);
    return (word & SHARED) === 0 ? 0 : word & READERS;
  }

  get abandoned() {
    const isMarked = (load(this.#words, 0) & ABANDONED) !== 0;
    return isMarked && (this.#write.isHeldByThisThread || this.#read.isHeldByThisThread);
  }

  markConsistent() {
    const status = binding.change(this.#words, Ask.Write, Change.MarkConsistent, 0, 0);
    if (status === binding.RELEASED) return;
    if (status === binding.CORRUPT) throw corrupt(this.#words);
    throw notOwner(
      this.#words,
      'mark as consistent',
      'this thread does not hold it to write. Lock it by write, and check its data first.',
      thread.isWaitingFor(this.#words),
    );
  }

  downgrade() {
    const words = this.#words;
    const slot = slotFor(words, Ask.Read);
    // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
    if (compareExchange(words, 0, ME, ONE_READER) === ME && (slot[0] += 1) !== undefined) return;
    thread.drainSoon(this.#words);
    const status = binding.change(words, Ask.Write, Change.Downgrade, 0, 0);
    if (status === binding.CORRUPT) throw corrupt(words);
    if (status !== binding.RELEASED) throw notRaw(words, 'downgrade', 'write');
  }

  tryUpgrade() {
    const words = this.#words;
    const slot = slotFor(words, Ask.Read);
    if (slot[0] === 0) throw notRaw(words, 'upgrade', 'read');
    if (!upgrade(words, slot, 0)) return false;
    repairAfterUpgrade(this, words, this);
    return true;
  }
}

const notRaw = (words, verb, lock) =>
  notOwner(
    words,
    verb,
    `this thread did not lock it by ${lock}.lock(), ${lock}.tryLock() or ${lock}.lockAsync(). A guard has a ${verb === 'upgrade' ? 'tryUpgrade' : verb}() of its own.`,
    thread.isWaitingFor(words),
  );

exports.RwLock = RwLock;
exports.RwLockGuard = require('./rwlock-guard.js').RwLockGuard;
/** For `Condition`: as `innerOf` of mutex.js, for `write` of an RwLock. */
exports.innerOfWrite = (lock) => innerOfWrite(lock);
/** For `lockAll`: what is inside of a `read` or a `write`. */
exports.innerOfLockable = (lock) => {
  const write = innerOfWrite(lock);
  if (write === undefined) return innerOfRead(lock);
  return { owner: write.lock, word: write.word, mayBlock: write.mayBlock, request: write.guarded };
};
