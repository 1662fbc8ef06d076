// The doctor of one thread: what the engine and the swapped methods call while it is on.

const { threadId } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { DeadlockError } = require('../errors.js');
const chain = require('./chain.js');
const { Holds, newSlots } = require('./holds.js');
const { Locks } = require('./locks.js');
const { LockOrder } = require('./order.js');
const { Sites } = require('./sites.js');
const { Swaps } = require('./swap.js');
const { Tracking } = require('./tracking.js');
const { Waits } = require('./waits.js');

/** What the doctor is about to note must not change what the package does. */
function quietly(note, otherwise = null) {
  try {
    return note();
  } catch (error) {
    // The one that it was told to throw.
    if (error instanceof DeadlockError) throw error;
    return otherwise;
  }
}

class ThreadDoctor {
  #locks = new Locks();
  #sites = new Sites();
  #waits;
  #holds = null;
  #tracking = null;
  #swaps = null;
  #areUnlocksNoted;
  #noteEnd = () => binding.doctorEnding(threadId);

  constructor(options) {
    const { contention, lockOrder, deadlocks, leaks, longHoldMs, trace } = options;
    this.#areUnlocksNoted = contention || trace;
    // Only these need to know who holds what.
    if (lockOrder || deadlocks || leaks) this.#holds = new Holds(longHoldMs);
    this.#waits = new Waits(this.#locks, this.#sites, this.#holds, options);
    if (this.#holds === null) return;
    this.#tracking = new Tracking({
      locks: this.#locks,
      sites: this.#sites,
      holds: this.#holds,
      order: lockOrder ? new LockOrder(this.#holds, this.#sites, this.#locks.kept) : null,
      waits: this.#waits,
      leaks: leaks ? new FinalizationRegistry((hold) => this.#noteLeak(hold)) : null,
    });
    this.#swaps = new Swaps(this.#tracking);
  }

  start({ longHoldMs, stuckMs, trace }) {
    const slots = this.#holds?.slots ?? newSlots();
    const settings = { longHoldMs, stuckMs, trace, folder: process.cwd() };
    binding.doctorStart(threadId, slots, performance.now(), settings);
    this.#swaps?.start();
    if (this.#holds !== null) chain.hideResolvers();
    process.on('exit', this.#noteEnd);
    thread.doctor = this;
  }

  stop() {
    thread.doctor = null;
    process.off('exit', this.#noteEnd);
    if (this.#holds !== null) chain.showResolvers();
    this.#swaps?.stop();
    this.#waits.stop();
    this.#holds?.stop();
    binding.doctorStop(threadId);
  }

  #noteUnlock(word) {
    const { id, address } = this.#locks.ofWord(word);
    binding.doctorUnlock(threadId, id, address, this.#sites.capture());
  }

  #noteLeak(hold) {
    if (hold.isActive) binding.doctorLeak(threadId, hold.info.id, hold.site);
  }

  // What the engine tells.

  /** A class of primitives has been loaded. */
  added(type, wordOf) {
    this.#swaps?.swap(type, wordOf);
  }

  /** A lock that may have waiters is about to be freed. */
  freeing(word) {
    if (this.#areUnlocksNoted) quietly(() => this.#noteUnlock(word));
  }

  beginBlocking(lock, word, request, timeout) {
    return quietly(() => this.#waits.beginBlocking(lock, word, request, timeout));
  }

  beginAsync(wait) {
    return quietly(() => this.#waits.beginAsync(wait));
  }

  end(seen, waitedMs, isGranted) {
    quietly(() => this.#waits.end(seen, waitedMs, isGranted));
  }

  beginAll(locks, words, timeout) {
    return quietly(() => this.#waits.beginAll(locks, words, timeout));
  }

  endAll(seen) {
    quietly(() => this.#waits.endAll(seen));
  }

  waited(_, word, waitedMs, isGranted) {
    quietly(() => this.#waits.waited(word, waitedMs, isGranted));
  }

  wantsAll(list, isEndless, isAsync) {
    quietly(() => this.#tracking?.wantsAll(list, isEndless, isAsync));
  }

  tookAll(locks, words, guards) {
    quietly(() => this.#tracking?.tookAll(locks, words, guards));
  }
}

exports.ThreadDoctor = ThreadDoctor;
