// The messages on diagnostics channels: who waited, who holds for long, who ended inside, who was in a deadlock.
//
// Loaded by the first wait. Whoever waits, or finds something, publishes it on its own thread, and a promise in the asynchronous
// context of the code that waits for it, not of the code that unlocks. Without subscribers a wait costs one look at a flag more; no clock
// is read.

const { channel } = require('node:diagnostics_channel');
const { threadId } = require('node:worker_threads');
const clock = require('../load/clock.js');
const { binding, thread } = require('./thread.js');
const { typeOf } = require('./names.js');

const { CycleLength, HasAway, HasEnded, Holder, OwnerThread, WaitedMs } = binding.Field;

const contended = channel('sablock:contended');
const longHold = channel('sablock:long-hold');
const abandoned = channel('sablock:abandoned');
const deadlock = channel('sablock:deadlock');
const lost = channel('sablock:lost');

/** The time for which a hold is watched before it is published; then again each time that this has doubled. */
const LONG_MS = 100;
/** A message names so many holders. */
const MOST_HOLDERS = 5;
/** The time between two looks of a thread at the holds that its promises wait for. A blocked thread looks as often. */
const LOOK_MS = 25;

/** The kind of a wait for which its thread is blocked. */
const BLOCKING = 'blocking';

const OUTCOMES = new Map([
  [binding.GRANTED, 'acquired'],
  [binding.GRANTED_ABANDONED, 'acquired'],
  [binding.TIMED_OUT, 'timed-out'],
  ['aborted', 'aborted'],
]);

/**
 * Runs code that only tells, and must not keep a caller from learning what it has locked, nor a blocked thread from sleeping
 * on, be it for want of stack. (A subscriber's own error is made an uncaught one by its channel.)
 */
function quietly(tell) {
  try {
    return tell();
  } catch {
    return null;
  }
}

/**
 * As `quietly`, before the caller has read all that its call of the binding found: subscribers may make calls of their own, which
 * find something else.
 */
function quietlyMeanwhile(tell) {
  const { record } = thread;
  const found = record.slice();
  const kinds = found[CycleLength] > 0 ? exports.cycleKinds() : null;
  thread.cycleKinds = null;
  const report = binding.setReport(0);
  quietly(tell);
  binding.setReport(report);
  // Not of a call, but of the thread.
  found[HasAway] = record[HasAway];
  record.set(found);
  thread.cycleKinds = kinds;
}

/** The kinds of the places in the cycle of the deadlock that was found last. */
exports.cycleKinds = () => thread.cycleKinds ?? binding.cycleKinds();

/** The scope of a wait that blocks: the call itself. */
class CallScope {
  runInAsyncScope(tell) {
    tell();
  }
}

/** The holds that this thread waits for: one object for a thread, however often the package is loaded there. */
class Holds {
  /** By word, or by what several words of one name have in common. */
  #watched = new Map();
  #timer = null;
  /** The hold that was watched last. */
  #last = null;

  /** `scope` has `runInAsyncScope(tell)`, which tells in the context of who waits; `kind` is that of the wait. */
  watch(word, lock, hold, scope, kind, isOfSet = false) {
    const { key = word } = word;
    let watched = this.#watched.get(key);
    if (watched === undefined) {
      watched = {
        lock,
        word,
        isOfSet,
        scopes: new Map(),
        serial: -1,
        threadId: null,
        since: 0,
        seenAt: 0,
        next: LONG_MS,
      };
      this.#watched.set(key, watched);
    }
    watched.scopes.set(scope, kind);
    this.#see(watched, hold);
    this.#timer ??= clock.setInterval(() => this.#lookFromLoop(), LOOK_MS).unref();
  }

