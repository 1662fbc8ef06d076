const { binding, thread } = require('./thread.js');
const { repair, report } = require('./abandonment.js');
const { cycleKinds, describeHolder, isWatched, tellDeadlock, tellEnded, whileBlocked } = require('./diagnosis.js');
const { corrupt } = require('./corrupt.js');
const { DeadlockError, TimeoutError, describe, noBackgroundThread, threadEnding } = require('../errors.js');
const { PendingWait } = require('./pending-wait.js');
const { reasonOf } = require('../arguments.js');

const { Cycle, CycleLength, Found, Given, HasEnded, Parties, Token } = binding.Field;

/**
 * A request, as the verbs of a primitive make it:
 * - `ask`, `count`, `of`: what the binding is asked for; `isCounted`: the last two matter;
 * - `tryFree(word)`: takes it if it is free and nobody waits, without the binding; left out where that cannot be;
 * - `take(lock, word, status)`: what the caller gets once it is granted; `refused(lock, word)`: if there is nothing to wait for;
 * - `arrived`, `parties`, `given`: of what is counted, what the call found when it queued, was refused, or was let in;
 * - `isGuarded`: it gets an object, and throws when it is out of time; else it gets `true`, or `false`;
 * - `prefix`: what comes before its verbs in messages;
 * - `timedOut(word, timeout, verb)`: what it throws then, if not the error of a lock;
 * - `isExclusive`: it has to report a holder whose thread ended inside, or to repair what that left; `isShared`: only to report;
 * - `cameAborted()`: what becomes of one whose signal has aborted before, if it is not nothing;
 * - `isPassage`: there is nothing to hold, so that the wait is not published.
 */

/** A promise for a lock, pending once the thread has taken it in. */
class LockWait extends PendingWait {
  constructor(lock, word, request, { timeout, signal, ref }, verb, lender) {
    super(signal, ref);
    this.lock = lock;
    this.word = word;
    this.request = request;
    if (timeout !== Infinity) this.timeout = timeout;
    this.verb = verb;
    if (lender !== undefined) this.lender = lender;
  }

  get isForLock() {
    return true;
  }

  /** Ends it with its status, in a drain. */
  settle(status) {
    try {
      this.#settle(status);
    } finally {
      // A grant that went back has ended by an error, which is not published.
      this.watch?.end(this.isGivenBack ? undefined : status);
    }
  }

  #settle(status) {
    if (this.request.isCounted) this.request.given = thread.record[Given];
    const hasEnded = thread.record[HasEnded] !== 0;
    // Taken out first: async hooks of the scope and subscribers may make calls of their own.
    const report = status === binding.GRANTED_ABANDONED ? binding.setReport(0) : 0;
    if (hasEnded) this.runInAsyncScope(tellEnded, null, this.lock, this.word, this.request.ask);
    if (status === binding.GRANTED_ABANDONED || (status === binding.GRANTED && this.word.onAbandoned !== undefined)) {
      // Users' code, which runs in the asynchronous context of the wait.
      this.runInAsyncScope(this.#end, this, status, report);
    } else if (status === binding.GRANTED || (status === binding.TIMED_OUT && !this.request.isGuarded)) {
      this.#end(status);
    } else {
      this.fail(() => this.conclude(status));
    }
    this.stopListening();
  }

  #end(status, report = 0) {
    try {
      if (report !== 0) binding.setReport(report);
      this.resolve(this.conclude(status));
    } catch (error) {
      this.reject(error);
    }
  }

  /** As the function, for this wait. When it throws, nothing is held. */
  conclude(status) {
    const isHeld = status === binding.GRANTED || status === binding.GRANTED_ABANDONED;
    try {
      if (isHeld) this.lender?.checkHolder();
      const value = conclude(status, this.lock, this.word, this.request, this.timeout, this.verb);
      this.lender?.settleHold(true);
      return value;
    } catch (error) {
      if (isHeld) {
        // Once only: what is counted would be taken from other holds the second time.
        this.isGivenBack = true;
        // At the end of the stack no function of JS may be able to begin; those of the binding always are.
        binding.giveBack(this.word, this.request.ask, this.request.count, this.request.of);
      }
      this.lender?.settleHold(false);
      throw error;
    }
  }
}

