const { lazily } = require('./lazily.js');
const { thread } = require('./thread.js');

const signals = lazily(() => require('./signals.js'));

/** A promise, pending once the thread has taken it in. Whoever extends it has `settle(code)`, for the binding's codes. */
class PendingWait {
  /** Where the thread keeps it. */
  token = -1;

  constructor(signal, ref) {
    this.signal = signal;
    this.ref = ref;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    if (this.reject === undefined) {
      // The stack ended before the function above, which rejected the promise, and nothing was thrown.
      this.promise.catch(() => {});
      throw new RangeError('Maximum call stack size exceeded');
    }
  }

  /** Whether it waits for a lock. */
  get isForLock() {
    return false;
  }

  /** Before the wait is queued, since it may throw. */
  startListening() {
    if (this.signal !== undefined) signals().listen(this.signal, this);
  }

  stopListening() {
    if (this.signal !== undefined) signals().unlisten(this.signal, this);
  }

  /** Called when the signal aborts. False: too late, the wait is over. */
  abort(reason) {
    if (!thread.cancel(this)) return false;
    this.reject(reason);
    this.stopListening();
    return true;
  }
}

exports.PendingWait = PendingWait;