  unwatch(word, scope) {
    const { key = word } = word;
    const watched = this.#watched.get(key);
    this.#last = { word, threadId: watched.threadId, ms: watched.seenAt - watched.since };
    watched.scopes.delete(scope);
    if (watched.scopes.size > 0) return;
    this.#watched.delete(key);
    if (this.#watched.size > 0) return;
    clock.clearInterval(this.#timer);
    this.#timer = null;
  }

  /** For how long the thread was seen to hold the word, at the end of the wait that was over last; 0 if it was not. */
  seenMs(word, threadId) {
    const last = this.#last;
    return last?.word === word && last.threadId === threadId ? last.ms : 0;
  }

  /** No call blocks then: those that are watched still were cut off, as `vm` does it with a time limit, which runs no `finally`. */
  #lookFromLoop() {
    for (const { word, scopes } of this.#watched.values()) {
      for (const [scope, kind] of scopes) if (kind === BLOCKING) this.unwatch(word, scope);
    }
    this.look();
  }

  /** Called by the timer, and by a blocked thread between two slices of its sleep. */
  look() {
    quietly(() => {
      for (const watched of this.#watched.values()) this.#see(watched, holdOf(watched.word));
    });
  }

  #see(watched, hold) {
    const now = clock.now();
    if (hold?.serial !== watched.serial) {
      watched.serial = hold?.serial;
      watched.threadId = hold?.threadId ?? null;
      watched.since = now;
      watched.next = LONG_MS;
    }
    watched.seenAt = now;
    const heldAtLeastMs = now - watched.since;
    if (hold === null || heldAtLeastMs < watched.next) return;
    // Held for the others of the set that this thread waits for.
    if (watched.isOfSet && hold.threadId === threadId) return;
    // First this: a subscriber that waits for a lock itself comes here again.
    while (watched.next <= heldAtLeastMs) watched.next *= 2;
    const message = { ...placeOf(watched.lock, watched.word), ...ownerOf(hold), heldAtLeastMs };
    const [scope] = watched.scopes.keys();
    scope.runInAsyncScope(() => longHold.publish(message));
  }
}

/** The begin of each message. `mutex` is of the time before there were other locks. */
function placeOf(lock, word) {
  const { name, byteOffset = -1 } = lock;
  return { lock, lockKind: typeOf(word), mutex: word.type === undefined ? lock : null, name, byteOffset };
}

function holdsOfThread() {
  thread.holds ??= new Holds();
  return thread.holds;
}

/** The exclusive holder of the word; null without one. A name says it itself: see ../named/watch.js. */
function holdOf(word) {
  if (word.hold !== undefined) return word.hold();
  const serial = binding.hold(word);
  return serial < 0 ? null : { serial, threadId: thread.record[Holder] };
}

/** The words of a message for a hold; one in another process is called so. */
function ownerOf(hold) {
  const ownerThreadId = hold?.threadId ?? null;
  return hold?.pid === undefined ? { ownerThreadId } : { ownerThreadId, ownerPid: hold.pid };
}

/** The holder of the lock when the last wait for one began, for a message. */
function waitedFor() {
  const owner = thread.record[OwnerThread];
  return { ownerThreadId: owner < 0 ? null : owner };
}

function tellContended(lock, word, kind, owner, waitedMs, status) {
  const outcome = OUTCOMES.get(status);
  if (outcome === undefined) return;
  contended.publish({ ...placeOf(lock, word), kind, ...owner, waitedMs, outcome });
}

/** A pending promise that is published; or a call that blocks, for a name. */
class Watch {
  #wait;
  #kind;
  #since = clock.now();
  #owner;
  #holds = null;

  constructor(wait, kind) {
    this.#wait = wait;
    this.#kind = kind;
    const { lock, word } = wait;
    const hold = word.hold === undefined && !longHold.hasSubscribers ? null : holdOf(word);
    this.#owner = word.hold === undefined ? waitedFor() : ownerOf(hold);
    if (!longHold.hasSubscribers) return;
    const holds = holdsOfThread();
    holds.watch(word, lock, hold, wait, kind);
    this.#holds = holds;
  }

