// The doctor of one thread: what the swapped functions call while it is on.

const { constants } = require('node:os');
const { isMainThread, threadId } = require('node:worker_threads');
const { quietly } = require('../engine/diagnosis.js');
const { binding, thread } = require('../engine/thread.js');
const { LOCK } = require('../stores/verbs.js');
const clock = require('../load/clock.js');
const { Holds } = require('./holds.js');
const { countCalls, enclosing, runMarked } = require('./inside.js');
const { Locks } = require('./locks.js');
const { LockOrder } = require('./order.js');
const { addCopy, Sites } = require('./sites.js');
const { Swaps } = require('./swap.js');
const { BLOCKING, QUEUEING, methodsOf } = require('./verbs.js');
const { Waits } = require('./waits.js');

const UNWATCHED =
  'The system refuses the lock doctor a thread: it prints nothing when the program is stuck, nor on a signal, but what is asked for.';

const NONE = new Set();
const settled = Promise.resolve();

const CHANGES = ['newListener', 'removeListener'];
/** The watchdog looks after it too, but not at once. */
const noteListener = (event) => {
  if (Object.hasOwn(constants.signals, event)) binding.doctorArm();
};

class ThreadDoctor {
  /** Whether a method of the package runs, whose calls of others are its own affair; or the doctor is off. */
  isBusy = false;
  locks = new Locks(() => this.holds.dropGone());
  /** The holds of guards, permits and held locks. */
  holdOf = new WeakMap();
  /** The hold that a verb of the lock or of its guard gives back now. */
  ending = null;
  sites;
  /** Captures where a verb was called. */
  trace;
  holds;
  order = null;
  waits;
  #leaks = null;
  #byNumber = new Map();
  /** The request for a name that is being made. */
  #asked = null;
  /** By what locks several names: the request that it is for. */
  #several = new WeakMap();
  #swaps = new Swaps();
  /** The package's own list of the names that are held. */
  #held = null;
  #options;
  #isTracking;
  #looksSoon = false;

