const clock = require('../load/clock.js');
const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { checkFunction, isThenable, reasonOf, toAsyncOptions, toTimeout, toWaiters } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { describe, mainThread, noBackgroundThread, notLock, notOwner, thenablePredicate } = require('../errors.js');
const { SharedPrimitive, defineSize, rejectCall, wordsOf } = require('./base.js');
const { innerOf } = require('./exclusive.js');
const { PendingWait, after } = require('../engine/pending-wait.js');
const { isWatched, tellEnded, whileBlocked } = require('../engine/diagnosis.js');
const { conclude, lockWord } = require('../engine/wait.js');

const inspection = lazily(() => require('../engine/inspection.js'));

const { GUARDED, OWNER, SHARED } = binding;
const { HasAway, HasEnded, IsNotified, Number: NUMBER } = binding.Field;
const { load } = Atomics;

/** A promise for a notification, which is settled once the mutex is held again. */
class ConditionWait extends PendingWait {
  /** The number of the guard's hold that it was lent; 0 if the hold is the thread's own. */
  hold = 0;
  /** The wait for the mutex, which comes last. */
  locking = null;
  #isNotified = false;
  /** The error that says which function has ended, if that hold was its. */
  #ended = null;

  constructor(lock, word, request, { signal, ref }, outer) {
    super(signal, ref);
    this.lock = lock;
    this.word = word;
    /** The request that asks for the hold again. */
    this.request = request;
    /** Has the promise that the user got, if that is another one. */
    this.outer = outer;
  }

  settle(status) {
    this.#isNotified = status === binding.GRANTED;
    this.#lockAgain(() => this.resolve(this.#isNotified));
    this.stopListening();
  }

  abort(reason) {
    if (!thread.cancel(this)) return;
    this.#lockAgain(() => this.reject(reason));
    this.stopListening();
  }

