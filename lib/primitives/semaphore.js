const { binding, thread } = require('../engine/thread.js');
const { describePermits } = require('../engine/diagnosis.js');
const { slotFor } = require('../engine/register.js');
const { tryLock } = require('../engine/wait.js');
const {
  OF_EXECUTE,
  OF_PRIMITIVES,
  checkBoolean,
  checkExecuted,
  isThenable,
  own,
  toCountOf,
  toPermits,
  toTimeout,
} = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { TimeoutError, beyondCount, invalidArgument, invalidThis, thenableResult } = require('../errors.js');
const { execute } = require('./exclusive.js');
const { CountedRequest, SharedPrimitive, awaitFor, blockFor, defineSize, mayBlock, wordsOf } = require('./base.js');

const { Ask, Change, MAX_PERMITS, TAKEN } = binding;
const { compareExchange, load } = Atomics;

const OPTIONS = [...OF_PRIMITIVES, 'fair'];
const ADVICE = 'Wait longer, or use tryAcquire(), which returns null instead.';
const secret = Symbol('SemaphorePermits');

let giveBack;
let giveBackContended;
let forget;
let takeFree;
let wordOf;

/** The permits that are taken, less those that were added: thirty bits in two's complement. */
const takenOf = (word) => (word << 2) >> 2;

/** The number of permits beyond all that can be added without the core. */
const ADDED = 2 ** 27;

/**
 * Whether somebody waits who has to be looked at, or no sablock wrote it: then only the core may change the word. The waiters of other kinds of lock have
 * their bit where a semaphore has the sign, so that it looks as if very many permits had been added: the core can see that.
 */
const isForCore = (word) => word >> 30 !== 0 || takenOf(word) < -ADDED;

/** A request for permits, which are made before. */
class PermitsRequest extends CountedRequest {
  constructor(ask, permits, count, of) {
    super();
    this.ask = ask;
    this.permits = permits;
    this.count = count;
    this.of = of;
  }

  tryFree() {
    return takeFree(this.permits.semaphore, this.count);
  }

  take() {
    return this.permits;
  }

  timedOut(word, timeout, verb) {
    const asked = this.count === 1 ? 'One permit was asked for' : `${this.count} permits were asked for`;
    const available = availableOf(word, this.of);
    const state = `${asked}, and ${available === 1 ? 'one is' : `${available || 'none'} are`} available now.${describePermits(word, this.ask)}`;
    return new TimeoutError(word, timeout, verb, state, ADVICE);
  }
}

/** Whether it is the fair one: what is no options object is refused later. */
const toFair = (options) => (typeof options === 'object' && options !== null ? own(options, 'fair', false) : false);

const availableOf = (word, permits) => Math.max(permits - takenOf(load(word, 0)), 0);

/** A number of permits, which threads take and give back. */
class Semaphore extends SharedPrimitive {
  static {
    defineSize('Semaphore', Semaphore, 4);
    Object.defineProperty(Semaphore, 'MAX_PERMITS', { value: MAX_PERMITS, enumerable: true });
    giveBack = (semaphore, n) => semaphore.#giveBack(n);
    giveBackContended = (semaphore, n) => semaphore.#giveBackContended(n);
    forget = (semaphore, n) => {
      semaphore.#slot[1] -= n;
    };
    takeFree = (semaphore, n) => semaphore.#take(n);
    wordOf = (semaphore) => semaphore.#word;
  }

