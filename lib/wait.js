const { binding, thread } = require('./thread.js');
const { repair, report } = require('./abandonment.js');
const { beginWait, describeHolder, isWatched, tellDeadlock, whileBlocked } = require('./diagnosis.js');
const { DeadlockError, TimeoutError, corrupt, describe, noBackgroundThread, threadEnding } = require('./errors.js');
const { createGuard } = require('./guard.js');
const { PendingWait } = require('./pending-wait.js');

/** A promise for a mutex, pending once the thread has taken it in. */
class LockWait extends PendingWait {
  constructor(mutex, word, guarded, { timeout, signal, ref }, verb) {
    super(signal, ref);
    this.mutex = mutex;
    this.word = word;
    this.guarded = guarded;
    this.timeout = timeout;
    this.verb = verb;
  }

  get isForLock() {
    return true;
  }

  /** Ends it with the binding's code, in a drain. */
  settle(code) {
    if (code === binding.ACQUIRED_ABANDONED || (code === binding.ACQUIRED && this.word.onAbandoned !== undefined)) {
      // Users' code, which belongs to the context of whoever waits.
      this.runInAsyncScope(this.conclude, this, code);
    } else if (code === binding.ACQUIRED || (code === binding.NOT_ACQUIRED && !this.guarded)) {
      this.conclude(code);
    } else {
      this.fail(() => this.#conclude(code));
    }
    this.stopListening();
  }

  /** The same, at once. */
  conclude(code) {
    try {
      this.resolve(this.#conclude(code));
    } catch (error) {
      this.reject(error);
    }
  }

  #conclude(code) {
    return conclude(code, this.mutex, this.word, this.guarded, this.timeout, this.verb);
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
 * From the binding's code to what the user gets: a boolean, or a guard. Throws what is an error; nothing is held then.
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

/** The word was acquired: what is to be done if it is marked. Throws what `onAbandoned` throws; nothing is held then. */
function takeOver(code, mutex, word, guarded) {
  if (word.onAbandoned === undefined) {
    if (code === binding.ACQUIRED) return;
    try {
      report(mutex, word);
    } catch {
      // For want of stack. The mutex is held, and the caller must learn of that.
    }
  } else if ((Atomics.load(word, 0) & binding.ABANDONED) !== 0) {
    try {
      repair(mutex, word);
    } catch (error) {
      // `prepareToTakeOver` has arranged for a drain.
      binding.unlock(word, guarded);
      throw error;
    }
  }
}

/** Before a lock is asked for that `takeOver` may have to give back. */
function prepareToTakeOver(word) {
  if (word.onAbandoned !== undefined) thread.drainSoon();
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

/** Locks the word, or queues for it. Answers a promise of what `conclude` makes of it; may throw. */
exports.lockWord = (mutex, word, guarded, options, verb) => {
  const { timeout, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const isTold = isWatched();
  const wait = new (isTold ? WatchedLockWait : LockWait)(mutex, word, guarded, options, verb);
  prepareToTakeOver(word);
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
    wait.conclude(-1 - answer);
    wait.stopListening();
  } else {
    if (isTold) wait.begin();
    thread.add(answer, wait);
  }
  return wait.promise;
};

/** Locks the word, blocking this thread. Answers a boolean or a guard; throws what is an error. */
exports.lockBlocking = (mutex, word, guarded, timeout, verb) => {
  prepareToTakeOver(word);
  const lock = () => binding.lock(word, timeout, guarded);
  return conclude(isWatched() ? whileBlocked(mutex, word, lock) : lock(), mutex, word, guarded, timeout, verb);
};

exports.conclude = conclude;
exports.prepareToTakeOver = prepareToTakeOver;
