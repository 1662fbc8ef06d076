// Several locks at once: all of them or none. The core takes them in the order of their addresses, which is the same for
// everybody, so that two of these never wait for each other; see `src/clients/lock_all.rs`.

const { lazily } = require('../load/lazily.js');
const { binding, isGranted, isMainThread, thread } = require('../engine/thread.js');
const { report } = require('../engine/abandonment.js');
const { PendingWait } = require('../engine/pending-wait.js');
const { describeHolder, isWatched, tellEnded, whileBlockedForAll } = require('../engine/diagnosis.js');
const { conclude, takeOver } = require('../engine/wait.js');
const { isIterable, reasonOf, toAsyncOptions, toTimeout } = require('../arguments.js');
const { TimeoutError, invalidArgument, mainThread, notLock, threadEnding } = require('../errors.js');
const { innerOf } = require('./exclusive.js');

const rwlocks = lazily(() => require('./rwlock.js'));

const { EndedThread, HasEnded, Locks, StoppedAt } = binding.Field;
const { GRANTED, GRANTED_ABANDONED, INTERRUPTED, PENDING, TIMED_OUT } = binding;

const ADVICE = 'This call holds none of the locks. Wait longer, or hold them for a shorter time elsewhere.';
const secret = Symbol('LockAllGuard');

/** The inside of a lock: `{ owner, word, mayBlock, request }`, with a request of wait.js for a guard; undefined if it is none. */
function toInner(lock) {
  if (typeof lock !== 'object' || lock === null) return undefined;
  const inner = innerOf(lock);
  if (inner === undefined) return rwlocks().innerOfRead(lock);
  return { owner: inner.lock, word: inner.word, mayBlock: inner.mayBlock, request: inner.guarded };
}

/** The locks that somebody wants together. */
class LockList {
  static {
    thread.addClass('LockList', LockList, (list) => list.words);
  }

  /** As they were named: `read` and `write` of an RwLock are two. */
  locks = [];
  /** The objects that they are of: the mutex itself, or the RwLock. */
  owners = [];
  words = [];
  requests = [];
  /** The ask for each; with `words`, the list as the binding has it. */
  asks = [];
  /** The first lock that must not block this thread. */
  forbidden = -1;
  /** Whether one of them has to be looked at, once it is held, for what a thread that ended inside has left. */
  #isRepaired = false;
  /** The binding's: the ended holders that are still to be reported; undefined until it was asked for them. */
  reports;
  /** The places of these by that of their lock in the list; undefined if there are none. */
  #reportAt;
  /** The lock that was awaited last, or could not be had; -1 if none was. */
  stoppedAt = -1;
  /** The locks that are held, by their places in the list, if not all: one that was named several times is held once. */
  #held;

  constructor(lockables) {
    if (!isIterable(lockables)) throw invalidArgument('lockables', 'an array of locks', lockables);
    for (const lock of lockables) {
      const inner = toInner(lock);
      if (inner === undefined) {
        throw notLock(`lockables[${this.locks.length}]`, 'a Mutex, or read or write of an RwLock', lock);
      }
      if (isMainThread && !inner.mayBlock && this.forbidden < 0) this.forbidden = this.locks.length;
      const { owner, word, request } = inner;
      if (word.onAbandoned !== undefined) this.#isRepaired = true;
      this.locks.push(lock);
      this.owners.push(owner);
      this.words.push(word);
      this.requests.push(request);
      this.asks.push(request.ask);
    }
  }

  /** The binding's call has returned: what it has found, before subscribers and functions that repair make other calls. */
  note(status) {
    this.stoppedAt = thread.record[StoppedAt];
    if (!isGranted(status)) return;
    const isDistinct = thread.record[Locks] === this.words.length;
    if (status === GRANTED && isDistinct) {
      this.reports = [];
      return;
    }
    const { indices, reports } = binding.foundAll();
    if (!isDistinct) this.#held = indices;
    this.#reportAt = new Map(reports.map(({ index }, at) => [index, at]));
    this.reports = reports;
  }