  constructor(options) {
    const { lockOrder, deadlocks, leaks, longHoldMs, places, trace } = options;
    this.#options = options;
    this.sites = new Sites(places);
    this.trace = this.sites.capture;
    this.holds = new Holds(this.sites, longHoldMs, trace);
    // Only these need to know who holds what.
    this.#isTracking = lockOrder || deadlocks || leaks || trace;
    if (lockOrder) this.order = new LockOrder(this.holds, this.sites, this.locks);
    if (leaks) this.#leaks = new FinalizationRegistry((hold) => hold.isActive && this.holds.suspect(hold, true));
    this.waits = new Waits(this, this.#isTracking ? this.holds : null, options);
  }

  start() {
    const { likelyMs, deadlocks } = this.#options;
    const settings = {
      ...this.#options,
      likelyMs: deadlocks ? likelyMs : Infinity,
      isTracking: this.#isTracking,
      mayAsk: process.env.SABLOCK_DOCTOR_SIGNAL === 'SIGUSR2',
      // Children of the program inherit the variable.
      forwarder: process.env.SABLOCK_DOCTOR_FORWARDER === String(process.ppid) ? process.ppid : 0,
      folder: process.cwd(),
    };
    if (!binding.doctorStart(threadId, this.holds.slots, clock.now, settings)) {
      process.emitWarning(UNWATCHED, { type: 'LockDoctorWarning', code: 'ERR_LOCK_NO_THREAD' });
    }
    for (const [copy, file] of thread.copies) this.addedCopy(copy.deref(), file);
    this.#swapThread();
    if (this.#isTracking) {
      for (const [name, reference] of thread.classes) {
        const type = reference.deref();
        if (type !== undefined) this.added(name, type, thread.words.get(type));
      }
    }
    // Node.js changes the system's handler with the first listener of a signal, and with the last. Workers get no signals.
    if (isMainThread) for (const event of CHANGES) process.on(event, noteListener);
    thread.doctor = this;
  }

  stop() {
    thread.doctor = null;
    this.isBusy = true;
    for (const event of CHANGES) process.off(event, noteListener);
    this.#swaps.undo();
    this.waits.stop();
    this.locks.stop();
    binding.doctorStop(threadId, false);
  }

  /** The thread ends now: what it holds is never released. */
  noteEnd() {
    this.holds.read();
    binding.doctorStop(threadId, true);
  }

  /** A class of primitives, also one that is loaded later. */
  added(className, type, wordOf) {
    if (!this.#isTracking) return;
    this.#swapHeld();
    for (const [name, make] of methodsOf(this, className, wordOf)) this.#swaps.swap(type.prototype, name, make);
  }

  /** A load of the package, another install of it for one: its waits are those of its own binding. */
  addedCopy(own, file) {
    addCopy(file);
    if (own !== undefined) this.#swapBinding(own);
  }

  // Calls that wait or free: those of the binding, and of what every wait of the thread goes through.

  #swapBinding(own) {
    const { waits } = this;
    const { Token } = binding.Field;
    const replace = (name, act) => this.#swaps.swap(own, name, (original) => act.bind(null, original));
    const before = (name, note) =>
      replace(name, (original, ...args) => {
        note(...args);
        return original(...args);
      });
    const after = (name, note) =>
      replace(name, (original, ...args) => {
        const result = original(...args);
        note(result, ...args);
        return result;
      });
    for (const [name, kind] of Object.entries(BLOCKING)) {
      replace(name, (original, ...args) => waits.blocking(kind, original, args));
    }
    for (const [name, kind] of Object.entries(QUEUEING)) {
      replace(name, (original, ...args) => waits.queueing(kind, original, args));
    }
    after('next', (status) => {
      if (status >= 0) waits.over(thread.record[Token], status);
      else waits.granting = null;
    });
    after('cancel', (result, token) => {
      if (result !== false) waits.over(token, binding.TIMED_OUT);
    });
    before('stealName', (...args) => waits.asking(...args));
    after('askStore', (status, question) => {
      if (status === binding.PENDING && question.verb === LOCK) waits.askedStore(thread.record[Token], question);
    });
    replace('askStoreBlocking', (original, ...args) => waits.blockingAtStore(original, ...args));
    for (const name of ['giveBack', 'giveBackAll']) before(name, (given) => quietly(() => waits.givenBack(given)));
    before('releaseHeld', (number) => quietly(() => this.#noteUnlock(this.#byNumber.get(number)?.info)));
  }

  #swapThread() {
    const { waits } = this;
    // A property of its own that comes and goes would leave the object slow.
    const prototype = Object.getPrototypeOf(thread);
    this.#swaps.swap(prototype, 'add', (original) => (wait) => {
      original.call(thread, wait);
      waits.added(wait);
    });
    this.#swaps.swap(prototype, 'drainSoon', (original) => (word) => {
      if (word !== undefined) quietly(() => this.#noteUnlock(this.locks.ofWord(word)));
      original.call(thread, word);
    });
  }

  /** The holds of names, once there are any. */
  #swapHeld() {
    const { held } = thread;
    if (held === null || this.#held === held) return;
    this.#held = held;
    const prototype = Object.getPrototypeOf(held);
    this.#swaps.swap(prototype, 'add', (original) => (number, lock) => {
      original.call(held, number, lock);
      quietly(() => this.#beganNamed(number, lock));
    });
    this.#swaps.swap(prototype, 'delete', (original) => (number) => {
      original.call(held, number);
      const hold = this.#byNumber.get(number);
      if (hold === undefined) return;
      this.#byNumber.delete(number);
      quietly(() => this.end(hold));
    });
  }

  #noteUnlock(info) {
    if (info === undefined || !info.isLock || !(this.#options.contention || this.#options.trace)) return;
    // The end of a function is no code of the user's: its verb was called there, and its hold is the one that has just ended.
    const hold = this.ending ?? this.holds.find(info.address) ?? info.last;
    const note = (site) => binding.doctorUnlock(threadId, info.id, info.address, hold?.since, site);
    if (note()) note(this.sites.calling() || (hold === null ? this.sites.here() : this.holds.siteOf(hold)));
  }

  #beganNamed(number, lock) {
    const { granting, named } = this.waits;
    const info = granting?.info ?? named;
    if (info === null || info.name !== lock.name) return;
    const asked = granting === null ? this.#asked : null;
    const trace = granting?.site ?? asked?.trace ?? null;
    if (asked?.isSync && asked.options.isEndless) this.order?.blocking(info, trace);
    const hold = this.holds.push(info, info.address, lock.mode !== 'shared', trace);
    if (asked !== null) hold.sighting = { confirm: () => asked.sighting?.confirm() };
    this.#byNumber.set(number, hold);
    this.holdOf.set(lock, hold);
  }

  // Calls by the verbs.

  /** Runs a method of the package that may wait. */
  inside(original, self, args) {
    this.waits.last = null;
    return this.busily(original, self, args);
  }

  /** Runs a method of the package, perhaps inside of another one, whose users' code has called it. */
  busily(original, self, args) {
    const { isBusy } = this;
    this.isBusy = true;
    try {
      this.lookSoon();
      return Reflect.apply(original, self, args);
    } finally {
      this.isBusy = isBusy || thread.doctor !== this;
    }
  }

  /** A time limit of `vm` runs no `finally`. The next microtask sees to it. */
  lookSoon() {
    if (this.#looksSoon) return;
    try {
      settled.then(this.#look);
      this.#looksSoon = true;
    } catch {
      // A patched `then` threw.
    }
  }

  #look = () => {
    this.#looksSoon = false;
    this.waits.blocked.endCutOff();
    // Few run microtasks in the midst of a method.
    if (!this.isBusy || thread.doctor !== this || countCalls('busily', __filename) > 0) return;
    this.isBusy = false;
    this.#asked = null;
    this.ending = null;
  };

  /** Before all that is known is read. */
  read() {
    this.waits.blocked.endCutOff();
    this.holds.dropGone();
    this.holds.read();
  }

  /** Runs a function of the user inside of a method of the package. */
  freely(fn, ...args) {
    const { isBusy } = this;
    this.isBusy = thread.doctor !== this;
    try {
      return fn(...args);
    } finally {
      this.isBusy = isBusy;
    }
  }

  /** A hold that a call has taken; `result` is what it returns. */
  began(info, address, how, trace, result) {
    const hold = this.holds.push(info, address, how.isExclusive, trace);
    hold.isRaw = true;
    this.gave(result, hold);
    return hold;
  }

  /** The object that gives a hold back, if there is one. */
  gave(guard, hold) {
    if (typeof guard !== 'object' || guard === null) return;
    hold.isRaw = false;
    this.holdOf.set(guard, hold);
    this.#leaks?.register(guard, hold);
  }

  /** The object that gives back what was granted by this list; to a verb of it, each lock is one that has no guard. */
  gaveAll(guard, words) {
    for (const hold of this.waits.granted.get(words) ?? []) this.#leaks?.register(guard, hold);
  }

  /** The hold that `giver` gives back: a guard its own, a lock the last one that has none. */
  heldBy(giver, address, isExclusive) {
    return this.holdOf.get(giver) ?? this.holds.findRaw(address, isExclusive) ?? null;
  }

  end(hold) {
    hold.sighting?.confirm();
    this.holds.end(hold);
  }

  /** Runs a function that holds, as a verb with a callback does. */
  run(info, how, trace, sighting, fn, args) {
    const hold = quietly(() => {
      // One that was left with a thenable whose end was not seen.
      const last = how.isExclusive ? this.holds.find(info.address) : undefined;
      if (last !== undefined) this.holds.end(last);
      return this.holds.push(info, info.address, how.isExclusive, trace);
    });
    return hold === null ? fn(...args) : this.#runMarked([hold], sighting, fn, args, () => this.holds.end(hold));
  }

  /** As `run`, with the holds of one call, which something else ends. */
  runIn(holds, fn, args, sighting) {
    return this.#runMarked(holds, sighting, fn, args, () => {
      for (const hold of holds) this.holds.unmark(hold);
    });
  }

  /** The mark is that of the first hold, which is inside of the others: with a mark for each, many would fill the stack. */
  #runMarked([first, ...others], sighting, fn, args, end) {
    quietly(() => {
      sighting?.confirm();
      // V8 does not know any more who awaits a request, once its callback awaits something.
      const isAsked = first.info.kind === 'HeldLock' && this.holds.marked > 0;
      const around = isAsked ? new Set(enclosing()) : NONE;
      for (const hold of others) this.holds.mark(hold, around);
      const ofFirst = others.length === 0 ? around : new Set([...around, ...others.map(({ serial }) => serial)]);
      this.holds.mark(first, ofFirst);
    });
    return runMarked(first.serial, fn, args, () =>
      quietly(() => {
        sighting?.confirm();
        end();
      }),
    );
  }

  /** Runs a function that holds, to its end. */
  runSync(info, how, trace, fn, args) {
    const hold = quietly(() => this.holds.push(info, info.address, how.isExclusive, trace));
    try {
      return this.freely(fn, ...args);
    } finally {
      if (hold !== null) quietly(() => this.holds.end(hold));
    }
  }

  /** A lock of several names asks for the next one now, for the code that made the request. */
  goOn(locking) {
    if (this.#asked !== null) {
      this.#several.set(locking, this.#asked);
      this.#asked.names = locking.inOrder();
      return;
    }
    const asked = this.#several.get(locking);
    if (asked === undefined) return;
    this.#asked = asked;
    settled.then(() => {
      if (this.#asked === asked) this.#asked = null;
    });
  }

  /** Makes a request for a name, which gets the order that it may be in. */
  asking(original, self, args, asked) {
    const before = this.#asked;
    this.#asked = asked;
    try {
      const result = this.inside(original, self, args);
      const { named } = this.waits;
      if (asked.isSync || named === null) return result;
      const infos = () => asked.names?.map((name) => this.locks.ofName(named.place, name));
      asked.sighting = quietly(() => this.sight(named, asked.trace, asked.options, this.waits.last, infos()));
      return result;
    } finally {
      this.#asked = before;
    }
  }

  /** The place from which a name was asked for. */
  get askedSite() {
    return this.sites.read(this.#asked?.trace ?? null);
  }

  /** The order that an awaiting verb may be in, or null. Whoever is known to await its wait confirms it. */
  sight(info, trace, { isEndless }, wait = this.waits.last, infos = [info]) {
    const sighting = isEndless ? (this.order?.awaitingAll(infos, trace) ?? null) : null;
    if (wait?.info.id === info.id && sighting !== null) wait.awaited = (serials) => sighting.confirm(serials);
    return sighting;
  }
}

exports.ThreadDoctor = ThreadDoctor;
