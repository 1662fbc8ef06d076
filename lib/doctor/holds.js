// What this thread holds, where from, and in which task. The core reads the slots, also while the thread is blocked.

const { AsyncLocalStorage, executionAsyncId } = require('node:async_hooks');
const { threadId } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { Flows, Grant } = require('./flows.js');

const { DOCTOR_SLOTS: SLOTS, DOCTOR_SLOT_LENGTH: LENGTH } = binding;
/** A serial is the thread and a count. */
const SERIALS = 2 ** 32;

/** Whether the runtime tells the runs of a thread's code apart. */
const knowsRuns = process.versions.bun === undefined && process.versions.deno === undefined;

/** Of an asynchronous context: the hold whose function made it, and the context around that. */
class Task {
  constructor(parent) {
    this.parent = parent;
    this.hold = null;
  }

  isInside(task) {
    for (let at = this; at !== null; at = at.parent) if (at === task) return true;
    return false;
  }
}

/** One hold. */
class TrackedHold {
  /** Whether it is still held. */
  isActive = true;
  slot = -1;

  constructor(serial, info, address, isExclusive, site, task, segment) {
    this.serial = serial;
    this.info = info;
    this.address = address;
    this.isExclusive = isExclusive;
    this.site = site;
    /** The task in which it was locked; null for none. */
    this.task = task;
    /** The run of the thread's code, without a turn of its loop between, in which it was locked. */
    this.segment = segment;
    /** The task whose function it ends with; null for one that is freed by a call. */
    this.owner = null;
    /** The promise by which it came. */
    this.grant = null;
    this.since = 0;
  }

  /** What stands for it where it was locked by a call. */
  ownGrant() {
    if (this.grant === null) {
      this.grant = new Grant();
      this.grant.hold = this;
    }
    return this.grant;
  }
}

/** The slots, and behind them the time, which the core keeps: `performance.now()` takes longer than a lock. */
const CLOCK = SLOTS * LENGTH;
const newSlots = () => {
  const slots = new Float64Array(new SharedArrayBuffer(8 * (CLOCK + 1)));
  slots[CLOCK] = performance.now();
  return slots;
};

/** The holds of this thread. */
class Holds {
  slots = newSlots();
  /** In order of their begin. */
  active = [];
  #free = Array.from({ length: SLOTS }, (_, index) => (SLOTS - 1 - index) * LENGTH);
  #next = 1;
  #storage = new AsyncLocalStorage();
  /** Its hook is also what makes Node.js, from 24 on, tell the reactions of promises apart. Null where there are no hooks. */
  flows = knowsRuns ? new Flows(this.active) : null;
  #longHoldMs;
  /** The number of the current run, where the runtime has none; it ends with the microtask that is queued when it begins. */
  #run = 1;
  #isRunOpen = false;

  constructor(longHoldMs) {
    this.#longHoldMs = longHoldMs;
    this.flows?.start();
  }

  stop() {
    this.flows?.stop();
    this.#storage.disable();
  }

  /** The task whose code runs; null for none. */
  get task() {
    return this.#storage.getStore() ?? null;
  }

  /** Which run of code this is. */
  get segment() {
    if (knowsRuns) return executionAsyncId();
    if (!this.#isRunOpen) {
      this.#isRunOpen = true;
      settled.then(() => {
        this.#isRunOpen = false;
        this.#run += 1;
      });
    }
    return this.#run;
  }

  /** Runs a function in a task. */
  runIn(task, fn, ...args) {
    return this.#storage.run(task, fn, ...args);
  }

  push(info, address, isExclusive, site, task = this.task) {
    const serial = threadId * SERIALS + this.#next++;
    const hold = new TrackedHold(serial, info, address, isExclusive, site, task, this.segment);
    hold.since = this.slots[CLOCK];
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
    slots[slot + 2] = hold.site;
    slots[slot + 3] = hold.since;
    slots[slot + 4] = hold.isExclusive ? 1 : 0;
    slots[slot + 5] = hold.address;
    // Last: it says that the rest is there.
    slots[slot] = hold.serial;
  }

  #hide(hold) {
    if (hold.slot < 0) return;
    this.slots[hold.slot] = 0;
    this.#free.push(hold.slot);
    hold.slot = -1;
  }

  end(hold) {
    if (!hold.isActive) return;
    hold.isActive = false;
    if (hold.grant !== null) this.flows.forget(hold.grant);
    this.#hide(hold);
    const { active } = this;
    if (active[active.length - 1] === hold) active.pop();
    else active.splice(active.indexOf(hold), 1);
    const heldMs = this.slots[CLOCK] - hold.since;
    if (heldMs >= this.#longHoldMs) binding.doctorLongHold(threadId, hold.serial, hold.info.id, hold.site);
  }

  /** The last hold of what is at an address; undefined if none is known. */
  find(address, isExclusive) {
    const { active } = this;
    for (let index = active.length - 1; index >= 0; index--) {
      const hold = active[index];
      if (hold.address === address && (isExclusive === undefined || hold.isExclusive === isExclusive)) return hold;
    }
    return undefined;
  }

  /** It is not held for a while, though it is not over: a condition's wait. */
  suspend(hold) {
    this.#hide(hold);
    const { active } = this;
    active.splice(active.indexOf(hold), 1);
  }

  resume(hold) {
    if (!hold.isActive) return;
    hold.since = this.slots[CLOCK];
    this.active.push(hold);
    this.#show(hold);
  }

  setMode(hold, isExclusive) {
    hold.isExclusive = isExclusive;
    if (hold.slot >= 0) this.slots[hold.slot + 4] = isExclusive ? 1 : 0;
  }

  /** The serials of those in whose context this code runs. */
  context() {
    const { segment, task } = this;
    const isOfContext = (hold) => {
      if (hold.owner !== null) return task?.isInside(hold.owner) ?? false;
      if (this.flows !== null && (hold.segment === segment || this.flows.has(hold))) return true;
      return hold.task === null ? this.flows === null : (task?.isInside(hold.task) ?? false);
    };
    return this.active.filter(isOfContext).map((hold) => hold.serial);
  }
}

const settled = Promise.resolve();

exports.Holds = Holds;
exports.newSlots = newSlots;
exports.Task = Task;
