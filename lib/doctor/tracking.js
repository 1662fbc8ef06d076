// What the methods that take the place of the package's have in common: they note which holds begin and end, in which order and
// in which task.

const { thread } = require('../engine/thread.js');
const { isThenable } = require('../arguments.js');
const { Grant } = require('./flows.js');
const { Task } = require('./holds.js');
const { MARK, awaitingCode } = require('./sites.js');
const { chain } = require('./waits.js');

/** A promise that is returned in then() is awaited so many microtasks later. */
const TURNS = 3;
const same = (value) => value;

/** An async function with the name by which stacks show who awaits. */
function markedAwait(hold, end) {
  const name = `${MARK}${hold.serial}`;
  // Nothing else may wait for its promise: of one with two reactions V8 does not tell who awaits it.
  const marked = {
    [name]: async (promise) => {
      try {
        return await promise;
      } finally {
        end();
      }
    },
  };
  return marked[name];
}

/** What is noted of one thread. */
class Tracking {
  locks;
  sites;
  holds;
  order;
  waits;
  leaks;
  /** Whether a method of the package runs, whose calls of others are its own affair. */
  isInside = false;

  constructor({ locks, sites, holds, order, waits, leaks }) {
    this.locks = locks;
    this.sites = sites;
    this.holds = holds;
    this.order = order;
    this.waits = waits;
    this.leaks = leaks;
  }

  inside(original, self, one, two, three) {
    this.waits.last = null;
    this.isInside = true;
    try {
      return original.call(self, one, two, three);
    } finally {
      this.isInside = false;
    }
  }

  /** As `inside`, for a method that counts its arguments. */
  insideWith(original, self, args) {
    return this.inside(() => original.apply(self, args), undefined);
  }

  /** Where the hold that begins now was asked for: if it was waited for, that is known. */
  site(info) {
    const { last } = this.waits;
    if (last !== null && last.info.id === info.id) return last.site;
    return info.isSampled() ? this.sites.capture() : 0;
  }

  push(info, isExclusive, address) {
    return this.holds.push(info, address, isExclusive, this.site(info));
  }

  take(grant, hold) {
    grant.hold = hold;
    if (this.holds.flows !== null) hold.grant = grant;
  }

  /** A hold that a call has taken, with which the code after it goes on. */
  begin(info, isExclusive, address, guard) {
    const hold = this.push(info, isExclusive, address);
    if (this.leaks !== null && typeof guard === 'object' && guard !== null) this.leaks.register(guard, hold, guard);
    return hold;
  }

  /** A lock is asked for. Returns what is to be told of its order once it is known who awaits this, or null. */
  look(info, isBlocking) {
    const sighting = this.order?.look(info, isBlocking) ?? null;
    sighting?.tellSure();
    return sighting;
  }

  /** A promise of a hold, which may be granted already. The code that awaits it goes on with the hold. */
  await(info, isExclusive, address, sighting, count, call) {
    const { flows } = this.holds;
    const grant = new Grant();
    const ask = () => this.ask(info, isExclusive, address, sighting, count, call, grant);
    if (flows === null) return ask();
    const promise = flows.awaitOf(grant, ask);
    if (grant.hold === null && !grant.isPending) flows.forget(grant);
    return promise;
  }

  ask(info, isExclusive, address, sighting, count, call, grant) {
    const { pending } = thread;
    const before = count();
    const promise = call();
    const seen = this.waits.last;
    if (seen !== null && thread.pending > pending) {
      const { site } = seen;
      const { task } = this.holds;
      seen.sighting = sighting;
      grant.isPending = true;
      seen.refused = chain(seen.refused, () => this.holds.flows?.forget(grant));
      seen.granted = chain(seen.granted, () => {
        const hold = this.holds.push(info, address, isExclusive, site, task);
        // The code that goes on with it runs later.
        hold.segment = -1;
        this.take(grant, hold);
        if (this.leaks !== null) promise.then((guard) => this.watchGuard(guard, hold), ignore);
      });
    } else if (count() > before) {
      const hold = this.push(info, isExclusive, address);
      this.take(grant, hold);
      if (this.leaks !== null) promise.then((guard) => this.watchGuard(guard, hold), ignore);
    }
    if (sighting === null || !sighting.isOpen) return promise;
    // The reaction that settles what the caller gets shows who awaits it.
    let settled = promise;
    for (let turn = 0; turn < TURNS; turn++) settled = settled.then(same);
    return settled.then((value) => {
      sighting.confirm(awaitingCode());
      return value;
    });
  }

  watchGuard(guard, hold) {
    if (typeof guard === 'object' && guard !== null) this.leaks.register(guard, hold, guard);
  }

  end(address, isExclusive) {
    const hold = this.holds.find(address, isExclusive);
    if (hold !== undefined) this.holds.end(hold);
  }

  /** Runs a function that holds, as a task. */
  runTask(info, isExclusive, site, around, fn, args) {
    const holds = this.holds;
    const task = new Task(around);
    const hold = holds.push(info, info.address, isExclusive, site, task);
    hold.owner = task;
    task.hold = hold;
    const end = () => holds.end(hold);
    let result;
    try {
      result = holds.runIn(task, fn, ...args);
    } catch (error) {
      end();
      throw error;
    }
    if (!isThenable(result)) {
      end();
      return result;
    }
    return markedAwait(hold, end)(result);
  }

  heldOf(lock) {
    const info = this.locks.ofObject(lock);
    return info === undefined ? undefined : this.holds.find(info.address, true);
  }

  // What lock-all.js tells.

  wantsAll({ words }, isEndless, isAsync = false) {
    if (!isEndless) return;
    for (const word of words) {
      this.look(this.locks.ofWord(word), !isAsync);
    }
  }

  tookAll(_, words, guards) {
    words.forEach((word, index) => {
      const info = this.locks.ofWord(word);
      this.begin(info, guards[index].mode !== 'shared', info.address, guards[index]);
    });
  }
}

const ignore = () => {};

exports.Tracking = Tracking;
exports.TURNS = TURNS;
