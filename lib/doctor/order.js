// Which locks are held while others are locked. Only the first sighting of two classes costs anything: the rest of it is a look
// into a set.

const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { enclosing } = require('./inside.js');

/** Two classes in one number. */
const CLASSES = 2 ** 24;
/** A pair that could not be confirmed so often is tried only each time that the number of tries is a power of two. */
const FIRST_TRIES = 16;
/** So many sightings are known by heart. */
const MOST_KNOWN = 100_000;

const pairOf = (from, to) => from.class * CLASSES + to.class;

/** A lock that is asked for by code that may be inside of holds: an order, once it is known that their functions await it. */
class Sighting {
  #order;
  #info;
  #trace;
  /** The serials of holds that it may be inside of. */
  #serials;

  constructor(order, info, trace, serials) {
    this.#order = order;
    this.#info = info;
    this.#trace = trace;
    this.#serials = serials;
  }

  get isOpen() {
    return this.#serials.length > 0;
  }

  /** With the holds that are known to await it, or what came of it. */
  confirm(serials = enclosing()) {
    const known = this.#serials.filter((serial) => serials.includes(serial));
    if (known.length === 0) return;
    this.#serials = [];
    this.#order.note(known, this.#info, this.#trace);
  }
}

class LockOrder {
  #holds;
  #sites;
  #kept;
  /** Pairs of classes, and what else was held, of which nothing more is to be told. */
  #known = new Set();
  #tries = new Map();

  constructor(holds, sites, kept) {
    this.#holds = holds;
    this.#sites = sites;
    this.#kept = kept;
  }

  /** A thread asks for a lock and does nothing else meanwhile: it comes after all that the thread holds. */
  blocking(info, trace) {
    const { active } = this.#holds;
    if (active.length > 0 && info.isOrdered) this.#note(active, info, trace);
  }

  /** A promise for a lock is asked for. Returns the sighting of what it may be inside of; null if that is nothing. */
  awaiting(info, trace) {
    const { active, marked } = this.#holds;
    if (marked === 0 || !info.isOrdered || !active.some((hold) => this.#isWanted(hold, info))) return null;
    const serials = enclosing().filter((serial) => this.#holds.bySerial(serial)?.around != null);
    return serials.length === 0 ? null : new Sighting(this, info, trace, serials);
  }

  #isWanted(hold, info) {
    if (hold.around === null || !hold.info.isOrdered) return false;
    const pair = pairOf(hold.info, info);
    if (this.#known.has(pair)) return false;
    const tries = (this.#tries.get(pair) ?? 0) + 1;
    this.#tries.set(pair, tries);
    return tries <= FIRST_TRIES || (tries & (tries - 1)) === 0;
  }

  /** What was confirmed is inside of these. */
  note(serials, info, trace) {
    const inside = new Set(serials);
    for (const serial of inside) for (const more of this.#holds.bySerial(serial)?.around ?? []) inside.add(more);
    const holds = this.#holds.active.filter(({ serial, around }) => around !== null && inside.has(serial));
    this.#note(holds, info, trace);
  }

  #note(holds, info, trace) {
    for (const hold of holds) {
      if (!hold.info.isOrdered || (hold.info.class === info.class && hold.info.id === info.id)) continue;
      // A lock that is held at both edges of a circle keeps it from closing.
      const gates = [];
      if (holds.length > 1) {
        for (const { info: other, isExclusive } of holds) {
          if (isExclusive && other.isOrdered && other.class !== hold.info.class && other.class !== info.class)
            gates.push(other.id);
        }
      }
      const pair = pairOf(hold.info, info);
      const key = gates.length === 0 ? pair : `${pair} ${gates}`;
      if (this.#known.has(pair) || this.#known.has(key)) continue;
      if (!hold.info.keep(this.#kept) || !info.keep(this.#kept)) continue;
      const locked = typeof trace === 'number' ? trace : this.#sites.read(trace);
      binding.doctorEdge(threadId, hold.info.id, info.id, this.#holds.siteOf(hold), locked, gates);
      if (this.#known.size >= MOST_KNOWN) this.#known.clear();
      this.#known.add(key);
      this.#tries.delete(pair);
    }
  }
}

exports.LockOrder = LockOrder;
