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
  constructor(mutex, word, guarded, { timeout, signal, ref }) {
    super(signal, ref);
    this.mutex = mutex;
    this.word = word;
    this.guarded = guarded;
    this.timeout = timeout;
  }

  get isForLock() {
    return true;
  }

  /** Ends it with the binding's code. */
  settle(code) {
    try {
      this.resolve(conclude(code, this.mutex, this.word, this.guarded, this.timeout));
    } catch (error) {
      this.reject(error);
    }
    this.stopListening();
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

/** From the binding's code to what the user gets: a boolean, or a guard. Throws what is an error. */
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

/** Locks the word, or queues for it. Answers a promise of what `conclude` makes of it; may throw. */
exports.lockWord = (mutex, word, guarded, options) => {
  const { timeout, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const isTold = isWatched();
  const wait = new (isTold ? WatchedLockWait : LockWait)(mutex, word, guarded, options);
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
    wait.settle(-1 - answer);
  } else {
    if (isTold) wait.begin();
    thread.add(answer, wait);
  }
  return wait.promise;
};

/** Locks the word, blocking this thread. Answers a boolean or a guard; throws what is an error. */
exports.lockBlocking = (mutex, word, guarded, timeout) => {
  const lock = () => binding.lock(word, timeout, guarded);
  return conclude(isWatched() ? whileBlocked(mutex, word, lock) : lock(), mutex, word, guarded, timeout);
};

exports.conclude = conclude;