LockWait.prototype.timeout = Infinity;
/** The wait for a condition that brings a hold back; undefined if this is a new one. */
LockWait.prototype.lender = undefined;
/** Whether its grant went back. */
LockWait.prototype.isGivenBack = false;

/**
 * From the status to what the user gets. Throws what is an error. If it throws although the status
 * says that the word is held, because `onAbandoned` did or for want of stack, the caller gives the word back.
 * `verb` is for the message when the time was over.
 */
function conclude(status, lock, word, request, timeout, verb) {
  switch (status) {
    case binding.GRANTED:
    case binding.GRANTED_ABANDONED:
      if (request.isExclusive) takeOver(status, lock, word, request);
      else if (request.isShared && status === binding.GRANTED_ABANDONED) report(lock, word, true);
      return request.take(lock, word, status);
    case binding.REFUSED:
      return request.refused(lock, word);
    case binding.CORRUPT:
      throw corrupt(word);
    case binding.NO_CLOCK:
      throw noBackgroundThread(describe(word));
    case binding.INTERRUPTED:
      throw threadEnding(describe(word));
    case binding.DEADLOCK:
      throw foundDeadlock(lock, word);
    default: // TIMED_OUT
      if (request.timedOut !== undefined) throw request.timedOut(word, timeout, verb);
      if (request.isGuarded)
        throw new TimeoutError(word, timeout, `${request.prefix ?? ''}${verb}`, describeHolder(word));
      return false;
  }
}

/** The word was acquired: what is to be done if it is marked. Throws what `onAbandoned` throws. */
function takeOver(status, lock, word, { endHold }) {
  if (word.onAbandoned === undefined) {
    if (status === binding.GRANTED_ABANDONED) report(lock, word);
  } else if ((Atomics.load(word, 0) & binding.ABANDONED) !== 0) {
    const { era } = thread;
    try {
      repair(lock, word);
    } catch (error) {
      // It may have lent the hold, whose guard no code will get, to a wait.
      if (endHold !== undefined && thread.hasAway) endHold(word, era, 'onAbandoned()');
      throw error;
    }
  }
}

/** The error of the deadlock that the binding has just found, which is published; `place` is what this thread has waited for. */
function foundDeadlock(lock, place) {
  const error = new DeadlockError(place, readCycle(), cycleKinds());
  // It is read: what comes now has another one.
  thread.record[CycleLength] = 0;
  tellDeadlock(lock, place, error.cycle);
  return error;
}

/** From here on byte offsets mean names. */
const NAMED = 2 ** 52;

/** The waits of the deadlock that the binding has just found. */
function readCycle() {
  const { record } = thread;
  return Array.from({ length: record[CycleLength] }, (_, step) => {
    const threadId = record[Cycle + 2 * step];
    const byteOffset = record[Cycle + 2 * step + 1];
    return byteOffset < NAMED
      ? { threadId, byteOffset }
      : { threadId, byteOffset: -1, name: binding.nameOf(byteOffset) };
  });
}

/**
 * Locks the word, or queues for it. Returns a promise of what `conclude` makes of it; may throw. `lender` is the wait for a
 * condition that brings its hold back.
 */