  /** With the status, or with `'aborted'`. */
  end(status) {
    quietlyMeanwhile(() => {
      const { lock, word } = this.#wait;
      this.#holds?.unwatch(word, this.#wait);
      const waitedMs = clock.now() - this.#since;
      this.#wait.runInAsyncScope(() => tellContended(lock, word, this.#kind, this.#owner, waitedMs, status));
    });
  }
}

/** For the notes of the lock doctor; the second for those between a call of the binding and its caller. */
exports.quietly = quietly;
exports.quietlyMeanwhile = quietlyMeanwhile;

/** Whether anybody wants to know of waits. */
exports.isWatched = () => contended.hasSubscribers || longHold.hasSubscribers;

/** A promise for the lock is pending from now on, or a call for a name. Returns what has `end(status)`, or `null`. */
exports.beginWait = (wait, kind = 'async') => quietly(() => new Watch(wait, kind));

/** Runs a call of the binding that may block for the lock. Returns its status. */
exports.whileBlocked = (lock, word, call) => {
  const holds = longHold.hasSubscribers ? holdsOfThread() : null;
  const scope = new CallScope();
  holds?.watch(word, lock, null, scope, BLOCKING);
  const status = call();
  quietlyMeanwhile(() => {
    holds?.unwatch(word, scope);
    const waitedMs = thread.record[WaitedMs];
    if (waitedMs >= 0) tellContended(lock, word, BLOCKING, waitedFor(), waitedMs, status);
  });
  return status;
};

/** As `whileBlocked`, for several locks, of which it may block for one after the other. */
exports.whileBlockedForAll = (locks, words, call) => {
  const holds = longHold.hasSubscribers ? holdsOfThread() : null;
  const scope = new CallScope();
  // By their locks: one that is named twice is watched once.
  const watched = new Map(holds === null ? [] : words.map((word, index) => [word, locks[index]]));
  for (const [word, lock] of watched) holds.watch(word, lock, null, scope, BLOCKING, true);
  const status = call();
  quietlyMeanwhile(() => {
    for (const word of watched.keys()) holds.unwatch(word, scope);
    // All end as the call: a lock that it got on the way has gone back if it did not get the others.
    for (const { index, ownerThreadId, waitedMs } of binding.foundAll().waits) {
      tellContended(locks[index], words[index], BLOCKING, { ownerThreadId }, waitedMs, status);
    }
  });
  return status;
};

exports.tellAbandoned = (lock, word, ownerThreadId, mode = 'exclusive') => {
  quietly(() => abandoned.publish({ ...placeOf(lock, word), ownerThreadId, mode }));
};

/** A lock of a name was lost while it was held. */
exports.tellLost = (lock, word, { fence, reason, heldMs }) => {
  quietly(() => lost.publish({ ...placeOf(lock, word), fence, reason, heldMs }));
};

/** Since when this thread knows each buffer: memory that is freed and used again comes in a new one. */
const knownBuffers = new WeakMap();

/** Since when this thread knows the buffer, which it does from now on. */
exports.knownSince = (buffer) => {
  let since = knownBuffers.get(buffer);
  if (since === undefined) {
    since = binding.moment();
    knownBuffers.set(buffer, since);
  }
  return since;
};

/** The holds of ended threads, as their registers said, have gone back. Each is published once in the process. */
exports.tellEnded = (lock, word, ask) => {
  thread.record[HasEnded] = 0;
  quietlyMeanwhile(() => {
    for (const { threadId: ended, mode } of binding.takeEnded(word, ask, exports.knownSince(word.buffer)) ?? []) {
      exports.tellAbandoned(lock, word, ended, mode);
    }
  });
};

/** `details` are those of a deadlock of tasks. */
exports.tellDeadlock = (lock, word, cycle, details) => {
  quietly(() => deadlock.publish({ ...placeOf(lock, word), cycle, ...details }));
};

/** For a message: who holds the word now, and for how long if that was seen. */
exports.describeHolder = (word) => {
  if (word.ask !== undefined) return describeHolders(word);
  binding.hold(word);
  const holder = thread.record[Holder];
  const { verb = 'hold' } = word;
  if (holder < 0) return `No thread ${verb}s it now.`;
  const who = `${holder === threadId ? 'This thread' : `Thread ${holder}${hasEnded(word) ? ', which has ended,' : ''}`} ${verb}s it now`;
  const ms = thread.holds?.seenMs(word, holder) ?? 0;
  return ms > 0 ? `${who}, and was seen to ${verb} it for ${Math.floor(ms)} ms on end.` : `${who}.`;
};

/** As `describeHolder`, for what several may hold. */
function describeHolders(words) {
  const holders = binding.holders(words, words.ask);
  // In a thread that is ending no objects can be made.
  if (holders === undefined) return 'Who holds it now is not known, because this thread is ending.';
  if (holders.length === 0) return 'No thread holds it now.';
  const { mode } = holders[0];
  const ended = mode === 'exclusive' && hasEnded(words) ? ', which has ended' : '';
  return `It is held now, ${mode}, by ${listed(holders.map(nameHolder))}${ended}.`;
}

/**
 * Whether the thread that holds this alone has ended, and nobody has come for it since. If it was marked before, that is not known.
 * The words of all locks have owner and mark in the same bits.
 */
const hasEnded = (word) =>
  binding.hold(word) < 0 &&
  (Atomics.load(word, 0) & binding.ABANDONED) === 0 &&
  binding.inspect(word, thread.plain.ask)?.abandoned === true;

const nameHolder = (holder) => (holder.threadId === threadId ? 'this thread' : `thread ${holder.threadId}`);

const listed = (names) =>
  `${names.slice(0, MOST_HOLDERS).join(', ')}${names.length > MOST_HOLDERS ? ` and ${names.length - MOST_HOLDERS} more` : ''}`;

/** Which threads have permits of a semaphore, in guards; perhaps nobody is known to. */
exports.describePermits = (words, ask) => {
  const holders = binding.holders(words, ask) ?? [];
  if (holders.length === 0) return '';
  return ` Permits are held by ${listed(holders.map((holder) => `${nameHolder(holder)} (${holder.count})`))}.`;
};