  /** All are held. Returns their guard; if it throws, the caller has to give them back. */
  take(status) {
    const held = this.#held;
    const locks = held === undefined ? this.locks : held.map((index) => this.locks[index]);
    if (this.#isRepaired || status === GRANTED_ABANDONED) {
      for (let at = 0; at < locks.length; at++) this.#takeOver(held?.[at] ?? at);
    }
    const guards = [];
    for (let at = 0; at < locks.length; at++) {
      const index = held?.[at] ?? at;
      guards.push(this.requests[index].take(this.owners[index], this.words[index], GRANTED));
    }
    return new LockAllGuard(secret, locks, guards);
  }

  /** Throws why the lock that is awaited could not be had. */
  fail(status, timeout, verb) {
    const index = this.stoppedAt;
    if (status === INTERRUPTED) throw threadEnding('several locks');
    const word = this.words[index];
    if (status === TIMED_OUT) throw new TimeoutError(word, timeout, verb, describeHolder(word), ADVICE);
    return conclude(status, this.owners[index], word, this.requests[index], timeout, verb);
  }

  /** Publishes whose holds of these locks went back because their threads ended. */
  tellEnded() {
    if (thread.record[HasEnded] === 0) return;
    for (let at = 0; at < this.words.length; at++) tellEnded(this.owners[at], this.words[at], this.asks[at]);
  }

  /** As for a single lock: what is to be done if it is marked. */
  #takeOver(index) {
    const request = this.requests[index];
    const owner = this.owners[index];
    const word = this.words[index];
    const at = this.#reportAt?.get(index);
    if (at === undefined && (word.onAbandoned === undefined || !request.isExclusive)) return;
    binding.setReport(at === undefined ? 0 : this.reports[at].ended);
    try {
      if (request.isExclusive) takeOver(at === undefined ? GRANTED : GRANTED_ABANDONED, owner, word, request);
      else report(owner, word, true);
    } finally {
      // Then the end is reported, though what came after may have failed. The last one takes its place, so that none moves up.
      if (at !== undefined && thread.record[EndedThread] < 0) {
        const last = this.reports.pop();
        if (at < this.reports.length) {
          this.reports[at] = last;
          this.#reportAt.set(last.index, at);
        }
      }
    }
  }
}

/** Blocks until all are held. */
function lockBlocking(list, timeout, verb) {
  const { owners, words, asks } = list;
  let status = TIMED_OUT;
  const lock = () => {
    // In a thread that is ending, where Node.js lets the binding read no arrays, there is no status.
    status = binding.lockAll(words, asks, timeout) ?? INTERRUPTED;
    list.note(status);
    return status;
  };
  try {
    if (isWatched()) whileBlockedForAll(owners, words, lock);
    else lock();
    list.tellEnded();
    if (isGranted(status)) return list.take(status);
  } catch (error) {
    // At the end of the stack no function of JS may be able to begin; those of the binding always are.
    if (status === GRANTED || status === GRANTED_ABANDONED) binding.giveBackAll(words, asks, list.reports);
    throw error;
  }
  return list.fail(status, timeout, verb);
}

/** A promise for several locks. It waits for one after the other; what it has already is the core's to give back. */
class SetWait extends PendingWait {
  #list;
  #timeout;
  #verb;
  /** The abort that came while it waited for none of its locks. */
  #aborted = null;

  constructor(list, { timeout, signal, ref }, verb) {
    super(signal, ref);
    this.#list = list;
    this.#timeout = timeout;
    this.#verb = verb;
  }

  get isForLock() {
    return true;
  }

  get lock() {
    return this.#list.owners[this.#list.stoppedAt];
  }

  get word() {
    return this.#list.words[this.#list.stoppedAt];
  }