exports.lockWord = (lock, word, request, options, verb, lender) => {
  const { timeout, signal } = options;
  if (signal?.aborted) {
    request.cameAborted?.();
    return Promise.reject(reasonOf(signal));
  }
  if (request.tryFree !== undefined && thread.pending === 0 && lender === undefined) {
    // No listener of the signal is needed, nor any clock. Nothing that may fail comes after it is taken.
    const taken = Promise.resolve(request.take(lock, word, binding.GRANTED));
    if (request.tryFree(word)) return taken;
  }
  const isTold = !request.isPassage && isWatched();
  const wait = new LockWait(lock, word, request, options, verb, lender);
  if (lender !== undefined) lender.locking = wait;
  const { ask, count, of } = request;
  // Nothing that may fail comes after the binding has acquired it.
  const taken = request.isCounted ? undefined : request.take(lock, word, binding.GRANTED);
  // First whatever may throw, then the queue.
  wait.startListening();
  // JS may be interrupted where a function written in JS begins: not between this and the queue.
  thread.pending += 1;
  let status;
  try {
    status = binding.acquireAsync(word, ask, timeout, signal !== undefined, count, of);
  } catch (error) {
    thread.pending -= 1;
    throw error;
  }
  if (request.isCounted) {
    // At once, without a call: before other code makes one, and since what was acquired must not be lost for want of stack.
    request.arrived = thread.record[Found];
    request.parties = thread.record[Parties];
    request.given = thread.record[Given];
  }
  if (status !== binding.PENDING) {
    thread.pending -= 1;
    if (
      taken !== undefined &&
      status === binding.GRANTED &&
      signal === undefined &&
      lender === undefined &&
      word.onAbandoned === undefined &&
      thread.record[HasEnded] === 0
    ) {
      wait.resolve(taken);
      try {
        wait.emitDestroy();
      } catch {
        // For want of stack. The lock is held, and the caller must learn of that.
      }
      return wait.promise;
    }
    const isHeld = status === binding.GRANTED || status === binding.GRANTED_ABANDONED;
    let value;
    try {
      const hasEnded = thread.record[HasEnded] !== 0;
      stopKeepingReport(wait, status);
      if (hasEnded) tellEnded(lock, word, ask);
      value = wait.conclude(status);
    } catch (error) {
      // If `conclude` could not begin.
      if (isHeld && !wait.isGivenBack) binding.giveBack(word, ask, count, of);
      throw error;
    }
    wait.resolve(value);
  } else {
    if (word.staysAwake) binding.stayAwake(thread.record[Token]);
    // First this, which reads the record: subscribers may make calls of their own.
    thread.add(wait);
    try {
      if (isTold) wait.beginWatch();
    } catch {
      // For want of stack. It is pending, and the caller must get the promise.
    }
  }
  return wait.promise;
};

/** Stops listening, which runs users' code of the signal, with the report of the call before put by. */
function stopKeepingReport(wait, status) {
  const report = status === binding.GRANTED_ABANDONED ? binding.setReport(0) : 0;
  try {
    // Others have passed, or have what this one brought: that cannot be taken back.
    if (wait.request.isPassage) wait.stopListeningSafely();
    else wait.stopListening();
  } finally {
    if (status === binding.GRANTED_ABANDONED) binding.setReport(report);
  }
}

/** Locks the word, blocking this thread. Returns what `conclude` makes of it; throws what is an error. */
exports.lockBlocking = (lock, word, request, timeout, verb) => {
  const { ask, count, of } = request;
  let status = binding.TIMED_OUT;
  const call = () => {
    status = binding.acquire(word, ask, timeout, count, of);
    if (request.isCounted) {
      // At once, before subscribers run.
      request.arrived = thread.record[Found];
      request.parties = thread.record[Parties];
      request.given = thread.record[Given];
    }
    return status;
  };
  try {
    if (!request.isPassage && isWatched()) whileBlocked(lock, word, call);
    else call();
    if (thread.record[HasEnded] !== 0) tellEnded(lock, word, ask);
    if (status === binding.GRANTED && !request.isGuarded && word.onAbandoned === undefined) return true;
    return conclude(status, lock, word, request, timeout, verb);
  } catch (error) {
    if (status === binding.GRANTED || status === binding.GRANTED_ABANDONED) binding.giveBack(word, ask, count, of);
    throw error;
  }
};

exports.foundDeadlock = foundDeadlock;
exports.conclude = conclude;
exports.takeOver = takeOver;

/** Acquires what can be had at once. Returns what `conclude` makes of it; `false`, or `null` for a guard, if it cannot. */
exports.tryLock = (lock, word, request) => {
  const { ask, count, of } = request;
  const status = binding.tryAcquire(word, ask, count, of);
  try {
    if (thread.record[HasEnded] !== 0) tellEnded(lock, word, ask);
    if (status === binding.TIMED_OUT) return request.isGuarded ? null : false;
    return conclude(status, lock, word, request, 0);
  } catch (error) {
    if (status === binding.GRANTED || status === binding.GRANTED_ABANDONED) binding.giveBack(word, ask, count, of);
    throw error;
  }
};
