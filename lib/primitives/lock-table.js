const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { OF_LOCKS, checkExecuted, isIterable, toTimeout } = require('../arguments.js');
const { hashOf } = require('./hash.js');
const { SharedPrimitive, defineSize, mayBlock, rejectCall, wordsOf } = require('./base.js');
const { wordOf } = require('./exclusive.js');
const { Mutex } = require('./mutex.js');

const errors = lazily(() => require('../errors.js'));
const inspection = lazily(() => require('../engine/inspection.js'));
const several = lazily(() => require('./lock-all.js'));

const { OWNER } = binding;
const { compareExchange, load } = Atomics;
const { isInteger } = Number;
const ME = thread.id;

const BYTES = 4;
/** As many as an index of 32 bits can tell apart. */
const MAX_LENGTH = 2 ** 32 - 1;

function checkLength(length) {
  if (typeof length !== 'number') throw errors().invalidArgument('length', 'a number of locks', length);
  if (!Number.isInteger(length) || length < 1 || length > MAX_LENGTH) {
    throw errors().outOfRange('length', `an integer from 1 to ${MAX_LENGTH}`, length);
  }
}

/** The name of the lock in messages. */
const kindOf = (index) => `lock ${index} of the table`;

/** Many locks in a row, of four bytes each, which are locked by their number. */
class LockTable extends SharedPrimitive {
  static {
    defineSize('LockTable', LockTable, BYTES);
  }

  /** The words of all locks. */
  #words;
  #length;
  #mayBlock;

  static bytes(length) {
    checkLength(length);
    return length * BYTES;
  }

  constructor(buffer, byteOffset, length, options) {
    checkLength(length);
    super(undefined, undefined, length * BYTES, buffer, byteOffset, options, 'table of locks', OF_LOCKS);
    this.#words = wordsOf(this);
    this.#words.rows = { type: 'Mutex', of: 'LockTable' };
    this.#length = length;
    this.#mayBlock = mayBlock(this);
  }

  get length() {
    return this.#length;
  }

  // The fast paths: one compare-exchange on the view of all words, as in mutex.js, and nothing that is made before. Where that
  // fails, or more is needed, an object for the one lock takes over.

  lock(index, timeout) {
    if (!isInteger(index) || index < 0 || index >= this.#length) throw this.#badIndex(index);
    const limit = timeout === undefined ? Infinity : this.#toLimit(index, timeout);
    if (!this.#mayBlock) this.#checkThread(index);
    return compareExchange(this.#words, index, 0, ME) === 0 || this.#at(index).lock(limit);
  }

  tryLock(index) {
    if (!isInteger(index) || index < 0 || index >= this.#length) throw this.#badIndex(index);
    return compareExchange(this.#words, index, 0, ME) === 0 || this.#at(index).tryLock();
  }

  unlock(index) {
    if (!isInteger(index) || index < 0 || index >= this.#length) throw this.#badIndex(index);
    if (compareExchange(this.#words, index, ME, 0) !== ME) this.#at(index).unlock();
  }

  lockAsync(index, options) {
    try {
      if (!isInteger(index) || index < 0 || index >= this.#length) return Promise.reject(this.#badIndex(index));
      if (options === undefined && thread.pending === 0) {
        const locked = Promise.resolve(true);
        if (compareExchange(this.#words, index, 0, ME) === 0) return locked;
      }
      return this.#at(index).lockAsync(options);
    } catch (error) {
      if (#words in Object(this)) throw error;
      return Promise.reject(errors().invalidThis(this, 'lockAsync'));
    }
  }

  isHeldByThisThread(index) {
    if (!isInteger(index) || index < 0 || index >= this.#length) throw this.#badIndex(index);
    return (load(this.#words, index) & OWNER) === ME;
  }

  // A guard knows its lock, so that there is an object for it.

  acquire(index, options) {
    const lock = this.at(index);
    const limit = options === undefined ? Infinity : toTimeout(wordOf(lock), options);
    this.#checkThread(index);
    return lock.acquire(limit);
  }

  acquireAsync(index, options) {
    try {
      return this.at(index).acquireAsync(options);
    } catch (error) {
      return rejectCall(error, this, 'acquireAsync');
    }
  }

  tryAcquire(index) {
    return this.at(index).tryAcquire();
  }

  executeLocked(index, fn, options) {
    try {
      return this.at(index).executeLocked(fn, options);
    } catch (error) {
      return rejectCall(error, this, 'executeLocked');
    }
  }

  executeLockedSync(index, fn, options) {
    const lock = this.at(index);
    checkExecuted(wordOf(lock), fn, options);
    const limit = options === undefined ? Infinity : toTimeout(wordOf(lock), options);
    this.#checkThread(index);
    return lock.executeLockedSync(fn, { timeout: limit });
  }

  at(index) {
    if (!isInteger(index) || index < 0 || index >= this.#length) throw this.#badIndex(index);
    return this.#at(index);
  }

  inspect(index) {
    return this.at(index).inspect();
  }

  indexFor(key) {
    return hashOf(key) % this.#length;
  }

  lockAll(indices, options) {
    return several().lockAll(this.#locks(indices), options);
  }

  lockAllAsync(indices, options) {
    try {
      return several().lockAllAsync(this.#locks(indices), options);
    } catch (error) {
      return rejectCall(error, this, 'lockAllAsync');
    }
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#words in this)) return this;
    const { name, byteOffset, length } = this;
    return inspection().show('LockTable', name, { byteOffset, length }, depth, options);
  }

  #at(index) {
    const { name, onAbandoned, staysAwake } = this.#words;
    const lock = new Mutex(this.#words.buffer, this.byteOffset + index * BYTES, {
      allowMainThread: this.#mayBlock,
      maySleep: !staysAwake,
      onAbandoned: onAbandoned === undefined ? undefined : () => onAbandoned(this, index),
    });
    // Not by names.js, which would remember each of these objects: the table's name is there.
    Object.assign(wordOf(lock), { kind: kindOf(index), table: this.#words, name });
    return lock;
  }

  /** The place of the lock is made for the message only: it would cost more than the lock. */
  #toLimit(index, timeout) {
    try {
      return toTimeout(this.#words, timeout);
    } catch {
      return toTimeout(this.#placeOf(index), timeout);
    }
  }

  #checkThread(index) {
    if (!this.#mayBlock) throw errors().mainThread(this.#placeOf(index), 'the asynchronous verb', 'LockTable');
  }

  /** For messages. */
  #placeOf(index) {
    return { name: this.#words.name, kind: kindOf(index), byteOffset: this.byteOffset + index * BYTES };
  }

  #locks(indices) {
    if (!isIterable(indices)) throw errors().invalidArgument('indices', 'an array of numbers', indices, this.#words);
    return Array.from(indices, (index) => this.at(index));
  }

  #badIndex(index) {
    return errors().badIndex(this.#words, index, this.#length);
  }
}

exports.LockTable = LockTable;
