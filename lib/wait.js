const { binding, thread } = require('./thread.js');
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

/** From the binding's code to what the user gets: a boolean, or a guard. Throws what is an error. */
function conclude(code, mutex, word, guarded, timeout) {
  const { byteOffset } = word;
  switch (code) {
    case binding.ACQUIRED:
      return guarded ? createGuard(mutex, word) : true;
    case binding.ACQUIRED_ABANDONED:
      warnAbandoned(byteOffset, binding.abandonedBy());
      return guarded ? createGuard(mutex, word) : true;
    case binding.CORRUPT:
      throw corrupt(byteOffset, Atomics.load(word, 0));
    case binding.NO_CLOCK:
      throw noBackgroundThread(`the mutex at byte offset ${byteOffset}`);
    case binding.INTERRUPTED:
      throw threadEnding(`the mutex at byte offset ${byteOffset}`);
    case binding.DEADLOCK:
      throw new DeadlockError(readCycle());
    default: // NOT_ACQUIRED
      if (guarded) throw new TimeoutError(byteOffset, timeout);
      return false;
  }
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
  const wait = new LockWait(mutex, word, guarded, options);
  // First whatever may throw, then the queue.
  wait.startListening();
  const answer = binding.lockAsync(word, timeout, guarded);
  if (answer < 0) wait.settle(-1 - answer);
  else thread.add(answer, wait);
  return wait.promise;
};

exports.conclude = conclude;
