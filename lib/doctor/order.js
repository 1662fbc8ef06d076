// Which locks are held while others are locked. Only the first sighting of two classes costs anything: the rest of it is a look
// into a set.

const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { enclosing } = require('./inside.js');

/** Two classes in one number. */
const CLASSES = 2 ** 24;
/** A pair that could not be confirmed so often is tried only each time that the number of tries is a power of two. */
const FIRST_TRIES = 16;
/** The number of sightings that are known by heart. */
const MOST_KNOWN = 100_000;
/** Inside of more locks the order of the next is not noted: as gates of each other they take the cube of their number. */
const MOST_HELD = 64;

const pairOf = (from, to) => from.class * CLASSES + to.class;

class LockOrder {
  #holds;
  #sites;
  #locks;
  /** Pairs of classes, and what else was held, which are not to be reported again. */
  #known = new Set();
  #tries = new Map();

  constructor(holds, sites, locks) {
    this.#holds = holds;
    this.#sites = sites;
    this.#locks = locks;
  }

  /** A thread asks for a lock and does nothing else meanwhile: it comes after all that the thread holds. */
  blocking(info, trace) {
    const { active } = this.#holds;
    if (active.length > 0 && info.isOrdered) this.#note(active, info, trace);
  }

  /**
   * A promise for a lock is asked for. Returns the sighting of what it may be inside of: an order, once it is known that the functions
   * of those holds await it. Null if that is nothing.
   */
  awaiting(info, trace) {
    const { active, marked } = this.#holds;
    if (marked === 0 || !info.isOrdered || !active.some((hold) => this.#isWanted(hold, info))) return null;
    let serials = enclosing().filter((serial) => this.#holds.bySerial(serial)?.around != null);
    if (serials.length === 0) return null;
    /** With the holds that are known to await it, or what came of it: those that the running code is inside of. */
    const confirm = (awaiting) => {
      if (serials.length === 0) return;
      const inside = awaiting ?? enclosing();
      const known = serials.filter((serial) => inside.includes(serial));
      if (known.length === 0) return;
      serials = [];
      this.#confirmed(known, info, trace);
    };
    return { confirm };
  }

  /** As `awaiting`, of several that are asked for together. */
  awaitingAll(infos, trace) {
    const all = infos.map((info) => this.awaiting(info, trace)).filter((one) => one !== null);
    if (all.length === 0) return null;
    return {
      confirm(awaiting) {
        for (const one of all) one.confirm(awaiting);
      },
    };
  }

  #isWanted(hold, info) {
    if (hold.around === null || !hold.info.isOrdered) return false;
    const pair = pairOf(hold.info, info);
    if (this.#known.has(pair)) return false;
    const tries = (this.#tries.get(pair) ?? 0) + 1;
    this.#tries.set(pair, tries);
    return tries <= FIRST_TRIES || (tries & (tries - 1)) === 0;
  }

  /** A confirmed hold is inside of these. */
  #confirmed(serials, info, trace) {
    const inside = this.#holds.withAround(serials);
    const holds = this.#holds.active.filter(({ serial, around }) => around !== null && inside.has(serial));
    this.#note(holds, info, trace);
  }

  #note(all, info, trace) {
    const holds = all.filter((hold) => hold.info.isOrdered);
    if (holds.length > MOST_HELD) return;
    const { kept } = this.#locks;
    for (const hold of holds) {
      if (hold.info.class === info.class && hold.info.id === info.id) continue;
      const pair = pairOf(hold.info, info);
      if (this.#known.has(pair)) continue;
      const isOther = ({ class: other }) => other !== hold.info.class && other !== info.class;
      // A lock that is held at both edges of a circle keeps it from closing.
      const gates = holds
        .filter((gate) => gate.isExclusive && isOther(gate.info))
        .map((gate) => this.#locks.gateOf(gate));
      const key = gates.length === 0 ? pair : `${pair} ${gates}`;
      if (this.#known.has(key)) continue;
      if (!hold.info.keep(kept) || !info.keep(kept)) continue;
      const locked = typeof trace === 'number' ? trace : this.#sites.read(trace);
      binding.doctorEdge(threadId, hold.info.id, info.id, this.#holds.siteOf(hold), locked, gates);
      if (this.#known.size >= MOST_KNOWN) this.#known.clear();
      this.#known.add(key);
      this.#tries.delete(pair);
    }
  }
}

exports.LockOrder = LockOrder;
