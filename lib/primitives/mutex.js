const { lazily } = require('../load/lazily.js');
const { markAsUncloneable } = require('node:worker_threads');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { checkFunction, toLockOptions, toTimeout, toWord } = require('../arguments.js');
const { executeLocked, executeLockedSync, lockAsync } = require('./exclusive.js');
const { GUARDED_HOLD, INSIDE, LockGuard, RAW, createGuard, unlockContended } = require('./guard.js');

const corruption = lazily(() => require('../engine/corrupt.js'));
const errors = lazily(() => require('../errors.js'));
const inspection = lazily(() => require('../engine/inspection.js'));
const names = lazily(() => require('../engine/names.js'));
const loadWaits = lazily(() => require('../engine/wait.js'));

const { ABANDONED, GUARDED, OWNER } = binding;
const { compareExchange, load } = Atomics;
const ME = thread.id;
const MINE_GUARDED = ME | GUARDED;

let inner;

/** What `console.log()` shows. */
const fieldsOf = ({ locked, ownerThreadId, abandoned, waiters }) => ({
  locked,
  ownerThreadId,
  abandoned,
  waiters: waiters.length,
});

/** A mutual-exclusion lock on four bytes of shared memory. */
class Mutex {
  static {
    inner = (mutex) =>
      #word in mutex
        ? { lock: mutex, word: mutex.#word, mayBlock: mutex.#mayBlock, raw: RAW, guarded: GUARDED_HOLD }
        : undefined;
    thread.addClass(Mutex, (mutex) => mutex.#word);
    thread.plain = { type: 'Mutex', ask: binding.Ask.Mutex };
    for (const name of ['BYTES', 'ALIGN']) Object.defineProperty(Mutex, name, { value: 4, enumerable: true });
  }

  #word;
  #mayBlock;

  constructor(buffer, byteOffset, options) {
    const word = toWord(buffer, byteOffset);
    const { allowMainThread, maySleep, name, onAbandoned } = toLockOptions(options);
    // The word carries them to wherever it is at hand.
    if (name !== undefined) names().name(word, name);
    if (onAbandoned !== undefined) word.onAbandoned = onAbandoned;
    if (!maySleep) word.staysAwake = true;
    this.#word = word;
    this.#mayBlock = allowMainThread || !isMainThread;
    // Since Node.js 22.12: else postMessage() would send an empty object.
    markAsUncloneable?.(this);
  }

  get buffer() {
    return this.#word.buffer;
  }

  get byteOffset() {
    return this.#word.byteOffset;
  }

  get name() {
    return this.#word.name ?? null;
  }

  // The fast paths: one compare-exchange. V8 inlines these methods (`npm run bench:inlining`). `binding` is called only
  // when it fails. Whatever may fail at the end of the stack, which is where any function of JS begins, comes before the
  // compare-exchange; after it there is nothing but the return.

  lock(timeout) {
    const limit = timeout === undefined ? Infinity : toTimeout(this, timeout);
    if (!this.#mayBlock) throw errors().mainThread(this);
    return compareExchange(this.#word, 0, 0, ME) === 0 || this.#lockContended(limit, RAW, 'lock');
  }

  tryLock() {
    return compareExchange(this.#word, 0, 0, ME) === 0 || this.#tryContended(RAW);
  }

  lockAsync(timeout) {
    if (timeout === undefined && thread.pending === 0) {
      const locked = Promise.resolve(true);
      if (compareExchange(this.#word, 0, 0, ME) === 0) return locked;
    }
    return lockAsync(this, this.#word, RAW, timeout, 'lockAsync');
  }

  unlock() {
    if (compareExchange(this.#word, 0, ME, 0) !== ME) unlockContended(this.#word);
  }

  acquire(options) {
    const limit = options === undefined ? Infinity : toTimeout(this, options);
    if (!this.#mayBlock) throw errors().mainThread(this, 'acquireAsync()');
    const guard = createGuard(this, this.#word);
    if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return guard;
    return this.#lockContended(limit, GUARDED_HOLD, 'acquire');
  }

  tryAcquire() {
    const guard = createGuard(this, this.#word);
    if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return guard;
    return this.#tryContended(GUARDED_HOLD);
  }

  acquireAsync(options) {
    if (options === undefined && thread.pending === 0) {
      const acquired = Promise.resolve(createGuard(this, this.#word));
      if (compareExchange(this.#word, 0, 0, MINE_GUARDED) === 0) return acquired;
    }
    return lockAsync(this, this.#word, GUARDED_HOLD, options, 'acquireAsync');
  }

  executeLocked(fn, options) {
    return executeLocked(this, this.#word, fn, options, INSIDE, 'executeLocked');
  }

  executeLockedSync(fn, options) {
    checkFunction(this, 'fn', fn);
    const limit = options === undefined ? Infinity : toTimeout(this, options);
    if (!this.#mayBlock) throw errors().mainThread(this, 'executeLocked()');
    return executeLockedSync(this, this.#word, fn, limit, INSIDE, 'executeLockedSync');
  }

  enter(callback) {
    checkFunction(this, 'callback', callback);
    const run = (token) => {
      // In a microtask of its own, what it throws is an uncaught error and not a rejection that nobody could handle.
      queueMicrotask(() => callback(token));
    };
    this.acquireAsync().then(run);
  }

  leave(token) {
    const isOurs = token instanceof LockGuard && token.mutex !== null && token.mutex.#isOn(this.#word);
    if (!isOurs || !token.unlock()) {
      throw errors().notOwner(
        this,
        'leave',
        'this is not the token of its current holder. Pass the token that the callback of enter() got.',
      );
    }
  }

  get isLocked() {
    return (load(this.#word, 0) & OWNER) !== 0;
  }

  get isHeldByThisThread() {
    return (load(this.#word, 0) & OWNER) === ME;
  }

  get abandoned() {
    const word = load(this.#word, 0);
    return (word & OWNER) === ME && (word & ABANDONED) !== 0;
  }

  markConsistent() {
    const status = binding.change(this.#word, binding.Ask.Mutex, binding.Change.MarkConsistent, 0, 0);
    if (status === binding.CORRUPT) throw corruption().corrupt(this.#word);
    if (status === binding.NOT_OWNER) {
      throw errors().notOwner(
        this,
        'mark as consistent',
        'this thread does not hold it. Lock it and check its data first.',
        thread.isWaitingFor(this.#word),
      );
    }
  }

  inspect() {
    return inspection().inspectWord(this.#word, binding.inspect(this.#word));
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#word in this)) return this;
    return inspection().showWord('Mutex', this.#word, binding.inspect(this.#word), fieldsOf, depth, options);
  }

  #isOn(word) {
    return this.#word === word || binding.isSame(this.#word, word);
  }

  #lockContended(limit, request, verb) {
    return loadWaits().lockBlocking(this, this.#word, request, limit, verb);
  }

  #tryContended(request) {
    return loadWaits().tryLock(this, this.#word, request);
  }
}

exports.Mutex = Mutex;
/**
 * For `Condition`: the word, whether this thread may block, and what asks for a hold, by the thread or by a guard; undefined for
 * what is no mutex of this load.
 */
exports.innerOf = (mutex) => (typeof mutex === 'object' && mutex !== null ? inner(mutex) : undefined);