  /** Asks for the locks, or goes on with them: `call` is the binding's. */
  advance(call) {
    const list = this.#list;
    // As in wait.js: JS may be interrupted where a function written in JS begins, not between this and the queue.
    thread.pending += 1;
    let status;
    try {
      // As in `lockBlocking`.
      status = call(list.words, list.asks, this.#timeout, this.signal !== undefined) ?? INTERRUPTED;
    } catch (error) {
      thread.pending -= 1;
      throw error;
    }
    if (status === PENDING) {
      list.stoppedAt = thread.record[StoppedAt];
      // First this, as in wait.js.
      thread.add(this);
      try {
        if (isWatched()) this.beginWatch();
      } catch {
        // For want of stack.
      }
      return;
    }
    thread.pending -= 1;
    const isHeld = isGranted(status);
    const aborted = this.#aborted;
    try {
      list.note(status);
      if (isHeld && aborted !== null) throw aborted.reason;
      list.tellEnded();
      const guard = isHeld ? list.take(status) : null;
      // First whatever may throw, then the promise.
      this.stopListening();
      if (isHeld) this.resolve(guard);
      else this.#fail(status);
    } catch (error) {
      // Also if `take` could not begin.
      if (isHeld) binding.giveBackAll(list.words, list.asks, list.reports);
      this.reject(error);
      this.stopListening();
    }
  }

  /** One of its locks was granted, or all are given back. */
  settle(status) {
    this.watch?.end(status);
    this.watch = null;
    if (!isGranted(status)) {
      // In the context of whoever waits.
      if (thread.record[HasEnded] !== 0) this.runInAsyncScope(this.#list.tellEnded, this.#list);
      this.#fail(status);
      this.stopListening();
      return;
    }
    try {
      // Users' code belongs to the context of whoever waits.
      this.runInAsyncScope(this.advance, this, binding.goOn);
    } catch (error) {
      this.reject(error);
      this.stopListening();
      return;
    }
    if (this.#aborted !== null) this.abort(this.#aborted.reason);
  }

  abort(reason) {
    const isAborted = super.abort(reason);
    // Between two of its locks: as soon as it waits for the next one.
    if (!isAborted) this.#aborted = { reason };
    return isAborted;
  }

  #fail(status) {
    this.fail(() => this.#list.fail(status, this.#timeout, this.#verb));
  }
}

/** A hold of several locks. */
class LockAllGuard {
  #locks;
  /** One for each lock. */
  #guards;

  constructor(key, locks, guards) {
    if (key !== secret)
      throw new TypeError('Illegal constructor. These guards come from lockAll() and lockAllAsync().');
    this.#locks = locks;
    this.#guards = guards;
  }

  get locked() {
    return this.#guards.some((guard) => guard.locked);
  }

  get abandoned() {
    return this.#locks.filter((_, index) => this.#guards[index].abandoned);
  }

  unlock() {
    let isFreed = false;
    let error;
    let hasFailed = false;
    const guards = this.#guards;
    // As names are: by no iterator.
    for (let index = 0; index < guards.length; index++) {
      // One that cannot be freed now (its hold is away) is no reason to keep the others.
      try {
        isFreed = guards[index].unlock() || isFreed;
      } catch (thrown) {
        if (!hasFailed) error = thrown;
        hasFailed = true;
      }
    }
    if (hasFailed) throw error;
    return isFreed;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) {
    if (!(#guards in this)) return this;
    if (depth < 0) return options.stylize('[LockAllGuard]', 'special');
    const { locked } = this;
    return `LockAllGuard ${inspect({ locked, locks: this.#locks }, { ...options, depth })}`;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.unlock();
  }
}

/** Blocks this thread until all locks are held; returns their guard. */
exports.lockAll = (lockables, options) => {
  const list = new LockList(lockables);
  const timeout = toTimeout(undefined, options);
  const { forbidden } = list;
  if (forbidden >= 0) {
    throw mainThread(list.words[forbidden], 'lockAllAsync()', list.owners[forbidden].constructor.name);
  }
  return lockBlocking(list, timeout, 'lockAll');
};

/** A promise of a guard of all locks. */
exports.lockAllAsync = (lockables, options) => {
  try {
    const list = new LockList(lockables);
    const asyncOptions = toAsyncOptions(undefined, options);
    if (asyncOptions.signal?.aborted) return Promise.reject(reasonOf(asyncOptions.signal));
    const wait = new SetWait(list, asyncOptions, 'lockAllAsync');
    // First whatever may throw, then the queues.
    wait.startListening();
    wait.advance(binding.lockAllAsync);
    return wait.promise;
  } catch (error) {
    return Promise.reject(error);
  }
};

exports.LockAllGuard = LockAllGuard;
