// Which locks are held while others are locked. Only the first sighting of two classes costs anything: the rest of it is a look
// into a set.

const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { knowsChains } = require('./chain.js');
const { awaitingCode } = require('./sites.js');

/** Two classes in one number. */
const CLASSES = 2 ** 24;
/** A pair that could not be confirmed so often is tried only each time that the number of tries is a power of two. */
const FIRST_TRIES = 16;

/** Holds of which some may be *before* what is locked now; told of once it is known which. */
class Sighting {
  #order;
  #info;
  #site;
  #sure;
  /** Of tasks, whose functions must await this. */
  #perhaps;
  /** By calls whose functions must. */
  #flows;

  constructor(order, info, site, sure, perhaps, flows) {
    this.#order = order;
    this.#info = info;
    this.#site = site;
    this.#sure = sure;
    this.#perhaps = perhaps;
    this.#flows = flows;
  }

  /** Whether it has to be known who awaits this. */
  get isOpen() {
    return this.#perhaps.length > 0 || this.#flows.length > 0;
  }

  tellSure() {
    for (const hold of this.#sure) this.#order.add(hold, this.#info, this.#site);
    this.#sure = [];
  }

  /** With what awaits this; see `awaitingCode`. */
  confirm(awaiting) {
    this.tellSure();
    const left = [];
    for (const hold of this.#perhaps) {
      const { serial } = (hold.owner ?? hold.task).hold;
      if (awaiting.holds.includes(serial)) this.#order.add(hold, this.#info, this.#site);
      else left.push(hold);
    }
    this.#perhaps = left;
    this.#flows = this.#flows.filter((hold) => {
      const isAwaiting = awaiting.functions.includes(this.#order.functionOf(hold));
      if (isAwaiting) this.#order.add(hold, this.#info, this.#site);
      return !isAwaiting;
    });
  }
}

class LockOrder {
  #holds;
  #sites;
  #kept;
  /** Pairs of classes whose places are known. */
  #known = new Set();
  #tries = new Map();

  constructor(holds, sites, kept) {
    this.#holds = holds;
    this.#sites = sites;
    this.#kept = kept;
  }

  /** A lock is asked for. Returns what is to be told of it, or null. `isBlocking`: no other code of the thread runs meanwhile. */
  look(info, isBlocking) {
    const { active } = this.#holds;
    if (active.length === 0) return null;
    const segment = this.#holds.segment;
    let sure = null;
    let perhaps = null;
    let flows = null;
    let task;
    for (const hold of active) {
      if (hold.info.class === info.class || this.#known.has(hold.info.class * CLASSES + info.class)) continue;
      if (hold.owner === null && hold.segment === segment) {
        sure ??= [];
        sure.push(hold);
        continue;
      }
      if (hold.owner === null && this.#holds.flows?.has(hold)) {
        if (!this.#mayTry(hold.info, info)) continue;
        flows ??= [];
        flows.push(hold);
        continue;
      }
      task ??= this.#holds.task;
      if (task === null) continue;
      const around = hold.owner ?? hold.task;
      // Of a task's own call of `lock()`, only what it locks itself comes after it.
      const isAround = hold.owner === null ? around === task : task.isInside(around);
      if (around === null || around.hold === null || !isAround) continue;
      if (isBlocking || !knowsChains) {
        sure ??= [];
        sure.push(hold);
      } else if (this.#mayTry(hold.info, info)) {
        perhaps ??= [];
        perhaps.push(hold);
      }
    }
    if (sure === null && perhaps === null && flows === null) return null;
    const sighting = new Sighting(this, info, this.#sites.capture(), sure ?? [], perhaps ?? [], flows ?? []);
    // The thread does nothing else before this is over.
    if (isBlocking && flows !== null) sighting.confirm(awaitingCode());
    return sighting;
  }

  /** The function that has locked; undefined if it is not known, which is for the next time. */
  functionOf(hold) {
    if (hold.site === 0) hold.info.wantSites();
    return this.#sites.functionAt(hold.site);
  }

  add(hold, info, site) {
    if (!hold.info.keep(this.#kept) || !info.keep(this.#kept)) return;
    if (hold.site === 0) hold.info.wantSites();
    if (binding.doctorEdge(threadId, hold.info.id, info.id, hold.site, site)) {
      const pair = hold.info.class * CLASSES + info.class;
      this.#known.add(pair);
      this.#tries.delete(pair);
    }
  }

  #mayTry(from, to) {
    const pair = from.class * CLASSES + to.class;
    const tries = (this.#tries.get(pair) ?? 0) + 1;
    this.#tries.set(pair, tries);
    return tries <= FIRST_TRIES || (tries & (tries - 1)) === 0;
  }
}

exports.LockOrder = LockOrder;
