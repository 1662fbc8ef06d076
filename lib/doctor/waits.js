// Waits: where they began, how long they took, and which of them seem never to end. All that blocks this thread, or makes a promise
// wait, is a call of the binding: so they are seen there.

const { threadId } = require('node:worker_threads');
const { quietly, quietlyMeanwhile } = require('../engine/diagnosis.js');
const { binding, isGranted, thread } = require('../engine/thread.js');
const { CALL, questionOf } = require('../engine/lock-worker.js');
const { LOCK } = require('../stores/verbs.js');
const clock = require('../load/clock.js');
const { BlockingCalls, CUT_OFF } = require('./inside.js');
const { SeenWait, Tasks } = require('./tasks.js');

const { Ask, GRANTED, PENDING } = binding;
const { StoppedAt, Token, WaitedMs } = binding.Field;

/** In the place of a token: the request for which this thread blocks. */
const BLOCKED = -1;
/** A request that blocked for less did not wait, where the core does not tell. */
const AT_ONCE_MS = 0.05;
/** Whether nobody holds what has this word. */
const isFree = (word) => (Atomics.load(word, 0) & (binding.OWNER | binding.SHARED)) === 0;
/** Requests of readers. */
const SHARED = new Set([Ask.Read, Ask.ReadGuarded]);
const SHARED_NAME = binding.NameMode.Shared;

class Waits {
  #doctor;
  #locks;
  #holds;
  #options;
  /** By token. */
  #pending = new Map();
  /** The process's holds of names that are asked for at a store, and the waits for its answers, by token. */
  #atStores = new Map();
  /** Asks the stores who holds what has been waited for so long that it may be stuck. */
  #asker = null;
  /** The waits that such a question is about, by its token. */
  #questions = new Map();
  /** The wait that began last, for the verb that runs; or one of users' code in it. */
  last = null;
  /** By the promise that the verb returns: which wait is its own, whatever users' code has waited for in it. */
  #byPromise = new WeakMap();
  /** The lock that was asked for last by its name. */
  named = null;
  /** The wait that is being granted. */
  granting = null;
  /** The holds that a call was granted last, by the word that it was for, or by its list of words. */
  granted = new WeakMap();
  /** The hold that a condition's wait, which is over, is about to lock again, and the package's own wait. */
  #returning = null;
  blocked = new BlockingCalls();
  /** The tasks that await them; null if nobody has to know. */
  #tasks;

  /** `holds` is null if what is held need not be known. */
  constructor(doctor, holds, options) {
    this.#doctor = doctor;
    this.#locks = doctor.locks;
    this.#holds = holds;
    this.#options = options;
    this.#tasks = holds === null ? null : new Tasks(this.#pending, holds, options);
  }

  stop() {
    this.#tasks?.stop();
    this.#pending.clear();
    this.#atStores.clear();
    this.#questions.clear();
    this.#stopAsking();
  }

  /** `isDelay`: the time is for a lock. */
  #begin([info, timeout, isExclusive], isBlocking, { hold, isDelay = info.isLock, site = this.#siteOf(hold) } = {}) {
    const since = clock.now();
    const isEndless = timeout === Infinity;
    if (isBlocking) {
      this.#holds?.dropGone();
      this.#holds?.read();
      if (isEndless) this.#doctor.order?.blocking(info, site);
    }
    const isCounted = isDelay && (this.#options.contention || this.#options.trace);
    const { id, address } = info;
    const number = binding.doctorWait(threadId, id, address, site, isEndless, isBlocking, isExclusive, isCounted);
    this.last = new SeenWait(info, number, site, since, isEndless);
    return this.last;
  }

