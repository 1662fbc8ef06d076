// Waits: where they began, how long they took, and which of them seem never to end. All that blocks this thread, or makes a promise
// wait, is a call of the binding: so they are seen there.

const { threadId } = require('node:worker_threads');
const { binding, thread } = require('../engine/thread.js');
const { tellDeadlock } = require('../engine/diagnosis.js');
const { DeadlockError } = require('../errors.js');
const { askWhoAwaits, knowsChains } = require('./inside.js');
const { quietly } = require('./swap.js');

const { Ask, GRANTED, GRANTED_ABANDONED, PENDING } = binding;
const { Number: NUMBER, StoppedAt, Token, WaitedMs } = binding.Field;

/** A request that blocked for less did not wait, where the core does not tell. */
const AT_ONCE_MS = 0.05;
/** A promise that is returned in then() is awaited so many microtasks later. */
const TURNS = 4;
/** It takes long to ask who awaits a wait. So soon after their begin so many are asked about between two ticks of the clock; later
 * each at intervals that grow with their number, in milliseconds for each. */
const MOST_ASKED = 8;
const ASKED_EVERY = 1;
/** Requests of readers. */
const SHARED = new Set([Ask.Read, Ask.ReadGuarded]);
const SHARED_NAME = binding.NameMode.Shared;

const isGranted = (status) => status === GRANTED || status === GRANTED_ABANDONED;

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
  /** What is not held meanwhile. */
  suspended = null;

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

class Waits {
  #doctor;
  #locks;
  #holds;
  #options;
  /** By token, and files by number. */
  #pending = new Map();
  #files = new Map();
  /** The process's holds of names that are asked for at a store, and the waits for its answers, by number. */
  #atStores = new Map();
  /** The wait that began last, for the verb that runs. */
  last = null;
  /** What was asked for last by its name. */
  named = null;
  /** The wait that is being granted. */
  granting = null;
  /** What the last call for several locks has waited for, which the binding tells once: for the package to read. */
  parts = null;
  #timer = null;
  /** So many were asked about since then. */
  #askedAt = -1;
  #asked = 0;

  /** `holds` is null if nobody has to know what is held. */
  constructor(doctor, holds, options) {
    this.#doctor = doctor;
    this.#locks = doctor.locks;
    this.#holds = holds;
    this.#options = options;
  }

  stop() {
    clearInterval(this.#timer);
    this.#pending.clear();
    this.#files.clear();
    this.#atStores.clear();
  }

  #toWait({ id: lock, address, isLock }, site, isBlocking, isEndless, isExclusive, isDelay = isLock) {
    const isCounted = isDelay && (this.#options.contention || this.#options.trace);
    return { threadId, lock, address, site, isEndless, isBlocking, isExclusive, isCounted };
  }

  #begin(info, isBlocking, timeout, isExclusive, isDelay) {
    const since = performance.now();
    const site = this.#doctor.sites.here() || this.#siteBefore(info);
    if (isBlocking) this.#holds?.read();
    const isEndless = timeout === Infinity;
    const number = binding.doctorWait(this.#toWait(info, site, isBlocking, isEndless, isExclusive, isDelay));
    this.last = new SeenWait(info, number, site, since, isEndless);
    return this.last;
  }

  /** Of what a drain or a microtask asks for: it goes on with what has just been granted, or with the process's hold of a name. */
  #siteBefore({ name, kind }) {
    if (this.granting !== null) return this.granting.site;
    const hold = kind === 'HeldLock' ? this.#holdOf(name) : undefined;
    return hold === undefined ? this.#doctor.askedSite : this.#holds.siteOf(hold);
  }

