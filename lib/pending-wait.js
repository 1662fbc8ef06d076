const { thread } = require('./thread.js');
const { unlisten } = require('./signals.js');

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
  }

  /** Whether it waits for a lock. */
  get isForLock() {
    return false;
  }

  stopListening() {
    if (this.signal !== undefined) unlisten(this.signal, this);
  }

  /** Called when the signal aborts; too late if the wait is over. */
  abort(reason) {
    if (!thread.cancel(this)) return;
    this.reject(reason);
    this.stopListening();
  }
}

exports.PendingWait = PendingWait;
