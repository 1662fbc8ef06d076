const { AsyncResource } = require('node:async_hooks');
const { lazily } = require('../load/lazily.js');
const { thread } = require('./thread.js');

const signals = lazily(() => require('./signals.js'));
const settled = Promise.resolve();

/** The error of a promise whose function the stack ended before: it was rejected by that, and nothing was thrown. */
function unresolvable(promise) {
  promise.catch(() => {});
  return new RangeError('Maximum call stack size exceeded');
}

/**
 * A promise, pending once the thread has taken it in. A subclass has `settle(code)`, for the binding's codes.
 *
 * It is an async resource: it knows the asynchronous context of the code that waits, and tools that list what keeps a process
 * alive (async_hooks, `jest --detectOpenHandles`) show a wait that leaks with the place where it began.
 */
class PendingWait extends AsyncResource {
  /** The number under which the thread keeps it. */
  token = -1;

  constructor(signal, ref) {
    super('SablockWait');
    if (signal !== undefined) this.signal = signal;
    if (!ref) this.ref = false;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    if (this.reject === undefined) throw unresolvable(this.promise);
  }

  /** Whether it waits for a lock. */
  get isForLock() {
    return false;
  }

  /** Whether it keeps the event loop alive; the name is that of Node's handles, by which tools ask. */
  hasRef() {
    return this.ref && thread.has(this);
  }

  /** Before the wait is queued, since it may throw. */
  startListening() {
    if (this.signal !== undefined) signals().listen(this.signal, this);
  }

  /** Once the wait is over, last: nothing that fails here keeps the promise from being settled. */
  stopListening() {
    if (this.signal !== undefined) signals().unlisten(this.signal, this);
    this.emitDestroy();
  }

  /**
   * Rejects with what `make` throws. V8 appends to an error's stack the async functions that await the promise of the
   * running reaction: so the error is made in a reaction that settles this promise, and nothing is captured before.
   */
  fail(make) {
    settled.then(make).then(this.resolve, this.reject);
  }

  /** Called when the signal aborts. False: too late, the wait is over. */
  abort(reason) {
    if (!thread.cancel(this)) return false;
    this.reject(reason);
    this.stopListening();
    return true;
  }
}

// Fields that few waits have otherwise: a program may have a million waits, and each field of each is memory that is collected.
PendingWait.prototype.signal = undefined;
PendingWait.prototype.ref = true;

exports.PendingWait = PendingWait;
exports.unresolvable = unresolvable;
