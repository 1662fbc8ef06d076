// Requests that a promise stands for.

const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { PendingWait, unresolvable } = require('../engine/pending-wait.js');
const { reasonOf } = require('../arguments.js');
const { abortOf, listen, unlisten } = require('../engine/signals.js');
const { describe, noBackgroundThread, threadEnding } = require('../errors.js');
const { confirmHeld, timeOut } = require('./holders.js');
const { lostBecause, placeOf, stolen } = require('./errors.js');
const { goesBack, isStolen, lossOf, newLock, noteEnd, setFence, setGranted, whenStolen } = require('./held-lock.js');
const { enter: enterOutside } = require('./outside.js');
const { giveBackAll } = require('./take-over.js');
const { startWatch } = require('./watch.js');

const { GRANTED, GRANTED_ABANDONED, NO_CLOCK, PENDING, TIMED_OUT } = binding;
const { Number: NUMBER } = binding.Field;
const { record } = thread;

// A request is `{ backend, lock, options, use, verb, deadline, watch }`: a lock that nothing is granted to yet; `use(lock)`, which
// makes of it what the promise is fulfilled with; the verb, for messages; the deadline of the outer lock, in the time of
// `performance`; once it waits, what publishes that, if anybody has subscribed.

/** Always settled, to make microtasks with, which keep the asynchronous context. */
const settled = Promise.resolve();

/** A request that waits, or can be aborted; its promise is of what `use(lock)` makes of the lock. */
class NamedWait extends PendingWait {
  /** By which the binding knows the request. */
  #number = -1;
  /** Whether its code has begun, or will not. */
  #isOver = false;

  constructor(request) {
    super(request.options.signal, request.options.ref);
    this.request = request;
    this.closing = request.backend.closing?.signal;
  }

  stopListening() {
    try {
      super.stopListening();
    } finally {
      if (this.closing !== undefined) unlisten(this.closing, this);
    }
  }

  startListening() {
    if (this.closing !== undefined) listen(this.closing, this);
    try {
      super.startListening();
    } catch (error) {
      if (this.closing !== undefined) unlisten(this.closing, this);
      throw error;
    }
  }

  get isForLock() {
    return true;
  }

  /** It has no place in a buffer. */
  get word() {
    return placeOf(this.request.lock.name);
  }

  get watch() {
    return this.request.watch;
  }