  #end(seen, status, waitedMs) {
    seen.isOver = true;
    binding.doctorWaitOver(seen.number, waitedMs, isGranted(status));
    if (seen.suspended !== null) this.#holds.resume(seen.suspended);
    if (isGranted(status)) seen.granted?.();
  }

  /** What a call of the binding is about to wait for: `[info, timeout, isExclusive]`. */
  #subjects = {
    acquire: (word, ask, timeout) => [this.#locks.ofWord(word), timeout, !SHARED.has(ask)],
    waitUnlocked: (condition, _word, _ask, timeout) => [this.#locks.ofWord(condition), timeout, true],
    lockAll: (words, asks, timeout) => {
      const at = Math.max(thread.record[StoppedAt], 0);
      return [this.#locks.ofWord(words[at]), timeout, !SHARED.has(asks[at])];
    },
    acquireName: (space, name, mode, timeout) => [this.#locks.ofName(space, name), timeout, mode !== SHARED_NAME],
    lockFile: (directory, name, mode, timeout) => [this.#locks.ofFile(directory, name), timeout, mode !== SHARED_NAME],
  };

  /** In the place of a call that blocks. */
  blocking(kind, original, args) {
    if (kind === 'lockAll') return this.#blockingForAll(original, args);
    if (kind === 'acquireName') this.asking(...args);
    const seen = quietly(() => this.#beginBlocking(kind, args));
    if (seen === null) return original(...args);
    let status = binding.INTERRUPTED;
    try {
      status = original(...args);
      return status;
    } finally {
      quietly(() => {
        // The package itself throws; here it is noted.
        if (status === binding.DEADLOCK) binding.doctorAwaiting(seen.number, [], false);
        const waitedMs = performance.now() - seen.since;
        const hasWaited = seen.info.kind === 'HeldLock' ? waitedMs >= AT_ONCE_MS : thread.record[WaitedMs] >= 0;
        this.#end(seen, status, hasWaited ? waitedMs : -1);
      });
    }
  }

  #beginBlocking(kind, args) {
    const [info, timeout, isExclusive] = this.#subjects[kind](...args);
    if (!(timeout > 0)) return null;
    const seen = this.#begin(info, true, timeout, isExclusive);
    if (seen.isEndless) this.#doctor.order?.blocking(info, seen.site);
    this.#setAside(seen, kind, args);
    return seen;
  }

  /** What is not held meanwhile: the mutex of a condition; a name in this process while another has it, which is asked who that is. */
  #setAside(seen, kind, [directory, wordOrName]) {
    if (kind === 'waitUnlocked') {
      this.#suspend(seen, this.#holds?.find(this.#locks.ofWord(wordOrName).address));
    } else if (kind === 'lockFile') {
      this.#suspend(seen, this.#holdOf(wordOrName));
      const holder = binding.fileHolder(directory, wordOrName);
      if (holder != null) binding.doctorOutside(seen.number, holder.pid, holder.heldMs);
    }
  }

  /** It may block for one after the other. */
  #blockingForAll(original, args) {
    const [words, asks, timeout] = args;
    const all = quietly(() =>
      words.map((word, index) => {
        const info = this.#locks.ofWord(word);
        if (timeout === Infinity) this.#doctor.order?.blocking(info, this.#doctor.sites.here());
        return this.#begin(info, true, timeout, !SHARED.has(asks[index]));
      }),
    );
    const status = original(...args);
    quietly(() => {
      if (all === null) return;
      for (const seen of all) this.#end(seen, status, -1);
      // Of an earlier call, which nobody has read.
      this.parts = null;
      const waits = binding.waits();
      this.parts = waits;
      for (const { index, waitedMs } of waits) {
        const { info, site } = all[index];
        binding.doctorWaited(this.#toWait(info, site, true, false, true), waitedMs, true);
      }
      if (isGranted(status)) this.#tookAll(words, asks, all[0].site);
    });
    return status;
  }

  /** A name is asked for. */
  asking(space, name) {
    this.granting = null;
    this.named = quietly(() => this.#locks.ofName(space, name));
  }

  /** In the place of a call that may make a promise wait. */
  queueing(kind, original, args) {
    const [isAll, isFile] = [kind === 'lockAll', kind === 'lockFile'];
    if (kind === 'acquireName') this.asking(...args);
    const site = isAll ? (this.granting?.site ?? quietly(() => this.#doctor.sites.here())) : 0;
    const status = original(...args);
    if (status === PENDING || isFile) quietly(() => this.#queued(kind, args));
    else if (isAll && isGranted(status)) quietly(() => this.#tookAll(args[0], args[1], site));
    return status;
  }

  #queued(kind, args) {
    const { [NUMBER]: number, [Token]: token } = thread.record;
    const [info, timeout, isExclusive] = this.#subjects[kind](...args);
    const seen = this.#begin(info, false, timeout, isExclusive);
    if (kind === 'lockFile') this.#files.set(number, seen);
    else this.#pending.set(token, seen);
    this.#setAside(seen, kind, args);
  }

  #tookAll(words, asks, site) {
    if (this.#holds === null) return;
    const taken = new Set();
    words.forEach((word, index) => {
      const info = this.#locks.ofWord(word);
      if (taken.has(info.address)) return;
      taken.add(info.address);
      this.#holds.push(info, info.address, !SHARED.has(asks[index]), site).isRaw = true;
    });
  }

  /** A name is asked for at a store: the hold of it in this process is not one yet. That takes a moment also if nobody has it. */
  askedStore(number, name) {
    quietly(() => {
      const hold = this.#holdOf(name);
      if (hold === undefined) return;
      const { last } = this;
      const seen = this.#begin(hold.info, false, 0, hold.isExclusive, false);
      this.last = last;
      this.#holds.suspend(hold);
      this.#atStores.set(number, { hold, seen });
    });
  }

  /** The store has answered; or nobody waits for its answer any more, and the hold in this process comes to nothing. */
  storeOver(number, status) {
    const asked = this.#atStores.get(number);
    if (!this.#atStores.delete(number)) return;
    quietly(() => {
      this.#end(asked.seen, status, -1);
      if (isGranted(status)) this.#holds.resume(asked.hold);
    });
  }

  #holdOf(name) {
    return this.#holds?.active.findLast(({ info }) => info.kind === 'HeldLock' && info.name === name);
  }

  #suspend(seen, hold) {
    if (hold === undefined) return;
    this.#holds.suspend(hold);
    seen.suspended = hold;
  }

  /** The thread has taken a wait in. */
  added(wait) {
    const seen = this.#pending.get(wait.token);
    if (seen === undefined) return;
    seen.wait = wait;
    if (wait.signal !== undefined) seen.isEndless = false;
    quietly(() => {
      if (!seen.isEndless) binding.doctorTimed(seen.number);
      else if (this.#holds !== null && this.#holds.marked > 0) this.#askSoon(seen);
      this.#watch();
    });
  }

  /** One is over. */
  over(token, status, isFile = false) {
    const pending = isFile ? this.#files : this.#pending;
    const seen = pending.get(token);
    this.granting = null;
    if (seen === undefined) return;
    pending.delete(token);
    quietly(() => this.#end(seen, status, performance.now() - seen.since));
    this.granting = seen;
  }

  // Deadlocks.

  #mayAsk(seen) {
    // What a verb wants to know of it cannot be had later.
    if (seen.awaited !== null) return true;
    const { now } = this.#holds;
    if (now !== this.#askedAt) [this.#askedAt, this.#asked] = [now, 0];
    this.#asked += 1;
    return this.#asked <= MOST_ASKED;
  }

  async #askSoon(seen) {
    for (let turn = 0; turn < TURNS; turn++) await undefined;
    if (!seen.isOver && this.#mayAsk(seen)) this.#ask(seen, false);
  }

  /** Notes who awaits a wait; if it is old, what comes of that. */
  #ask(seen, isOld) {
    if (seen.isOver || seen.wait === null || !knowsChains) return;
    seen.isAsked = true;
    askWhoAwaits(seen.wait.promise, (serials) => {
      if (seen.isOver) return;
      seen.awaited?.(serials);
      if (!this.#options.deadlocks) return;
      const found = binding.doctorAwaiting(seen.number, [...(this.#holds?.withAround(serials) ?? serials)], isOld);
      if (found === null) return;
      const deadlock = JSON.parse(found);
      const error = deadlock.isTold ? null : this.#tell(seen, deadlock);
      if (this.#options.throwOnDeadlock === 'likely' && deadlock.isNewest) {
        seen.wait.abort(error ?? this.#errorOf(seen, deadlock));
      }
    });
  }

  /** Looks at old waits, as long as there are any. */
  #watch() {
    const { deadlocks, likelyMs } = this.#options;
    if (this.#holds === null || !deadlocks || likelyMs === Infinity || this.#timer !== null) return;
    const look = () => {
      if (this.#pending.size === 0) {
        clearInterval(this.#timer);
        this.#timer = null;
        return;
      }
      const now = performance.now();
      for (const seen of this.#pending.values()) {
        if (!seen.isEndless || this.#holds.marked === 0) continue;
        if (now - seen.askedAt < ASKED_EVERY * this.#pending.size) continue;
        const isOld = now - seen.since >= likelyMs;
        if (!isOld && seen.isAsked) continue;
        seen.askedAt = now;
        this.#ask(seen, isOld);
      }
    };
    this.#timer = setInterval(look, Math.min(Math.max(likelyMs / 16, 1), 50)).unref();
  }

  #errorOf({ wait }, { waits }) {
    return new DeadlockError(
      wait.word,
      waits.map(({ waiter, lock }) => ({ threadId: waiter.threadId, byteOffset: lock.byteOffset })),
    );
  }

  /** Publishes a deadlock; returns its error. */
  #tell(seen, deadlock) {
    const error = this.#errorOf(seen, deadlock);
    const { certainty, waits } = deadlock;
    const { lock, word } = seen.wait;
    tellDeadlock(lock ?? word, word, error.cycle, { certainty, waits });
    return error;
  }
}

/** The calls of the binding that wait: what each is like. */
exports.BLOCKING = {
  acquire: 'acquire',
  acquireSome: 'acquire',
  waitUnlocked: 'waitUnlocked',
  lockAll: 'lockAll',
  acquireName: 'acquireName',
  lockFile: 'lockFile',
};
exports.QUEUEING = {
  acquireAsync: 'acquire',
  acquireSomeAsync: 'acquire',
  waitUnlockedAsync: 'waitUnlocked',
  lockAllAsync: 'lockAll',
  goOn: 'lockAll',
  requestName: 'acquireName',
  lockFileAsync: 'lockFile',
};
exports.Waits = Waits;