  /** The function whose hold it was lent has ended: it stays in the queue, but does not lock the mutex again. */
  holderEnded(name) {
    this.#ended = functionEnded(this.word, name);
    // A wait that the function itself did not await need not be awaited by anybody.
    this.promise.catch(() => {});
    this.outer?.promise.catch(() => {});
    this.locking?.abort(this.#ended);
  }

  /** Until the mutex is held again a notification is not quite ours: if this thread ends before, it is passed on. */
  #lockAgain(conclude) {
    const succeed = () => {
      if (this.#isNotified) binding.accept(this.token, true);
      conclude();
    };
    const fail = (error) => {
      if (this.#isNotified) binding.accept(this.token, false);
      this.reject(error);
    };
    if (this.#ended !== null) {
      fail(this.#ended);
      return;
    }
    let locked;
    const lock = () => {
      const options = { timeout: Infinity, signal: undefined, ref: this.ref };
      locked = lockWord(this.lock, this.word, this.request, options, undefined, this);
    };
    try {
      // In the context of whoever waits, and not of whoever notified.
      this.runInAsyncScope(lock);
    } catch (error) {
      // Not if it is what came after that has failed.
      if (locked === undefined) {
        this.settleHold(false);
        fail(error);
        return;
      }
    }
    after(locked, succeed, fail);
  }

  /** The mutex is locked again; throws if there is nobody to hold it. */
  checkHolder() {
    if (this.hold === 0 || isAt(binding.AWAY, this.word, this.hold)) return;
    if (this.#ended === null) this.holderEnded('The function');
    throw this.#ended;
  }

  /** The hold is with its guard again, or the mutex could not be locked again. */
  settleHold(isHeld) {
    if (this.hold === 0) return;
    thread.lent.delete(this.hold);
    binding.settleHold(this.word, this.hold, isHeld);
    thread.hasAway = thread.record[HasAway] === 1;
  }
}

/** The hold with which a wait began, which may end while its predicate is awaited. */
class WatchedHold {
  #word;
  #outer;
  /** 0: the thread's own. */
  #number = 0;

  constructor(word, outer) {
    this.#word = word;
    this.#outer = outer;
    if (!isGuarded(word)) return;
    this.#number = binding.watchHold(word, endEra());
  }

  /** Throws if it has ended, even if another guard of this thread holds the mutex now. */
  check() {
    if (this.#number === 0 || isAt(binding.HERE, this.#word, this.#number)) return;
    // As for a wait whose function has ended.
    this.#outer.promise.catch(() => {});
    throw functionEnded(this.#word, 'The function or guard that held it');
  }

  release() {
    if (this.#number === 0) return;
    binding.unwatchHold(this.#word, this.#number);
    thread.hasAway = thread.record[HasAway] === 1;
  }
}

/** Waiting, with a mutex, until another thread says that something has changed. */
class Condition extends SharedPrimitive {
  static {
    defineSize('Condition', Condition, 4);
  }

  #word;

  constructor(buffer, byteOffset, options) {
    super('Condition', undefined, 4, buffer, byteOffset, options);
    this.#word = wordsOf(this);
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#word in this)) return this;
    const fields = { byteOffset: this.byteOffset, waiters: binding.waiting(this.#word, 0) };
    return inspection().show('Condition', this.name, fields, depth, options);
  }

  wait(mutex, timeout) {
    const inner = toInner(mutex);
    const limit = toTimeout(inner.word, timeout);
    if (!inner.mayBlock) throw mainThread(inner.word, 'waitAsync()', inner.lock.constructor.name);
    return this.#wait(inner, limit);
  }

  waitFor(mutex, predicate, timeout) {
    const inner = toInner(mutex);
    checkFunction(inner.word, 'predicate', predicate);
    const limit = toTimeout(inner.word, timeout);
    if (!inner.mayBlock) throw mainThread(inner.word, 'waitForAsync()', inner.lock.constructor.name);
    isGuarded(inner.word);
    const deadline = clock.now() + limit;
    const holds = () => {
      const value = predicate();
      if (isThenable(value)) throw thenablePredicate(inner.word);
      return Boolean(value);
    };
    while (!holds()) {
      if (!this.#wait(inner, deadline - clock.now())) return holds();
    }
    return true;
  }

  waitAsync(mutex, options) {
    try {
      const inner = toInner(mutex);
      return Promise.resolve(this.#waitAsync(inner, toAsyncOptions(inner.word, options)));
    } catch (error) {
      return rejectCall(error, this, 'waitAsync');
    }
  }

  waitForAsync(mutex, predicate, options) {
    const outer = { promise: undefined };
    try {
      outer.promise = this.#waitForAsync(mutex, predicate, options, outer);
    } catch (error) {
      return rejectCall(error, this, 'waitForAsync');
    }
    return outer.promise;
  }

  async #waitForAsync(mutex, predicate, options, outer) {
    const inner = toInner(mutex);
    const { word } = inner;
    checkFunction(word, 'predicate', predicate);
    const { timeout, signal, ref } = toAsyncOptions(word, options);
    const deadline = clock.now() + timeout;
    const hold = new WatchedHold(word, outer);
    let isOver = false;
    try {
      for (;;) {
        const isMet = Boolean(await predicate());
        hold.check();
        if (isMet || isOver) return isMet;
        const left = deadline - clock.now();
        isOver = !(await this.#waitAsync(inner, { timeout: left, signal, ref }, outer));
        hold.check();
      }
    } finally {
      hold.release();
    }
  }

  notify(count = Infinity) {
    return binding.notify(this.#word, 0, toWaiters(count));
  }

  notifyOne() {
    return binding.notify(this.#word, 0, 1);
  }

  notifyAll() {
    return binding.notify(this.#word, 0, Infinity);
  }

  #wait({ lock, word, raw, guarded }, limit) {
    // Before it looks whose the hold is: users' code may run in that.
    if (limit > 0) thread.drainSoon(word);
    const request = isGuarded(word) ? guarded : raw;
    if (limit <= 0) return false;
    // The binding notes where the guard's hold is: a `vm` time limit may end this call at any point, and runs no `catch`.
    const era = request.isGuarded ? endEra() : 0;
    let status = binding.NOT_OWNER;
    let isNotified = false;
    const wait = () => {
      status = binding.waitUnlocked(this.#word, word, request.ask, limit, era);
      isNotified = thread.record[IsNotified] === 1;
      return status;
    };
    try {
      if (isWatched()) whileBlocked(lock, word, wait);
      else wait();
      if (status === binding.NOT_OWNER) throw notHeld(word);
      if (thread.record[HasEnded] !== 0) tellEnded(lock, word, request.ask);
      conclude(status, lock, word, request, Infinity);
    } catch (error) {
      if (status === binding.GRANTED || status === binding.GRANTED_ABANDONED) {
        // Its guard is not to free what another guard holds later, though `takeOver` may have found that no hold is away any more.
        if (request.isGuarded) {
          binding.settleHold(word, binding.watchHold(word, thread.era++), false);
          thread.hasAway = true;
        }
        binding.giveBack(word, request.ask, 1, 0);
      }
      throw error;
    }
    if (request.isGuarded) thread.hasAway = thread.record[HasAway] === 1;
    return isNotified;
  }

  /** Returns a promise, or `false`; throws what is an error. */
  #waitAsync({ lock, word, raw, guarded }, options, outer) {
    const { timeout, signal } = options;
    const request = isGuarded(word) ? guarded : raw;
    if (signal?.aborted) throw reasonOf(signal);
    if (timeout <= 0) return false;
    const wait = new ConditionWait(lock, word, request, options, outer);
    // First whatever may throw, then the queue.
    wait.startListening();
    thread.drainSoon(word);
    const era = request.isGuarded ? endEra() : 0;
    let status = binding.NOT_OWNER;
    try {
      status = binding.waitUnlockedAsync(this.#word, word, request.ask, timeout, era);
      if (status === binding.PENDING) {
        if (request.isGuarded) {
          wait.hold = thread.record[NUMBER];
          thread.lent.set(wait.hold, wait);
        }
        thread.add(wait);
        return wait.promise;
      }
      wait.stopListening();
      if (status === binding.NO_CLOCK) throw noBackgroundThread(describe(this.#word));
      throw status === binding.CORRUPT ? corrupt(word) : notHeld(word);
    } catch (error) {
      // The wait that the thread could not take in is over, and so is its hold.
      if (request.isGuarded && status === binding.PENDING) {
        thread.lent.delete(wait.hold);
        binding.settleHold(word, wait.hold, false);
      }
      thread.hasAway = thread.record[HasAway] === 1;
      throw error;
    }
  }
}

/** The inner state of the lock that a wait is with. */
function toInner(mutex) {
  const inner = innerOf(mutex);
  if (inner === undefined) throw notLock('mutex', 'a Mutex, or the write of an RwLock', mutex);
  return inner;
}

/** Whether a guard owns this thread's hold; throws if there is none. */
function isGuarded(word) {
  const value = load(word, 0);
  if ((value & (OWNER | SHARED)) !== thread.id) throw notHeld(word);
  return (value & GUARDED) !== 0;
}

/** Ends the era of a guard's hold, which is about to be lent or watched. Returns it. */
function endEra() {
  thread.hasAway = true;
  return thread.era++;
}

/** Whether a guard's hold of this number is `HERE`, or `AWAY`. */
const isAt = (whereabouts, word, number) =>
  binding.whereabouts(word, number) === whereabouts && thread.record[NUMBER] === number;

const notHeld = (word) =>
  notOwner(
    word,
    'wait with',
    'this thread does not hold it. Lock it first: to wait is to unlock it meanwhile.',
    thread.isWaitingFor(word),
  );

const functionEnded = (word, name) =>
  notOwner(
    word,
    'lock again',
    `${name} has ended, and with it the hold that this wait had unlocked. Await the wait in the function that holds the mutex.`,
  );

exports.Condition = Condition;
