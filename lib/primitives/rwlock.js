const { inspect } = require('node:util');
const { markAsUncloneable } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { OF_LOCKS } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { notOwner } = require('../errors.js');
const { SharedPrimitive, defineSize, mayBlock, wordsOf } = require('./base.js');
const { ExclusiveLock, NEW_GUARD, innerOf, wordOf } = require('./exclusive.js');
const { refusal } = require('./guard.js');
const { ReadLock, innerOfRead } = require('./read-lock.js');
const { ONE_READER, WRITE_WAYS, newGuard, repairAfterUpgrade, upgrade } = require('./rwlock-guard.js');

const { ABANDONED, Ask, Change, OWNER, READERS, SHARED } = binding;
const { compareExchange, load } = Atomics;
const ME = thread.id;

/** To write under an RwLock: as a mutex. */
class WriteLock extends ExclusiveLock {
  static {
    thread.addClass('WriteLock', WriteLock, wordOf);
  }

  constructor(rwlock, words, mayBlock) {
    super(words, mayBlock, rwlock);
    markAsUncloneable?.(this);
  }

  [NEW_GUARD](rwlock, words) {
    return newGuard(rwlock, words, null, false);
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    const inner = innerOf(this);
    return inner === undefined ? this : `${inspect(inner.lock, { ...options, depth })}.write`;
  }
}

/** Many readers or one writer. */
class RwLock extends SharedPrimitive {
  static {
    defineSize('RwLock', RwLock, 8);
    Object.defineProperty(RwLock, 'MAX_READERS', { value: READERS, enumerable: true });
  }

  #words;
  #read;
  #write;

  constructor(buffer, byteOffset, options) {
    super('RwLock', Ask.Read, 8, buffer, byteOffset, options, 'rwlock', OF_LOCKS);
    const words = wordsOf(this);
    // For messages, and for the mark of abandonment.
    words.ask = Ask.Read;
    words.ways = WRITE_WAYS;
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
    const advise = () => 'this thread does not hold it to write. Lock it by write, and check its data first.';
    if (status !== binding.RELEASED) throw refusal(this.#words, status, advise, 'mark as consistent');
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
    const isUpgraded = upgrade(words, slot, 0);
    if (isUpgraded === undefined) throw notRaw(words, 'upgrade', 'read');
    if (!isUpgraded) return false;
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
/** For `lockAll`: what is inside of a `read`. */
exports.innerOfRead = innerOfRead;
