// Which holds' functions await which waits, and the likely deadlocks that come of it: the tasks of this thread.

const { binding } = require('../engine/thread.js');
const { tellDeadlock } = require('../engine/diagnosis.js');
const { setStack } = require('../error-stack.js');
const { DeadlockError } = require('../errors.js');
const clock = require('../load/clock.js');
const { askWhoAwaits, knowsChains } = require('./inside.js');

/** A promise that is returned in then() is awaited so many microtasks later. */
const TURNS = 4;
/** It takes long to ask who awaits a wait. So soon after their begin so many are asked about between two ticks of the clock; later
 * each at intervals that grow with their number, in milliseconds for each. */
const MOST_ASKED = 8;
const ASKED_EVERY = 1;

/** The error of a wait, whose stack is the place that waits: no code of the program runs now. */
function errorOf({ wait }, { waits }) {
  const cycle = waits.map(({ waiter, lock }) => ({ threadId: waiter.threadId, byteOffset: lock.byteOffset }));
  const error = new DeadlockError(wait.word, cycle);
  const { stack } = waits[0].waiter;
  return setStack(error, [`${error.name}: ${error.message}`, ...stack.map((frame) => `    at ${frame}`)].join('\n'));
}

/** Publishes a deadlock; returns its error. */
function tell(seen, deadlock) {
  const error = errorOf(seen, deadlock);
  const { certainty, waits } = deadlock;
  const { lock, word } = seen.wait;
  tellDeadlock(lock ?? word, word, error.cycle, { certainty, waits });
  return error;
}

class SeenWait {
  isOver = false;
  /** Whether it was asked who awaits it. */
  isAsked = false;
  /** The package's own wait, of a promise. */
  wait = null;
  /** Called once it is granted; set by the verb that waits. */
  granted = null;
  /** Called with the holds whose functions await it. */
  awaited = null;
  /** The hold that is suspended meanwhile. */
  suspended = null;
  word = null;
  /** The orders that it may be in, of one for several locks: it may wait again. */
  sighting = null;

  constructor(info, number, site, since, isEndless) {
    this.info = info;
    this.number = number;
    this.site = site;
    this.since = since;
    /** When that was asked by the clock. */
    this.askedAt = since;
    this.isEndless = isEndless;
  }
}

class Tasks {
  #pending;
  #holds;
  #options;
  #timer = null;
  /** The number of those that were asked about since then. */
  #askedAt = -1;
  #asked = 0;

  /** `pending` are the waits of promises, by their tokens. */
  constructor(pending, holds, options) {
    this.#pending = pending;
    this.#holds = holds;
    this.#options = options;
  }

  stop() {
    clock.clearInterval(this.#timer);
  }

  /** A wait has begun. */
  added(seen) {
    if (seen.isEndless && this.#holds.marked > 0) this.#askSoon(seen);
    this.#watch();
  }

  #mayAsk(seen) {
    // A verb that wants to know of it cannot learn that later.
    if (seen.awaited !== null) return true;
    const tick = this.#holds.now;
    if (tick !== this.#askedAt) [this.#askedAt, this.#asked] = [tick, 0];
    this.#asked += 1;
    return this.#asked <= MOST_ASKED;
  }

  async #askSoon(seen) {
    for (let turn = 0; turn < TURNS; turn++) await undefined;
    if (!seen.isOver && this.#mayAsk(seen)) this.#ask(seen);
  }

  /** Notes who awaits a wait; if it is old, what comes of that. */
  #ask(seen) {
    if (seen.isOver || seen.wait === null || !knowsChains) return;
    seen.isAsked = true;
    askWhoAwaits(seen.wait.promise, (serials) => {
      if (seen.isOver) return;
      seen.awaited?.(serials);
      if (!this.#options.deadlocks) return;
      const found = binding.doctorNote(seen.number, { awaiting: [...this.#holds.withAround(serials)] });
      if (found === null) return;
      const deadlock = JSON.parse(found);
      const error = deadlock.isTold ? null : tell(seen, deadlock);
      if (this.#options.throwOnDeadlock === 'likely' && deadlock.isNewest) {
        seen.wait.abort(error ?? errorOf(seen, deadlock));
      }
    });
  }

  /** Looks at old waits, as long as there are any. */
  #watch() {
    const { deadlocks, likelyMs } = this.#options;
    if (!deadlocks || likelyMs === Infinity || this.#timer !== null) return;
    this.#timer = clock.setInterval(() => this.#look(), Math.min(Math.max(likelyMs / 16, 1), 50)).unref();
  }

  #look() {
    if (this.#pending.size === 0) {
      clock.clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    const time = clock.now();
    for (const seen of this.#pending.values()) {
      if (!seen.isEndless || this.#holds.marked === 0) continue;
      if (time - seen.askedAt < ASKED_EVERY * this.#pending.size) continue;
      if (seen.isAsked && time - seen.since < this.#options.likelyMs) continue;
      seen.askedAt = time;
      this.#ask(seen);
    }
  }
}

exports.SeenWait = SeenWait;
exports.Tasks = Tasks;
