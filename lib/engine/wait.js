const { binding, thread } = require('./thread.js');
const { repair, report } = require('./abandonment.js');
const { beginWait, describeHolder, isWatched, tellDeadlock, whileBlocked } = require('./diagnosis.js');
const { DeadlockError, TimeoutError, corrupt, describe, noBackgroundThread, threadEnding } = require('../errors.js');
const { createGuard, endHold } = require('../primitives/guard.js');
const { PendingWait } = require('./pending-wait.js');

/** A promise for a mutex, pending once the thread has taken it in. */
class LockWait extends PendingWait {
  constructor(mutex, word, guarded, { timeout, signal, ref }, verb, lender) {
    super(signal, ref);
    this.mutex = mutex;
    this.word = word;
    this.guarded = guarded;
    this.timeout = timeout;
    this.verb = verb;
    /** The wait for a condition that brings a hold back; undefined if this is a new one. */
    this.lender = lender;
  }

  get isForLock() {
    return true;
  }

  /** Ends it with the binding's code, in a drain. */
  settle(code) {
    if (code === binding.ACQUIRED_ABANDONED || (code === binding.ACQUIRED && this.word.onAbandoned !== undefined)) {
      // Users' code, which belongs to the context of whoever waits.
      this.runInAsyncScope(this.#end, this, code);
    } else if (code === binding.ACQUIRED || (code === binding.NOT_ACQUIRED && !this.guarded)) {
      this.#end(code);
    } else {
      this.fail(() => this.conclude(code));
    }
    this.stopListening();
  }

  #end(code) {
    try {
      this.resolve(this.conclude(code));
    } catch (error) {
      this.reject(error);
    }
  }

  /** As the function, for this wait. When it throws, nothing is held. */
  conclude(code) {
    const isHeld = code === binding.ACQUIRED || code === binding.ACQUIRED_ABANDONED;
    try {
      if (isHeld) this.lender?.checkHolder();
      const value = conclude(code, this.mutex, this.word, this.guarded, this.timeout, this.verb);
      this.lender?.bringBack();
      return value;
    } catch (error) {
      if (isHeld) binding.giveBack(this.word, this.guarded);
      this.lender?.lose();
      throw error;
    }
  }
}

/** One that is told about. */
class WatchedLockWait extends LockWait {
  #watch = null;

  begin() {
    this.#watch = beginWait(this);
  }

  settle(code) {
    super.settle(code);
    this.#watch?.end(code);
  }

  abort(reason) {
    const isAborted = super.abort(reason);
    if (isAborted) this.#watch?.end('aborted');
    return isAborted;
  }
}

/**
 * From the binding's code to what the user gets: a boolean, or a guard. Throws what is an error. If it throws although the code
 * says that the word is held, because `onAbandoned` did or for want of stack, the caller gives the word back.
 * `verb` is for the message when the time was over.
 */
function conclude(code, mutex, word, guarded, timeout, verb) {
  switch (code) {
    case binding.ACQUIRED:
    case binding.ACQUIRED_ABANDONED:
      takeOver(code, mutex, word, guarded);
      return guarded ? createGuard(mutex, word) : true;
    case binding.CORRUPT:
      throw corrupt(word, Atomics.load(word, 0));
    case binding.NO_CLOCK:
      throw noBackgroundThread(describe(word));
    case binding.INTERRUPTED:
      throw threadEnding(describe(word));
    case binding.DEADLOCK:
      throw foundDeadlock(mutex, word);
    default: // NOT_ACQUIRED
      if (guarded) throw new TimeoutError(word, timeout, verb, describeHolder(word));
      return false;
  }
}

/** The word was acquired: what is to be done if it is marked. Throws what `onAbandoned` throws. */
function takeOver(code, mutex, word, guarded) {
  if (word.onAbandoned === undefined) {
    if (code === binding.ACQUIRED_ABANDONED) report(mutex, word);
  } else if ((Atomics.load(word, 0) & binding.ABANDONED) !== 0) {
    const { era } = thread;
    try {
      repair(mutex, word);
    } catch (error) {
      // It may have lent the hold, whose guard nobody will get, to a wait.
      if (guarded && thread.hasAway) endHold(word, era, 'onAbandoned()');
      throw error;
    }
  }
}

function foundDeadlock(mutex, word) {
  const error = new DeadlockError(word, readCycle());
  tellDeadlock(mutex, error.cycle);
  return error;
}

/** Who waits for what, in the deadlock that the binding has just found. */
function readCycle() {
  const cycle = [];
  for (let step = 0, threadId = binding.deadlockThread(0); threadId >= 0; threadId = binding.deadlockThread(++step)) {
    cycle.push({ threadId, byteOffset: binding.deadlockByteOffset(step) });
  }
  return cycle;
}

/**
 * Locks the word, or queues for it. Answers a promise of what `conclude` makes of it; may throw. `lender` is the wait for a
 * condition that brings its hold back.
 */
exports.lockWord = (mutex, word, guarded, options, verb, lender) => {
  const { timeout, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const isTold = isWatched();
  const wait = new (isTold ? WatchedLockWait : LockWait)(mutex, word, guarded, options, verb, lender);
  if (lender !== undefined) lender.locking = wait;
  const locked = guarded ? createGuard(mutex, word) : true;
  // First whatever may throw, then the queue.
  wait.startListening();
  // JS may be interrupted where a function written in JS begins: not between this and the queue.
  thread.pending += 1;
  let answer;
  try {
    answer = binding.lockAsync(word, timeout, guarded);
  } catch (error) {
    thread.pending -= 1;
    throw error;
  }
  if (answer < 0) {
    thread.pending -= 1;
    const code = -1 - answer;
    if (code === binding.ACQUIRED && signal === undefined && lender === undefined && word.onAbandoned === undefined) {
      wait.resolve(locked);
      try {
        wait.emitDestroy();
      } catch {
        // For want of stack. The mutex is held, and the caller must learn of that.
      }
      return wait.promise;
    }
    const isHeld = code === binding.ACQUIRED || code === binding.ACQUIRED_ABANDONED;
    let value;
    try {
      wait.stopListening();
      value = wait.conclude(code);
    } catch (error) {
      // Also if `conclude` could not begin. Giving back what is not held any more changes nothing.
      if (isHeld) binding.giveBack(word, guarded);
      throw error;
    }
    wait.resolve(value);
  } else {
    if (isTold) wait.begin();
    thread.add(answer, wait);
  }
  return wait.promise;
};

/** Locks the word, blocking this thread. Answers a boolean or a guard; throws what is an error. */
exports.lockBlocking = (mutex, word, guarded, timeout, verb) => {
  let code = binding.NOT_ACQUIRED;
  const lock = () => {
    code = binding.lock(word, timeout, guarded);
    return code;
  };
  try {
    if (isWatched()) whileBlocked(mutex, word, lock);
    else lock();
    if (code === binding.ACQUIRED && !guarded && word.onAbandoned === undefined) return true;
    return conclude(code, mutex, word, guarded, timeout, verb);
  } catch (error) {
    if (code === binding.ACQUIRED || code === binding.ACQUIRED_ABANDONED) binding.giveBack(word, guarded);
    throw error;
  }
};

exports.conclude = conclude;
