const { binding, thread } = require('./thread.js');
const { TimeoutError, corrupt, noBackgroundThread, warnAbandoned } = require('./errors.js');
const { createGuard } = require('./guard.js');
const { listen, unlisten } = require('./signals.js');

/** A pending promise for a mutex. */
class Wait {
  /** Where the thread keeps it. */
  token = 0;

  constructor(mutex, word, guarded, { timeout, signal, ref }, resolve, reject) {
    this.mutex = mutex;
    // The view keeps the buffer alive, whose memory the queue points to.
    this.word = word;
    this.guarded = guarded;
    this.timeout = timeout;
    this.signal = signal;
    this.ref = ref;
    this.resolve = resolve;
    this.reject = reject;
    if (signal !== undefined) listen(signal, this);
  }

  settle(code) {
    if (this.signal !== undefined) unlisten(this.signal, this);
    try {
      this.resolve(conclude(code, this.mutex, this.word, this.guarded, this.timeout));
    } catch (error) {
      this.reject(error);
    }
  }

  abort(reason) {
    if (!thread.cancel(this)) return;
    unlisten(this.signal, this);
    this.reject(reason);
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
      throw noBackgroundThread(byteOffset);
    default:
      if (guarded) throw new TimeoutError(byteOffset, timeout);
      return false;
  }
}

/** Locks the word, or queues for it. Answers a promise of what `conclude` makes of it; may throw. */
exports.lockWord = (mutex, word, guarded, options) => {
  const { timeout, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const answer = binding.lockAsync(word, timeout, guarded);
  if (answer < 0) return Promise.resolve(conclude(-1 - answer, mutex, word, guarded, timeout));
  return new Promise((resolve, reject) => {
    thread.add(answer, new Wait(mutex, word, guarded, options, resolve, reject));
  });
};

exports.conclude = conclude;
