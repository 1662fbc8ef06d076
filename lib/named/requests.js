// Requests that a promise stands for.

const { binding, thread } = require('../engine/thread.js');
const { report } = require('../engine/abandonment.js');
const { PendingWait } = require('../engine/pending-wait.js');
const { TimeoutError, describe, noBackgroundThread } = require('../errors.js');
const { lazily } = require('../load/lazily.js');
const { placeOf, stolen } = require('./errors.js');
const { giveBack, isStolen, newLock, setGranted, whenStolen } = require('./held-lock.js');

const outside = lazily(() => require('./outside.js'));

const { GRANTED_ABANDONED, NO_CLOCK, PENDING, TIMED_OUT } = binding;
const { Number: NUMBER } = binding.Field;
const { record } = thread;

// A request is `{ backend, lock, options, use, verb, deadline }`: a lock that nothing is granted to yet; `use(lock)`, which makes
// of it what the promise is fulfilled with; the verb, for messages; the deadline of the outer lock, in the time of `performance`.

/** Always settled, to make microtasks with, which keep the asynchronous context. */
const settled = Promise.resolve();

function timedOut(name, timeout, verb) {
  const advice = 'Wait longer, or ask with { ifAvailable: true }, which does not wait.';
  return new TimeoutError(placeOf(name), timeout, verb, 'Others hold it, or came before.', advice);
}

/** A request that waits, or can be aborted; its promise is of what `use(lock)` makes of the lock. */
class NamedWait extends PendingWait {
  /** By which the binding knows the request. */
  #number = -1;
  #isAborted = false;

  constructor(request) {
    super(request.options.signal, request.options.ref);
    this.request = request;
  }

  get isForLock() {
    return true;
  }

  /** It has no place in a buffer. */
  get word() {
    return placeOf(this.request.lock.name);
  }

  enqueue() {
    const { backend, lock, options } = this.request;
    // First whatever may throw, then the queue.
    this.startListening();
    thread.pending += 1;
    let status = NO_CLOCK;
    try {
      status = binding.requestName(backend.space, lock.name, options.mode, options.timeout);
    } finally {
      if (status !== PENDING) thread.pending -= 1;
    }
    this.#number = record[NUMBER];
    if (status === PENDING) {
      thread.add(this);
    } else if (status === NO_CLOCK) {
      this.stopListening();
      throw noBackgroundThread(describe(placeOf(lock.name)));
    } else {
      try {
        // In a later turn: until the end of this one the signal can abort.
        this.#settle(status, setImmediate);
      } catch (error) {
        // For want of stack: its code will not learn of it, and no signal may give it back once more.
        this.#isAborted = true;
        if (status !== TIMED_OUT) binding.giveBackName(this.#number);
        throw error;
      }
    }
    return this.promise;
  }

  /** Ends it with its status, in a drain. */
  settle(status) {
    // The callback never runs inside a drain.
    this.#settle(status, inMicrotask);
  }

  #settle(status, later) {
    const { lock, options, verb } = this.request;
    if (status === TIMED_OUT) {
      this.fail(() => {
        throw timedOut(lock.name, options.timeout, verb);
      });
      this.stopListening();
      return;
    }
    setGranted(lock, this.#number);
    if (this.#isAborted) {
      this.#giveBack();
      return;
    }
    if (status === GRANTED_ABANDONED) this.runInAsyncScope(reportEnd, null, this.request.backend, lock);
    // The callback belongs to the context of whoever asked.
    later(() => this.runInAsyncScope(this.#begin, this));
  }

  #begin() {
    if (this.#isAborted) return;
    this.stopListening();
    try {
      this.resolve(begin(this.request));
    } catch (error) {
      this.reject(error);
    }
  }

  abort(reason) {
    if (super.abort(reason)) return true;
    if (this.#isAborted) return false;
    // It is granted, and its code has not begun.
    this.#isAborted = true;
    this.reject(reason);
    this.stopListening();
    if (this.request.lock.locked) this.#giveBack();
    return true;
  }

  #giveBack() {
    thread.drainSoon();
    giveBack(this.request.lock);
  }
}

const inMicrotask = (act) => {
  settled.then(act);
};

/**
 * Says that a thread ended inside, when its lock was granted just now. Of what is locked outside the mark there tells: the thread
 * may have waited outside only, or somebody in another process has repaired what it left.
 */
function reportEnd({ outer }, lock) {
  if (outer !== null) binding.reported();
  else report(lock, placeOf(lock.name), lock.mode === 'shared');
}

/** The process has granted the lock: what `use` makes of it. */
const begin = (request) => (request.backend.outer === null ? request.use(request.lock) : outside().enter(request));

/**
 * A promise of what `use(lock)` makes of the lock of this name, once it is granted; of `use(null)`, if it had to be available and
 * is not. `use` is called in a microtask, or later.
 */
exports.obtain = (backend, name, options, use, verb) => {
  const { mode, signal, timeout } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const lock = newLock(name, mode);
  if (signal !== undefined) return new NamedWait(toRequest(backend, lock, options, use, verb)).enqueue();
  const status = options.steal ? steal(backend.space, name) : binding.requestName(backend.space, name, mode, 0);
  if (status === TIMED_OUT) {
    if (options.ifAvailable) return settled.then(() => use(null));
    if (timeout <= 0) return Promise.reject(timedOut(name, timeout, verb));
    return new NamedWait(toRequest(backend, lock, options, use, verb)).enqueue();
  }
  const number = record[NUMBER];
  try {
    setGranted(lock, number);
    if (status === GRANTED_ABANDONED) reportEnd(backend, lock);
    if (backend.outer === null) return settled.then(() => use(lock));
    const request = toRequest(backend, lock, options, use, verb);
    return settled.then(() => begin(request));
  } catch (error) {
    // As in `NamedWait`.
    binding.giveBackName(number);
    throw error;
  }
};

/** Takes the name from all who hold it. Those of this thread are told soon, whatever keeps its event loop alive. */
function steal(space, name) {
  settled.then(() => thread.drain());
  return binding.stealName(space, name);
}

/** A clock is read only where time is spent outside of the engine. */
function toRequest(backend, lock, options, use, verb) {
  const { timeout } = options;
  const isTimed = backend.outer !== null && timeout !== Infinity;
  return { backend, lock, options, use, verb, deadline: isTimed ? performance.now() + timeout : Infinity };
}

/** Runs the callback of a request with its lock; returns its result, or a promise of it. Released is the lock then. */
exports.runWith = (lock, callback) => {
  let result;
  try {
    result = callback(lock);
  } catch (error) {
    release(lock);
    throw error;
  }
  if (result === null || (typeof result !== 'object' && typeof result !== 'function')) {
    release(lock);
    return result;
  }
  return new Promise((resolve, reject) => {
    // The callback goes on, but its request has failed.
    whenStolen(lock, reject);
    const end = (settle) => (value) => {
      try {
        release(lock);
        settle(value);
      } catch (error) {
        reject(error);
      }
    };
    // In one look at its `then`.
    new Promise((settle) => settle(result)).then(end(resolve), end(reject));
  });
};

/** The callback has ended; it may have unlocked by itself. Throws if the lock was stolen. */
function release(lock) {
  lock.unlock();
  if (isStolen(lock)) throw stolen(lock.name);
}

exports.release = release;
exports.reportEnd = reportEnd;
exports.steal = steal;
exports.timedOut = timedOut;
