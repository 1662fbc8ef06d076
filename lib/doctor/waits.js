// Waits: where they began, how long they took, and which of them can never end.

const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { tellDeadlock } = require('../engine/diagnosis.js');
const { DeadlockError } = require('../errors.js');
const { askWhoAwaits, knowsChains } = require('./chain.js');

/** When a wait that was not awaited at first is looked at again, in milliseconds after its begin. */
const LATER = [20, 100, 500, 2000];

class SeenWait {
  isOver = false;
  /** Takes in the hold once it is granted; set by the method that waits for one. */
  granted = null;
  /** The opposite. */
  refused = null;
  /** What is locked while others are held, to be confirmed. */
  sighting = null;

  constructor(lock, word, info, number, site, since) {
    this.lock = lock;
    this.word = word;
    this.info = info;
    this.number = number;
    this.site = site;
    this.since = since;
    /** The package's own wait, for a promise. */
    this.wait = null;
  }
}

class Waits {
  #locks;
  #sites;
  #holds;
  #options;
  /** New promises, which are looked at in the next turn of the loop. */
  #young = [];
  #immediate = null;
  /** The wait that began last. */
  last = null;

  /** `holds` may be null. */
  constructor(locks, sites, holds, options) {
    this.#locks = locks;
    this.#sites = sites;
    this.#holds = holds;
    this.#options = options;
  }

  stop() {
    clearImmediate(this.#immediate);
    this.#young = [];
  }

  #begin(lock, word, isBlocking, isEndless, isExclusive) {
    return this.#beginFor(this.#locks.ofWord(word), lock, word, isBlocking, isEndless, isExclusive);
  }

  #beginFor(info, lock, word, isBlocking, isEndless, isExclusive) {
    const since = performance.now();
    const site = this.#sites.capture();
    const number = binding.doctorWait({
      threadId,
      lock: info.id,
      address: info.address,
      site,
      isEndless,
      isBlocking,
      isExclusive,
      context: this.#holds === null || isBlocking ? [] : this.#holds.context(),
    });
    this.last = new SeenWait(lock, word, info, number, site, since);
    return this.last;
  }

  /** This thread is about to block. Throws if that would be for ever, and it is to throw. */
  beginBlocking(lock, word, request, timeout) {
    if (request === undefined) return null;
    const seen = this.#begin(lock, word, true, timeout === Infinity, request.isShared !== true);
    if (!this.#options.deadlocks || timeout !== Infinity) return seen;
    const found = binding.doctorConfirm(seen.number, []);
    if (found === null) return seen;
    const error = this.#tell(seen, JSON.parse(found));
    if (!this.#options.throwOnDeadlock) return seen;
    this.end(seen, -1, false);
    throw error;
  }

  beginAsync(wait) {
    const { lock, word, request, timeout, signal } = wait;
    const isEndless = (timeout === undefined || timeout === Infinity) && signal === undefined;
    const seen = this.#begin(lock, word, false, isEndless, request?.isShared !== true);
    seen.wait = wait;
    if (isEndless) this.#watch(seen);
    return seen;
  }

  #watch(seen) {
    if (this.#holds === null || !this.#options.deadlocks) return;
    this.#young.push(seen);
    // Not unreferenced: the loop would not turn for it.
    this.#immediate ??= setImmediate(() => this.#lookAtYoung());
    this.#suspectLater(seen);
  }

  /** `waitedMs` is below 0 if it did not come to waiting. */
  end(seen, waitedMs, isGranted) {
    seen.isOver = true;
    // By this thread's own clock: also what it did before it queued.
    const isCounted = waitedMs >= 0 && (this.#options.contention || this.#options.trace);
    binding.doctorWaitOver(seen.number, isCounted ? performance.now() - seen.since : -1, isGranted);
    if (isGranted) seen.granted?.();
    else seen.refused?.();
  }

  /** A request for a name may block this thread. */
  beginBlockingFor(info, isEndless, isExclusive) {
    const seen = this.#beginFor(info, null, null, true, isEndless, isExclusive);
    const found = this.#options.deadlocks && isEndless ? binding.doctorConfirm(seen.number, []) : null;
    if (found !== null) this.#tellNamed(info, JSON.parse(found));
    return seen;
  }

  /** A request for a name waits, until `end`. `promise` is what its caller may await. */
  beginAsyncFor(info, isExclusive, promise) {
    const seen = this.#beginFor(info, null, null, false, true, isExclusive);
    seen.wait = { promise, abort() {} };
    this.#watch(seen);
    return seen;
  }

  /** A wait of which nothing was told before. */
  waited(word, waitedMs, isGranted) {
    if (!this.#options.contention && !this.#options.trace) return;
    const { id, address } = this.#locks.ofWord(word);
    const site = this.#sites.capture();
    const wait = {
      threadId,
      lock: id,
      address,
      site,
      isEndless: false,
      isBlocking: true,
      isExclusive: true,
      context: [],
    };
    binding.doctorWaited(wait, waitedMs, isGranted);
  }

  /** Blocks for several: until it is over, for each of them. */
  beginAll(locks, words, timeout) {
    return words.map((word, index) => this.#begin(locks[index], word, true, timeout === Infinity, true));
  }

  endAll(seen) {
    for (const wait of seen) this.end(wait, -1, false);
  }

  #lookAtYoung() {
    const young = this.#young;
    this.#young = [];
    this.#immediate = null;
    for (const seen of young) this.#look(seen, 0);
  }

  /** Asks who awaits the wait, and again later if that is nobody who holds anything. */
  #look(seen, times) {
    if (seen.isOver || !knowsChains) return;
    askWhoAwaits(seen.wait.promise, (awaiting) => {
      if (seen.isOver) return;
      seen.sighting?.confirm(awaiting);
      const found = binding.doctorConfirm(seen.number, awaiting.holds);
      if (found !== null) this.#reject(seen, this.#tell(seen, JSON.parse(found)));
      else if (times < LATER.length) setTimeout(() => this.#look(seen, times + 1), LATER[times]).unref();
    });
  }

  #suspectLater(seen) {
    const { stuckMs } = this.#options;
    if (stuckMs === Infinity) return;
    const timer = setTimeout(() => {
      if (seen.isOver) return;
      const found = binding.doctorSuspect(seen.number);
      if (found !== null) this.#tell(seen, JSON.parse(found));
    }, stuckMs);
    timer.unref();
    // Most waits are over long before.
    seen.granted = () => clearTimeout(timer);
    seen.refused = seen.granted;
  }

  #reject(seen, error) {
    if (this.#options.throwOnDeadlock) seen.wait.abort(error);
  }

  #tellNamed(info, { certainty, waits }) {
    const place = { name: info.name, kind: 'lock', type: 'HeldLock', byteOffset: null };
    tellDeadlock({ name: info.name, byteOffset: null }, place, cycleOf(waits), { certainty, waits });
    return new DeadlockError(place, cycleOf(waits));
  }

  /** Publishes a deadlock; returns its error. */
  #tell(seen, { certainty, waits }) {
    const { lock, word } = seen;
    if (word === null) return this.#tellNamed(seen.info, { certainty, waits });
    const cycle = cycleOf(waits);
    tellDeadlock(lock, word, cycle, { certainty, waits });
    return new DeadlockError(word, cycle);
  }
}

const cycleOf = (waits) =>
  waits.map(({ waiter, lock }) => ({ threadId: waiter.threadId, byteOffset: lock.byteOffset }));

function chain(first, second) {
  return first === null
    ? second
    : () => {
        first();
        second();
      };
}

exports.Waits = Waits;
exports.chain = chain;
