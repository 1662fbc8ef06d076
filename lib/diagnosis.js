// What is told on diagnostics channels: who waited, who holds for long, who ended inside, who was in a deadlock.
//
// Loaded by the first wait. Whoever waits, or finds something, tells it on its own thread. Without subscribers a wait costs
// one look at a flag more; no clock is read.

const { channel } = require('node:diagnostics_channel');
const { binding, thread } = require('./thread.js');

const contended = channel('sablock:contended');
const longHold = channel('sablock:long-hold');
const abandoned = channel('sablock:abandoned');
const deadlock = channel('sablock:deadlock');

/** How long a hold is watched before it is told of; then again each time that this has doubled. */
const LONG_MS = 100;
/** How often a thread looks at the holds that its promises wait for. A blocked thread looks as often. */
const LOOK_MS = 25;

const OUTCOMES = new Map([
  [binding.ACQUIRED, 'acquired'],
  [binding.ACQUIRED_ABANDONED, 'acquired'],
  [binding.NOT_ACQUIRED, 'timed-out'],
  ['aborted', 'aborted'],
]);

/**
 * What is about telling, and must not keep a caller from learning what it has locked, nor a blocked thread from sleeping
 * on, be it for want of stack. (A subscriber's own error is made an uncaught one by its channel.)
 */
function quietly(tell) {
  try {
    return tell();
  } catch {
    return null;
  }
}

/** The holds that this thread waits for: one object for a thread, however often the package is loaded there. */
class Holds {
  #watched = new Map();
  #timer = null;

  watch(word, mutex, hold) {
    let watched = this.#watched.get(word);
    if (watched === undefined) {
      watched = { mutex, waits: 0, serial: -1, since: 0, next: LONG_MS };
      this.#watched.set(word, watched);
    }
    watched.waits += 1;
    this.#see(watched, hold);
    this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  unwatch(word) {
    const watched = this.#watched.get(word);
    watched.waits -= 1;
    if (watched.waits > 0) return;
    this.#watched.delete(word);
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Called by the timer, and by a blocked thread between two slices of its sleep. */
  look() {
    quietly(() => {
      for (const [word, watched] of this.#watched) this.#see(watched, binding.hold(word));
    });
  }

  #see(watched, hold) {
    const now = performance.now();
    if (hold?.serial !== watched.serial) {
      watched.serial = hold?.serial;
      watched.since = now;
      watched.next = LONG_MS;
    }
    const heldAtLeastMs = now - watched.since;
    if (hold === null || heldAtLeastMs < watched.next) return;
    // First this: a subscriber that waits for a lock itself comes here again.
    while (watched.next <= heldAtLeastMs) watched.next *= 2;
    const { mutex } = watched;
    longHold.publish({ mutex, byteOffset: mutex.byteOffset, ownerThreadId: hold.threadId, heldAtLeastMs });
  }
}

function holdsOfThread() {
  thread.holds ??= new Holds();
  return thread.holds;
}

function tellContended(mutex, kind, ownerThreadId, waitedMs, code) {
  const outcome = OUTCOMES.get(code);
  if (outcome === undefined) return;
  contended.publish({ mutex, byteOffset: mutex.byteOffset, kind, ownerThreadId, waitedMs, outcome });
}

/** A pending promise that is told about. */
class AsyncWatch {
  #mutex;
  #word;
  #since = performance.now();
  #ownerThreadId;
  #holds = null;

  constructor(mutex, word) {
    this.#mutex = mutex;
    this.#word = word;
    this.#ownerThreadId = binding.waitedFor();
    if (!longHold.hasSubscribers) return;
    const holds = holdsOfThread();
    holds.watch(word, mutex, binding.hold(word));
    this.#holds = holds;
  }

  /** With the binding's code, or with `'aborted'`. */
  end(code) {
    quietly(() => {
      this.#holds?.unwatch(this.#word);
      tellContended(this.#mutex, 'async', this.#ownerThreadId, performance.now() - this.#since, code);
    });
  }
}

/** Whether anybody wants to hear of waits. */
exports.isWatched = () => contended.hasSubscribers || longHold.hasSubscribers;

/** A promise for the mutex is pending from now on. Answers what has `end(code)`, or `null`. */
exports.beginWait = (mutex, word) => quietly(() => new AsyncWatch(mutex, word));

/** Runs a call of the binding that may block for the mutex. Answers what it answers, whose remainder by CODES is a code. */
exports.whileBlocked = (mutex, word, call) => {
  const holds = longHold.hasSubscribers ? holdsOfThread() : null;
  holds?.watch(word, mutex, null);
  const answer = call();
  quietly(() => {
    holds?.unwatch(word);
    const waitedMs = binding.waited();
    if (waitedMs >= 0) tellContended(mutex, 'blocking', binding.waitedFor(), waitedMs, answer % binding.CODES);
  });
  return answer;
};

exports.tellAbandoned = (mutex, byteOffset, ownerThreadId) => {
  quietly(() => abandoned.publish({ mutex, byteOffset, ownerThreadId }));
};

exports.tellDeadlock = (mutex, byteOffset, cycle) => {
  quietly(() => deadlock.publish({ mutex, byteOffset, cycle }));
};
