// The holds of this thread, with their places. The core reads the slots, also while the thread is blocked.

const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const clock = require('../load/clock.js');

const { DOCTOR_SLOTS: SLOTS, DOCTOR_SLOT_LENGTH: LENGTH } = binding;
/** The number of places that are read at once between two ticks of the clock: a hundredth of its time. */
const MOST_READ = 64;
/** A serial is the thread and a count. */
const SERIALS = 2 ** 32;

/** One hold. */
class TrackedHold {
  /** Whether it is still held. */
  isActive = true;
  slot = -1;
  since = 0;
  /** The holds that this is inside of, if it is of a verb with a callback; null for others. */
  around = null;
  /** Whether nothing but a verb of the lock ends it: neither a guard nor a function. */
  isRaw = false;
  /** The number of its place; -1 until `trace` is read. */
  site = -1;
  /** The order that its verb may be in. */
  sighting = null;

  constructor(serial, info, address, isExclusive, trace) {
    this.serial = serial;
    this.info = info;
    this.address = address;
    this.isExclusive = isExclusive;
    this.trace = trace;
  }
}

/** The slots, and behind them the time, which the core keeps: `performance.now()` takes longer than a lock. */
const CLOCK = SLOTS * LENGTH;

/** The holds of this thread. */
class Holds {
  slots = new Float64Array(new SharedArrayBuffer(8 * (CLOCK + 1)));
  /** In order of their begin. */
  active = [];
  /** The number of those that are of verbs with callbacks that code may go on in. */
  marked = 0;
  #free = Array.from({ length: SLOTS }, (_, index) => (SLOTS - 1 - index) * LENGTH);
  #next = 1;
  #sites;
  #longHoldMs;
  /** The time in milliseconds: to the point if somebody draws it. */
  #now;
  /** Holds without a place in their slot. */
  #unread = new Set();
  /** The number of places that were read at once since the clock moved: of holds that may last for the whole turn. */
  #readAt = -1;
  #read = 0;
  #isReading = false;

  constructor(sites, longHoldMs, isDrawn) {
    this.#sites = sites;
    this.#longHoldMs = longHoldMs;
    const { slots } = this;
    slots[CLOCK] = clock.now();
    this.#now = isDrawn ? clock.now : () => slots[CLOCK];
  }

  /** The time in milliseconds, when the core looked last. */
  get now() {
    return this.slots[CLOCK];
  }

  /** `trace` is what `Sites.capture` has returned, or the number of a place. */
  push(info, address, isExclusive, trace) {
    const serial = threadId * SERIALS + this.#next++;
    const hold = new TrackedHold(serial, info, address, isExclusive, trace);
    if (typeof trace === 'number') hold.site = trace;
    hold.since = this.#now();
    this.active.push(hold);
    this.#show(hold);
    return hold;
  }

  #show(hold) {
    const slot = this.#free.pop();
    if (slot === undefined) return;
    const { slots } = this;
    hold.slot = slot;
    slots[slot + 1] = hold.info.id;
    slots[slot + 2] = Math.max(hold.site, 0);
    slots[slot + 3] = hold.since;
    slots[slot + 4] = hold.isExclusive ? 1 : 0;
    slots[slot + 5] = hold.address;
    // Last: it says that the rest is there.
    slots[slot] = hold.serial;
    if (hold.site >= 0) return;
    if (slots[CLOCK] !== this.#readAt) [this.#readAt, this.#read] = [slots[CLOCK], 0];
    if (this.#read < MOST_READ) {
      this.#read += 1;
      this.siteOf(hold);
      return;
    }
    this.#unread.add(hold);
    if (this.#isReading) return;
    // The place of a hold beyond this turn is worth to be read.
    this.#isReading = true;
    settled.then(() => {
      this.#isReading = false;
      this.read();
    });
  }

  /** The core is to know the places of all that is held. */
  read() {
    for (const hold of this.#unread) this.siteOf(hold);
    this.#unread.clear();
  }

  siteOf(hold) {
    if (hold.site < 0) {
      hold.site = this.#sites.read(hold.trace);
      hold.trace = null;
      if (hold.slot >= 0) this.slots[hold.slot + 2] = hold.site;
    }
    return hold.site;
  }

  end(hold) {
    if (!hold.isActive) return;
    hold.isActive = false;
    // Its function has ended, and the lock is about to be freed.
    hold.info.last = hold;
    this.unmark(hold);
    if (hold.site < 0) this.#unread.delete(hold);
    // Within one tick of the clock none is long; the clock itself may be late.
    const isLong = this.now !== hold.since && clock.now() - hold.since >= this.#longHoldMs;
    if (isLong) this.suspect(hold, false);
    this.suspend(hold);
  }

  /** Code goes on in it. */
  mark(hold, around) {
    if (hold.around === null) this.marked += 1;
    hold.around = around;
  }

  /** Its function has ended, or it has. */
  unmark(hold) {
    if (hold.around !== null) this.marked -= 1;
    hold.around = null;
  }

  /** Reports a hold that was long, it seems, or whose guard was collected. */
  suspect(hold, isLeaked) {
    binding.doctorSuspect(threadId, hold.serial, hold.info.id, this.siteOf(hold), isLeaked);
  }

  /** A lock whose memory is gone can be released by nobody, and another one may come to its address. */
  dropGone() {
    const gone = this.active.filter(({ info }) => info.isGone);
    for (const hold of gone) this.suspend(hold);
  }

  /** It is not held: it is over, or will be held again, as after a condition's wait. */
  suspend(hold) {
    if (hold.slot >= 0) {
      this.slots[hold.slot] = 0;
      this.#free.push(hold.slot);
      hold.slot = -1;
    }
    const { active } = this;
    if (active[active.length - 1] === hold) {
      active.pop();
      return;
    }
    const index = active.indexOf(hold);
    if (index >= 0) active.splice(index, 1);
  }

  /** The last exclusive hold of what is at an address; undefined if none is known. */
  find(address) {
    return this.active.findLast((hold) => hold.isExclusive && hold.address === address);
  }

  /** The last hold of it that an `unlock()` of the lock itself ends. */
  findRaw(address, isExclusive) {
    return this.active.findLast((hold) => hold.isRaw && hold.address === address && hold.isExclusive === isExclusive);
  }

  bySerial(serial) {
    return this.active.find((hold) => hold.serial === serial);
  }

  /** With what those are inside of: a promise of the package may be where the runtime's knowledge ends. */
  withAround(serials) {
    const all = new Set(serials);
    for (const serial of all) for (const around of this.bySerial(serial)?.around ?? []) all.add(around);
    return all;
  }

  /** It is held again. */
  resume(hold) {
    if (!hold.isActive || hold.slot >= 0) return;
    // The core's clock may be late: by this time the core sees that the hold was away.
    hold.since = clock.now();
    this.active.push(hold);
    this.#show(hold);
  }

  setMode(hold, isExclusive) {
    hold.isExclusive = isExclusive;
    if (hold.slot >= 0) this.slots[hold.slot + 4] = isExclusive ? 1 : 0;
  }
}

const settled = Promise.resolve();

exports.Holds = Holds;
