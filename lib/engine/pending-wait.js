const { AsyncResource } = require('node:async_hooks');
const clock = require('../load/clock.js');
const { lazily } = require('../load/lazily.js');
const { thread } = require('./thread.js');

const diagnosis = lazily(() => require('./diagnosis.js'));
const signals = lazily(() => require('./signals.js'));
const settled = Promise.resolve();

/** The error of a promise whose function the stack ended before: it was rejected by that, and nothing was thrown. */
function unresolvable(promise) {
  promise.catch(() => {});
  return new RangeError('Maximum call stack size exceeded');
}

/** A promise of what `act` returns then. To await asks for no `then` that users may have patched; to return a promise would. */
async function after(promise, act, fail) {
  try {
    await promise;
  } catch (error) {
    if (fail === undefined) throw error;
    return fail(error);
  }
  return await act();
}

/** As `fail`, whose promise was not made, or not listened to. */
async function failWithoutThen(wait, made, make) {
  try {
    wait.resolve(made === undefined ? make() : await made);
  } catch (error) {
    wait.reject(error);
  }
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

  /** Publishes it from now on. A subscriber may abort it meanwhile. */
  beginWatch() {
    this.watch = diagnosis().beginWait(this);
    if (!thread.has(this)) this.watch?.end('aborted');
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

  /** The same in a turn of its own; see `unlistenSafely`. */
  stopListeningSafely() {
    try {
      this.stopListening();
    } catch (error) {
      clock.throwLater(error);
    }
  }

  /**
   * Rejects with what `make` throws. V8 appends to an error's stack the async functions that await the promise of the
   * running reaction: so the error is made in a reaction that settles this promise, and nothing is captured before.
   */
  fail(make) {
    let made;
    try {
      made = settled.then(make);
      made.then(this.resolve, this.reject);
    } catch (error) {
      // A patched `then` threw: an uncaught error of its own, unless it was for want of stack.
      if (!(error instanceof RangeError)) clock.throwLater(error);
      failWithoutThen(this, made, make);
    }
  }

  /** Called when the signal aborts. False: too late, the wait is over. */
  abort(reason) {
    if (!thread.cancel(this)) return false;
    this.reject(reason);
    this.stopListeningSafely();
    this.watch?.end('aborted');
    return true;
  }
}

// Fields that few waits have otherwise: a program may have a million waits, and each field of each is memory that is collected.
PendingWait.prototype.signal = undefined;
PendingWait.prototype.ref = true;
/** Publishes its end, if anybody has subscribed; see diagnosis.js. */
PendingWait.prototype.watch = null;

exports.PendingWait = PendingWait;
exports.after = after;
exports.unresolvable = unresolvable;