  enqueue() {
    const { backend, lock, options } = this.request;
    const isBeside = options.beside?.size > 0 && options.timeout < Infinity;
    const beside = isBeside ? goesBack([...options.beside.values()]) : undefined;
    // First whatever may throw, then the queue.
    this.startListening();
    thread.pending += 1;
    let status;
    try {
      status = binding.requestName(
        backend.space,
        lock.name,
        options.mode,
        options.timeout,
        isPart(backend, options),
        options.signal !== undefined,
        beside,
      );
    } finally {
      if (status !== PENDING) thread.pending -= 1;
    }
    this.#number = record[NUMBER];
    if (status === PENDING) {
      thread.add(this);
      try {
        startWatch(this.request, 'async');
        // A subscriber may have aborted it meanwhile.
        if (!thread.has(this)) this.watch?.end('aborted');
      } catch {
        // For want of stack: as in ../engine/wait.js.
      }
    } else if (status === NO_CLOCK || status === undefined) {
      this.stopListening();
      const what = describe(placeOf(lock.name));
      // In a thread that is ending no objects can be read: those of several names.
      throw status === NO_CLOCK ? noBackgroundThread(what) : threadEnding(what);
    } else {
      try {
        // In a later turn: until the end of this one the signal can abort.
        this.#settle(status, clock.setImmediate);
      } catch (error) {
        // For want of stack, or its signal threw: its code will not learn of it, and no signal may give it back once more.
        this.#isOver = true;
        if (status !== TIMED_OUT) binding.giveBackHeld(this.#number);
        // It may be rejected, too.
        this.promise.catch(() => {});
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
    const { backend, lock, options, verb } = this.request;
    if (status === TIMED_OUT) {
      this.fail(() => timeOut(backend, lock.name, options, verb));
      this.watch?.end(status);
      this.stopListening();
      return;
    }
    enterProcess(backend, lock, options, this.#number, status);
    // The callback runs in the asynchronous context of the request.
    later(() => this.runInAsyncScope(this.#begin, this));
  }

  #begin() {
    if (this.#isOver) return;
    this.#isOver = true;
    // Before its code runs: an abort from there comes too late.
    this.stopListeningSafely();
    try {
      this.resolve(begin(this.request));
    } catch (error) {
      this.reject(error);
    }
  }

  abort(reason) {
    if (super.abort(reason)) return true;
    // Not queued yet: its signal has aborted while it was listened to, and is looked at again.
    if (this.#isOver || this.#number < 0) return false;
    // It is granted, and its code has not begun.
    this.#isOver = true;
    giveBackAll([this.request.lock]);
    this.watch?.end('aborted');
    this.reject(reason);
    this.stopListening();
    return true;
  }
}

/** Awaits, which asks for no `then` that users may have patched. */
const inMicrotask = async (act) => {
  await settled;
  act();
};

/**
 * The process has granted the lock to the request of this number, with this status, just now. It has to report that a thread ended
 * inside. Of what is locked outside the mark there tells: the thread may have waited outside only, or somebody in another process has
 * repaired what it left.
 */
function enterProcess({ outer }, lock, { fence }, number, status) {
  setGranted(lock, number);
  if (fence && outer === null) setFence(lock, BigInt(binding.nextFence()));
  if (status !== GRANTED_ABANDONED) return;
  const end = binding.setReport(0);
  if (outer === null) noteEnd(lock, end);
}

/** The process has granted the lock: what `use` makes of it. */
function begin(request) {
  if (request.backend.outer !== null) return enterOutside(request);
  request.watch?.end(GRANTED);
  return request.use(request.lock);
}

/**
 * Whether the request needs more than the name of this process: those that are asked for together with it, or that of a store, until
 * which nobody knows that this process has it.
 */
const isPart = ({ outer }, options) => options.isPart === true || outer?.isAsync === true;

exports.isPart = isPart;

/**
 * A promise of what `use(lock)` makes of the lock of this name, once it is granted; of `use(null)`, if it had to be available and
 * is not. `use` is called in a microtask, or later.
 */
exports.obtain = (backend, name, options, use, verb) => {
  const { mode, signal, timeout } = options;
  if (signal?.aborted) return Promise.reject(reasonOf(signal));
  const lock = newLock(name, mode);
  const status = options.steal
    ? steal(backend.space, name)
    : binding.requestName(backend.space, name, mode, 0, isPart(backend, options), false);
  if (status === TIMED_OUT) {
    if (options.ifAvailable) return confirmHeld(backend, name).then(() => use(null));
    if (timeout <= 0) {
      try {
        return timeOut(backend, name, options, verb);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    return new NamedWait(toRequest(backend, lock, options, use, verb)).enqueue();
  }
  const number = record[NUMBER];
  try {
    enterProcess(backend, lock, options, number, status);
    if (backend.outer === null && signal === undefined) return settled.then(() => use(lock));
    const request = toRequest(backend, lock, options, use, verb);
    // Locks of the names before go back with the wait that begins here: no turn comes in between.
    if (options.beside?.size > 0) return new Promise((resolve) => resolve(begin(request)));
    return signal === undefined ? settled.then(() => begin(request)) : beginUnlessAborted(request);
  } catch (error) {
    // As in `NamedWait`.
    binding.giveBackHeld(number);
    throw error;
  }
};

/**
 * A promise of what `begin(request)` returns in a later turn: until the end of this one the signal can abort, to which nobody has to
 * listen for that.
 */
function beginUnlessAborted(request) {
  const { lock, options } = request;
  let settle;
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  if (settle === undefined) throw unresolvable(promise);
  clock.setImmediate(() => {
    try {
      const abort = abortOf(options.signal);
      if (abort === null) {
        settle.resolve(begin(request));
        return;
      }
      giveBackAll([lock]);
      settle.reject(abort.reason);
    } catch (error) {
      settle.reject(error);
    }
  });
  return promise;
}

/** Takes the name from all who hold it. Those of this thread learn of it soon, whatever keeps its event loop alive. */
function steal(space, name) {
  settled.then(() => thread.drain());
  return binding.stealName(space, name);
}

/** A clock is read only where time is spent outside of the engine. */
function toRequest(backend, lock, options, use, verb) {
  const { timeout } = options;
  const isTimed = backend.outer !== null && timeout !== Infinity;
  const deadline = isTimed ? clock.now() + timeout : Infinity;
  return { backend, lock, options, use, verb, deadline, watch: undefined };
}

/**
 * Runs the callback of a request with its lock, or with an array of them; returns its result, or a promise of it. Released they are
 * then.
 */
exports.runWith = (held, callback) => {
  let result;
  let running;
  try {
    // A copy: the callback may change its array.
    result = callback(Array.isArray(held) ? [...held] : held);
    const isObject = result !== null && (typeof result === 'object' || typeof result === 'function');
    // A promise of its own for no promise of the callback: of names that are held there may be many.
    running = isObject ? Promise.resolve(result) : null;
  } catch (error) {
    release(held, { error });
    throw error;
  }
  if (running === null) {
    release(held);
    return result;
  }
  return new Promise((resolve, reject) => {
    // The callback goes on, but its request has failed.
    if (Array.isArray(held)) {
      held.forEach((lock) => {
        whenStolen(lock, reject);
      });
    } else whenStolen(held, reject);
    releaseAfter(running, held, resolve, reject);
  });
};

/** Awaits the callback's promise, as mutexes do: that calls no `then` which the promise was given as its own. */
async function releaseAfter(running, held, resolve, reject) {
  try {
    const value = await running;
    if (releases(held, reject)) resolve(value);
  } catch (error) {
    if (releases(held, reject, { error })) reject(error);
  }
}

/** Like `release`, but what it would throw is what the request fails with; returns whether it would throw nothing. */
function releases(held, reject, failure) {
  try {
    release(held, failure);
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

/** The callback has ended, perhaps with a `failure`; it may have unlocked by itself. Throws if a lock was stolen, or lost. */
function release(held, failure) {
  if (Array.isArray(held)) {
    releaseAll(held, failure);
    return;
  }
  held.unlock();
  if (isStolen(held)) throw stolen(held.name);
  const loss = lossOf(held);
  if (loss !== null) throw lostBecause(loss, failure);
}

/** All are released in any case: it asks for no iterator, which users may have patched. */
function releaseAll(locks, failure) {
  let refusal;
  for (let index = locks.length - 1; index >= 0; index--) {
    try {
      release(locks[index], failure);
    } catch (error) {
      refusal ??= { error };
    }
  }
  if (refusal !== undefined) throw refusal.error;
}

exports.enterProcess = enterProcess;
exports.release = release;
exports.steal = steal;