  /** The site of a request; if a drain or a microtask makes it, that of the hold which was just granted, or of the process's name. */
  #siteOf(hold) {
    const site = this.#doctor.sites.here();
    if (site !== 0) return site;
    if (this.granting !== null) return this.granting.site;
    return hold === undefined ? this.#doctor.askedSite : this.#holds.siteOf(hold);
  }

  #end(seen, status, waitedMs, since = seen.since) {
    seen.isOver = true;
    binding.doctorWaitOver(seen.number, since, waitedMs, isGranted(status));
    if (seen.suspended !== null) this.#endSuspension(seen, status);
    if (isGranted(status)) seen.granted?.();
    // Both know what the promise came to: a guard that is dropped while it holds is to be collected, which makes it a leak.
    seen.granted = null;
    seen.wait = null;
  }

  #endSuspension({ suspended, word, info, wait }, status) {
    // A promise for a condition has no mutex yet when it is over; a wait for the mutex, or a call that blocks for both, may not get it.
    if (wait?.locking !== undefined) this.#returning = { hold: suspended, wait };
    else if (info.kind === 'HeldLock' || isGranted(status)) this.#resume(suspended, word);
  }

  #resume(hold, word) {
    this.granted.set(word, [hold]);
    this.#holds.resume(hold);
  }

  /** A grant goes back, as when `onAbandoned` throws. */
  givenBack(wordOrWords) {
    for (const hold of this.granted.get(wordOrWords) ?? []) this.#holds.end(hold);
    this.granted.delete(wordOrWords);
  }

  /** The hold that the running call asks for again; undefined if it asks for a new one. */
  #takeReturning() {
    const returning = this.#returning;
    // Set right before the call.
    if (returning === null || returning.wait.locking === null) return undefined;
    this.#returning = null;
    return returning.hold;
  }

  /** The wait that a call of the binding is about to begin: `[info, timeout, isExclusive]`. */
  #subjects = {
    acquire: (word, ask, timeout) => [this.#locks.ofWord(word), timeout, !SHARED.has(ask)],
    waitUnlocked: (condition, _word, _ask, timeout) => [this.#locks.ofWord(condition), timeout, true],
    lockAll: (words, asks, timeout) => this.#subjectAt(Math.max(thread.record[StoppedAt], 0), words, asks, timeout),
    acquireName: (space, name, mode, timeout) => [this.#locks.ofName(space, name), timeout, mode !== SHARED_NAME],
    wait: (typedArray, index, _value, timeout) => [this.#locks.ofElement(typedArray, index), timeout, true],
    lockFile: (directory, name, mode, timeout) => [this.#locks.ofFile(directory, name), timeout, mode !== SHARED_NAME],
  };

  #subjectAt(index, words, asks, timeout) {
    return [this.#locks.ofWord(words[index]), timeout, !SHARED.has(asks[index])];
  }

  /** The wait that a call of the binding begins, under its token; null if the call is to block, and does not. */
  #beginCall(kind, args, token) {
    const subject = this.#subjects[kind](...args);
    const [directory, wordOrName] = args;
    const isBlocking = token === BLOCKED;
    if (isBlocking && !(subject[1] > 0)) return null;
    // The hold that the process has already of a lock that is asked for outside; meanwhile it is none.
    const hold = kind === 'lockFile' ? this.#holdOf(subject[0].place, wordOrName) : undefined;
    const seen = this.#begin(subject, isBlocking, { hold });
    if (!isBlocking) this.#pending.set(token, seen);
    if (kind === 'waitUnlocked') {
      const mutex = this.#locks.ofWord(wordOrName);
      this.#suspend(seen, this.#holds?.find(mutex.address), wordOrName);
      this.#noteRelock(seen, mutex, isBlocking);
    } else if (kind === 'lockFile') {
      this.#suspend(seen, hold, seen.info);
      const holder = binding.fileHolders(directory, wordOrName)?.[0];
      if (holder != null) binding.doctorNote(seen.number, { holder });
    }
    return seen;
  }

  /** However a wait for a condition ends, it locks the mutex once more: inside of all else that is held. */
  #noteRelock(seen, mutex, isBlocking) {
    const { order } = this.#doctor;
    if (isBlocking) {
      order?.blocking(mutex, seen.site);
      return;
    }
    const sighting = order?.awaiting(mutex, seen.site) ?? null;
    if (sighting !== null) seen.awaited = (serials) => sighting.confirm(serials);
  }

  /** In the place of a call that blocks. */
  blocking(kind, original, args) {
    if (kind === 'acquireName') this.asking(...args);
    this.blocked.endCutOff();
    const isForAll = kind === 'lockAll';
    const seen = quietly(() => (isForAll ? this.#beginAll(args) : this.#beginCall(kind, args, BLOCKED)));
    if (seen === null) return original(...args);
    const end = isForAll ? (status) => this.#endAll(seen, args, status) : (status) => this.#endCall(seen, status);
    this.#doctor.lookSoon();
    return this.blocked.block(original, args, end);
  }

  #endCall(seen, status) {
    // The package itself throws; here it is noted.
    if (status === binding.DEADLOCK) binding.doctorNote(seen.number, { awaiting: [] });
    const waitedMs = clock.now() - seen.since;
    const hasWaited = seen.info.kind === 'HeldLock' ? waitedMs >= AT_ONCE_MS : thread.record[WaitedMs] >= 0;
    this.#end(seen, status, hasWaited && status !== CUT_OFF ? waitedMs : -1);
  }

  /** It may block for one after the other: those that are free now it does not wait for, as far as can be seen. */
  #beginAll(args) {
    const site = this.#doctor.sites.here();
    const waits = args[0].map((word, index) => {
      const subject = this.#subjectAt(index, ...args);
      if (!isFree(word)) return this.#begin(subject, true, { site });
      const [info, timeout] = subject;
      if (timeout === Infinity) this.#doctor.order?.blocking(info, site);
      return null;
    });
    return { site, waits };
  }

  #endAll({ site, waits }, args, status) {
    const found = status === CUT_OFF ? [] : binding.foundAll().waits;
    const waited = new Map(found.map((wait) => [wait.index, wait]));
    const now = clock.now();
    // Locks before the one that could not be had were granted, and went back.
    const stoppedAt = thread.record[StoppedAt];
    for (const [index, begun] of waits.entries()) {
      const isLast = index === stoppedAt;
      // It was taken meanwhile.
      const seen = begun ?? (waited.has(index) ? this.#begin(this.#subjectAt(index, ...args), true, { site }) : null);
      if (seen === null) continue;
      if (isLast && status === binding.DEADLOCK) binding.doctorNote(seen.number, { awaiting: [] });
      const wait = waited.get(index);
      if (wait === undefined) this.#end(seen, status, -1);
      else this.#end(seen, isLast ? status : GRANTED, wait.waitedMs, now - wait.begunMs);
    }
    if (isGranted(status)) this.#tookAll(args, site);
  }

  /** A name is asked for. */
  asking(space, name) {
    this.granting = null;
    this.named = quietly(() => this.#locks.ofName(space, name));
  }

  /** In the place of a call that may make a promise wait. */
  queueing(kind, original, args) {
    if (kind === 'lockAll') return this.#queueingAll(original, args, null);
    if (kind === 'goOn') return this.#queueingAll(original, args, this.granting);
    if (kind === 'acquireName') this.asking(...args);
    const returning = kind === 'acquire' ? this.#takeReturning() : undefined;
    const status = original(...args);
    if (status === PENDING) {
      quietlyMeanwhile(() => this.#suspend(this.#beginCall(kind, args, thread.record[Token]), returning, args[0]));
    } else if (returning !== undefined && isGranted(status)) quietly(() => this.#resume(returning, args[0]));
    return status;
  }

  /** It may wait for one after the other, each time as what it went on with: its last wait. */
  #queueingAll(original, args, last) {
    const { site, sighting } = last ?? quietly(() => this.#sightAll(...args)) ?? { site: 0, sighting: null };
    const status = original(...args);
    quietlyMeanwhile(() => {
      if (status === PENDING) {
        const seen = this.#beginCall('lockAll', args, thread.record[Token]);
        seen.sighting = sighting;
        if (sighting !== null) seen.awaited = (serials) => sighting.confirm(serials);
      } else if (isGranted(status) && args.length > 0) this.#tookAll(args, site, sighting);
    });
    return status;
  }

  #sightAll(words, _asks, timeout, hasSignal) {
    const site = this.#doctor.sites.here();
    const isEndless = timeout === Infinity && !hasSignal;
    const infos = words.map((word) => this.#locks.ofWord(word));
    return { site, sighting: isEndless ? (this.#doctor.order?.awaitingAll(infos, site) ?? null) : null };
  }

  #tookAll([words, asks], site, sighting = null) {
    if (this.#holds === null) return;
    const taken = new Set();
    const holds = [];
    this.granted.set(words, holds);
    words.forEach((word, index) => {
      const info = this.#locks.ofWord(word);
      if (taken.has(info.address)) return;
      taken.add(info.address);
      const hold = this.#holds.push(info, info.address, !SHARED.has(asks[index]), site);
      hold.isRaw = true;
      hold.sighting = sighting;
      holds.push(hold);
    });
  }

  /** A name is asked for at a store: the hold of it in this process is not one yet. That takes a moment even if the name is free. */
  askedStore(token, { desk, store, name }) {
    quietlyMeanwhile(() => {
      const hold = this.#holdOf(store, name);
      if (hold === undefined) return;
      const { last } = this;
      const seen = this.#begin([hold.info, 0, hold.isExclusive], false, { hold, isDelay: false });
      this.last = last;
      this.#holds.suspend(hold);
      this.#atStores.set(token, { hold, seen, desk, store, askedAt: seen.since });
      const { stuckMs } = this.#options;
      // Beyond that a timer fires at once.
      if (stuckMs < 2 ** 31) this.#asker ??= clock.setInterval(() => this.#askStores(), stuckMs / 2).unref();
    });
  }

  /** In the place of a call that blocks for the answer of a store. */
  blockingAtStore(original, question, timeout) {
    this.blocked.endCutOff();
    if (question.verb === LOCK) this.askedStore(BLOCKED, question);
    this.#doctor.lookSoon();
    return this.blocked.block(original, [question, timeout], (status) => this.storeOver(BLOCKED, status));
  }

  #stopAsking() {
    clock.clearInterval(this.#asker);
    this.#asker = null;
  }

  /** Only the store knows who holds a name there. The answer comes as those of the package do. */
  #askStores() {
    if (this.#atStores.size === 0) this.#stopAsking();
    const { stuckMs } = this.#options;
    const time = clock.now();
    for (const asked of this.#atStores.values()) {
      if (time - asked.askedAt < stuckMs) continue;
      asked.askedAt = time;
      const payload = JSON.stringify({ call: 'query', names: [asked.hold.info.name] });
      const question = questionOf(asked.desk, asked.store, CALL, payload);
      quietly(() => {
        // The drain gives back its grant, since no wait takes it in.
        if (binding.askStore(question, Infinity) === PENDING) {
          this.#questions.set(thread.record[Token], asked.seen);
        }
      });
    }
  }

  #answered(seen, status) {
    if (status !== GRANTED || seen.isOver) return;
    const [holder] = JSON.parse(binding.takeTold());
    if (holder !== undefined) binding.doctorNote(seen.number, { holder });
  }

  /** The store has answered; or its answer is no longer waited for, and the hold in this process comes to nothing. */
  storeOver(token, status) {
    const question = this.#questions.get(token);
    if (this.#questions.delete(token)) quietly(() => this.#answered(question, status));
    const asked = this.#atStores.get(token);
    if (!this.#atStores.delete(token)) return;
    quietlyMeanwhile(() => {
      this.#end(asked.seen, status, -1);
      if (isGranted(status)) this.#holds.resume(asked.hold);
    });
  }

  /** The last hold of a name that is in a space. */
  #holdOf(space, name) {
    return this.#holds?.active.findLast(
      ({ info }) => info.kind === 'HeldLock' && info.name === name && info.place === space,
    );
  }

  /** `word` is what asks for the hold again: whatever goes back meanwhile is another. */
  #suspend(seen, hold, word) {
    if (hold === undefined) return;
    this.#holds.suspend(hold);
    this.granted.delete(word);
    Object.assign(seen, { suspended: hold, word });
  }

  /** The thread has taken a wait in. */
  added(wait) {
    const seen = this.#pending.get(wait.token);
    if (seen === undefined) return;
    seen.wait = wait;
    this.#byPromise.set(wait.promise, seen);
    quietly(() => {
      if (wait.signal !== undefined) {
        seen.isEndless = false;
        binding.doctorNote(seen.number, { hasSignal: true });
      }
      this.#tasks?.added(seen);
    });
  }

  /** The wait of a promise that a verb has returned; null if it does not wait. */
  of(promise) {
    return this.#byPromise.get(promise) ?? null;
  }

  /** One is over. */
  over(token, status) {
    const seen = this.#pending.get(token);
    this.granting = null;
    this.storeOver(token, status);
    if (seen === undefined) return;
    this.#pending.delete(token);
    quietlyMeanwhile(() => this.#end(seen, status, clock.now() - seen.since));
    this.granting = seen;
  }
}

exports.Waits = Waits;
