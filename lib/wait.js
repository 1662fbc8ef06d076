const { binding, thread } = require('./thread.js');
const { beginWait, isWatched, tellAbandoned, tellDeadlock, whileBlocked } = require('./diagnosis.js');
const {
  DeadlockError,
  TimeoutError,
  corrupt,
  noBackgroundThread,
  threadEnding,
  warnAbandoned,
} = require('./errors.js');
const { createGuard } = require('./guard.js');
const { PendingWait } = require('./pending-wait.js');

/** A promise for a mutex, pending once the thread has taken it in. */
class LockWait extends PendingWait {
  constructor(mutex, word, guarded, { timeout, signal, ref }, lender) {
    super(signal, ref);
    this.mutex = mutex;
    this.word = word;
    this.guarded = guarded;
    this.timeout = timeout;
    /** The wait for a condition that brings a hold back; undefined if this is a new one. */
    this.lender = lender;
  }

  get isForLock() {
    return true;
  }

  /** Ends it with the binding's code. */
  settle(code) {
    try {
      this.resolve(this.conclude(code));
    } catch (error) {
      this.reject(error);
    }
    this.stopListening();
  }

  /** As the function, for this wait. When it throws, nothing is held. */
  conclude(code) {
    const isHeld = code === binding.ACQUIRED || code === binding.ACQUIRED_ABANDONED;
    try {
      if (isHeld) this.lender?.checkHolder();
      const value = conclude(code, this.mutex, this.word, this.guarded, this.timeout);
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
    this.#watch = beginWait(this.mutex, this.word);
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
 * says that the word is held, for want of stack for one, the caller gives the word back.
 */
function conclude(code, mutex, word, guarded, timeout) {
  const { byteOffset } = word;
  switch (code) {
    case binding.ACQUIRED:
      return guarded ? createGuard(mutex, word) : true;
    case binding.ACQUIRED_ABANDONED:
      reportAbandoned(mutex, byteOffset);
      return guarded ? createGuard(mutex, word) : true;
    case binding.CORRUPT:
      throw corrupt(byteOffset, Atomics.load(word, 0));
    case binding.NO_CLOCK:
      throw noBackgroundThread(`the mutex at byte offset ${byteOffset}`);
    case binding.INTERRUPTED:
      throw threadEnding(`the mutex at byte offset ${byteOffset}`);
    case binding.DEADLOCK:
      throw foundDeadlock(mutex, byteOffset);
    default: // NOT_ACQUIRED
      if (guarded) throw new TimeoutError(byteOffset, timeout);
      return false;
  }
}

function reportAbandoned(mutex, byteOffset) {
  const threadId = binding.abandonedBy();
  warnAbandoned(byteOffset, threadId);
  tellAbandoned(mutex, byteOffset, threadId);
}

function foundDeadlock(mutex, byteOffset) {
  const error = new DeadlockError(readCycle());
  tellDeadlock(mutex, byteOffset, error.cycle);
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
exports.lockWord = (mutex, word, guarded, options, lender) => {
  const { timeout, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const isTold = isWatched();
  const wait = new (isTold ? WatchedLockWait : LockWait)(mutex, word, guarded, options, lender);
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
    if (code === binding.ACQUIRED && signal === undefined && lender === undefined) {
      wait.resolve(locked);
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
exports.lockBlocking = (mutex, word, guarded, timeout) => {
  let code = binding.NOT_ACQUIRED;
  const lock = () => {
    code = binding.lock(word, timeout, guarded);
    return code;
  };
  try {
    if (isWatched()) whileBlocked(mutex, word, lock);
    else lock();
    if (code === binding.ACQUIRED && !guarded) return true;
    return conclude(code, mutex, word, guarded, timeout);
  } catch (error) {
    if (code === binding.ACQUIRED || code === binding.ACQUIRED_ABANDONED) binding.giveBack(word, guarded);
    throw error;
  }
};

exports.conclude = conclude;