  static #RUN = {
    enter: (it, options) => it.#acquireAsync(toPermits(it.#word, options), options, 'execute', OF_EXECUTE),
    leave: (_, permits) => permits.release(),
  };

  #word;
  #ask;
  #permits;
  #mayBlock;
  /** The counts of what this thread's permits hold; see register.js. */
  #slot = null;

  constructor(buffer, byteOffset, permits, options) {
    const fair = toFair(options);
    const ask = fair ? Ask.FairPermits : Ask.Permits;
    super('Semaphore', ask, 4, buffer, byteOffset, options, 'semaphore', OPTIONS);
    this.#word = wordsOf(this);
    checkBoolean('options.fair', fair, this.#word);
    this.#word.isFair = fair;
    this.#ask = ask;
    this.#permits = toCountOf(this.#word, permits, 'permits', MAX_PERMITS, 0);
    this.#mayBlock = mayBlock(this);
  }

  get fair() {
    return this.#word.isFair;
  }

  get available() {
    return availableOf(this.#word, this.#permits);
  }

  acquire(permits = 1, options) {
    return this.#acquire(permits, options, 'acquire', 'acquireAsync()');
  }

  acquireAsync(permits = 1, options) {
    try {
      return this.#acquireAsync(permits, options, 'acquireAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'acquireAsync'));
    }
  }

  tryAcquire(permits = 1) {
    const made = this.#make(permits);
    if (this.#take(permits)) return made;
    return tryLock(this, this.#word, this.#request(made, permits));
  }

  release(n = 1) {
    const word = this.#word;
    toCountOf(word, n, 'n', MAX_PERMITS);
    for (;;) {
      const was = word[0];
      if (isForCore(was)) break;
      const left = takenOf(was) - n;
      if (this.#permits - left > MAX_PERMITS) break;
      if (compareExchange(word, 0, was, left & TAKEN) === was) return;
    }
    thread.drainSoon(word);
    const status = binding.change(word, this.#ask, Change.Add, n, this.#permits);
    if (status === binding.CORRUPT) throw corrupt(word);
    if (status !== binding.RELEASED) throw this.#tooMany(n);
  }

  execute(fn, options) {
    try {
      return execute(this, this.#word, fn, options, Semaphore.#RUN);
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'execute'));
    }
  }

  executeSync(fn, options) {
    checkExecuted(this.#word, fn, options);
    const n = toPermits(this.#word, options);
    const permits = this.#acquire(n, options, 'executeSync', 'execute()', OF_EXECUTE);
    let result;
    let error;
    let hasThrown = false;
    try {
      result = fn();
    } catch (thrown) {
      error = thrown;
      hasThrown = true;
    }
    try {
      permits.release();
    } catch (refusal) {
      // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
      if (refusal.code === undefined) binding.giveBack(this.#word, this.#ask, n, this.#permits);
      // The error of `fn` says more than this one.
      else if (!hasThrown) throw refusal;
    }
    if (hasThrown) throw error;
    if (isThenable(result)) throw thenableResult(this.#word, 'executeSync', 'has its permits back', 'execute');
    return result;
  }

  #check(n) {
    if (typeof n === 'object')
      throw invalidArgument('permits', 'a number, and stand before the options', n, this.#word);
    toCountOf(this.#word, n, 'permits', MAX_PERMITS);
  }

  /** The permits, before they are taken: afterwards nothing may fail. */
  #make(n) {
    // One permit is what most ask for; the check would make this too large for V8 to inline.
    if (n !== 1) this.#check(n);
    this.#slot ??= slotFor(this.#word, this.#ask);
    return new SemaphorePermits(secret, this, n);
  }

  #acquire(n, options, verb, alternative, known) {
    const permits = this.#make(n);
    const limit = options === undefined ? Infinity : toTimeout(this.#word, options, known);
    if (this.#mayBlock && this.#take(n)) return permits;
    return blockFor(this, this.#request(permits, n), limit, verb, alternative);
  }

  #acquireAsync(n = 1, options, verb, known) {
    try {
      const permits = this.#make(n);
      // As long as others of this thread wait, it stays behind them.
      if (options === undefined && thread.pending === 0) {
        const acquired = Promise.resolve(permits);
        if (this.#take(n)) return acquired;
      }
      return awaitFor(this, this.#request(permits, n), options, verb, known);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #request(permits, n) {
    return new PermitsRequest(this.#ask, permits, n, this.#permits);
  }

  /** Takes permits if there are enough, and nobody waits who has to be looked at. */
  #take(n) {
    const word = this.#word;
    const slot = this.#slot;
    const most = this.#permits - n;
    for (;;) {
      const was = word[0];
      if (isForCore(was) || takenOf(was) > most) return false;
      // One expression: see register.js. The load before may be a plain one, since the compare-exchange validates it.
      const now = (was + n) & TAKEN;
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(word, 0, was, now) === was && (slot[1] += n) !== undefined) return true;
    }
  }

  /** Gives back what this thread's permits hold; false if that is the core's. */
  #giveBack(n) {
    const word = this.#word;
    const slot = this.#slot;
    const least = this.#permits + n - MAX_PERMITS;
    for (;;) {
      const was = word[0];
      if (isForCore(was) || takenOf(was) < least) break;
      const now = (was - n) & TAKEN;
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(word, 0, was, now) === was && (slot[1] -= n) !== undefined) return true;
    }
    return false;
  }

  #giveBackContended(n) {
    const word = this.#word;
    const status = binding.release(word, this.#ask, n, this.#permits);
    if (status === binding.CORRUPT) throw corrupt(word);
    if (status === binding.NOT_OWNER) throw this.#tooMany(n);
  }

  #tooMany(n) {
    return beyondCount(this.#word, n, this.available, MAX_PERMITS);
  }
}

/** Permits that were taken together, and go back at the latest when their thread ends. */
class SemaphorePermits {
  static {
    thread.addClass('SemaphorePermits', SemaphorePermits, (permits) => wordOf(permits.#semaphore));
  }

  #semaphore;
  #count;

  constructor(key, semaphore, count) {
    if (key !== secret) {
      throw new TypeError('Illegal constructor. Permits come from acquire(), acquireAsync() and tryAcquire().');
    }
    this.#semaphore = semaphore;
    this.#count = count;
  }

  get semaphore() {
    return this.#semaphore;
  }

  get count() {
    return this.#count;
  }

  release(n = this.#count) {
    if (this.#count === 0) return false;
    if (n !== this.#count) toCountOf(wordOf(this.#semaphore), n, 'n', this.#count);
    if (!giveBack(this.#semaphore, n)) return this.#releaseContended(n);
    this.#count -= n;
    return true;
  }

  #releaseContended(n) {
    const had = this.#count;
    thread.drainSoon(wordOf(this.#semaphore));
    // Users' code that has run in that may have released some: see `drainSoon`.
    if (n > this.#count) return n === had ? this.release() : this.release(n);
    giveBackContended(this.#semaphore, n);
    this.#count -= n;
    return true;
  }

  forget() {
    forget(this.#semaphore, this.#count);
    this.#count = 0;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.release();
  }
}

exports.Semaphore = Semaphore;
exports.SemaphorePermits = SemaphorePermits;
