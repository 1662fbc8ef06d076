const { inspect } = require('node:util');
const { markAsUncloneable } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { lockBlocking, tryLock } = require('../engine/wait.js');
const { checkFunction, toTimeout } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { mainThread, notOwner } = require('../errors.js');
const { SharedPrimitive, defineSize, mayBlock, wordsOf } = require('./base.js');
const { executeLocked, executeLockedSync, lockAsync } = require('./exclusive.js');
const { ReadLock, innerOfRead } = require('./read-lock.js');
const {
  ONE_READER,
  WRITE,
  WRITE_GUARDED,
  WRITE_INSIDE,
  newGuard,
  refused,
  repairAfterUpgrade,
  upgrade,
} = require('./rwlock-guard.js');

const { ABANDONED, Ask, Change, GUARDED, OWNER, READERS, SHARED } = binding;
const { compareExchange, load } = Atomics;
const ME = thread.id;
const MINE_GUARDED = ME | GUARDED;

/** What is inside of a `write`; undefined for what is none. */
let innerOfWrite;

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
    return lockAsync(this.#rwlock, this.#words, WRITE, timeout, 'write.lockAsync');
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
    return lockAsync(this.#rwlock, this.#words, WRITE_GUARDED, options, 'write.acquireAsync');
  }

  executeLocked(fn, options) {
    return executeLocked(this.#rwlock, this.#words, fn, options, WRITE_INSIDE, 'write.executeLocked');
  }

  executeLockedSync(fn, options) {
    checkFunction(this.#words, 'fn', fn);
    const limit = options === undefined ? Infinity : toTimeout(this.#words, options);
    if (!this.#mayBlock) throw mainThread(this.#words, 'executeLocked()', 'RwLock');
    return executeLockedSync(this.#rwlock, this.#words, fn, limit, WRITE_INSIDE, 'write.executeLockedSync');
  }

  get isHeldByThisThread() {
    return (load(this.#words, 0) & (OWNER | SHARED)) === ME;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    return #words in this ? `${inspect(this.#rwlock, { ...options, depth })}.write` : this;
  }

  #unlockContended() {
    thread.drainSoon(this.#words);
    const status = binding.release(this.#words, Ask.Write, 1, 0);
    if (status !== binding.RELEASED) throw refused(this.#words, status, true, true);
  }

  #lockContended(limit, request, verb) {
    return lockBlocking(this.#rwlock, this.#words, request, limit, verb);
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
    words.guarded = WRITE_GUARDED;
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
