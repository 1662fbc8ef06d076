// The methods that take the place of the package's own while the doctor is on. Each calls the original, and notes what that did.

const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { isThenable } = require('../arguments.js');
const { Grant } = require('./flows.js');
const { MARK, awaitingCode } = require('./sites.js');
const { Task } = require('./holds.js');
const { chain } = require('./waits.js');

const { Ask, OWNER, SHARED } = binding;

/** Whether a timeout, or the options of a verb, leave the wait without an end of its own. */
function isEndless(options) {
  if (options === undefined) return true;
  if (typeof options === 'number') return !(options < Infinity);
  if (typeof options !== 'object' || options === null) return false;
  const { timeout, signal } = options;
  return signal === undefined && (timeout === undefined || !(timeout < Infinity));
}

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

/** What is swapped, for one thread. */
class Methods {
  #locks;
  #sites;
  #holds;
  #order;
  #waits;
  #leaks;
  /** Whether a method of the package runs, whose calls of others are its own affair. */
  #isInside = false;

  constructor({ locks, sites, holds, order, waits, leaks }) {
    this.#locks = locks;
    this.#sites = sites;
    this.#holds = holds;
    this.#order = order;
    this.#waits = waits;
    this.#leaks = leaks;
  }

  #inside(original, self, one, two, three) {
    this.#waits.last = null;
    this.#isInside = true;
    try {
      return original.call(self, one, two, three);
    } finally {
      this.#isInside = false;
    }
  }

  /** Where the hold that begins now was asked for: if it was waited for, that is known. */
  #site(info) {
    const { last } = this.#waits;
    if (last !== null && last.info.id === info.id) return last.site;
    return info.isSampled() ? this.#sites.capture() : 0;
  }

  #push(info, isExclusive, address) {
    return this.#holds.push(info, address, isExclusive, this.#site(info));
  }

  #take(grant, hold) {
    grant.hold = hold;
    if (this.#holds.flows !== null) hold.grant = grant;
  }

  /** A hold that a call has taken, with which the code after it goes on. */
  #begin(info, isExclusive, address, guard) {
    const hold = this.#push(info, isExclusive, address);
    if (this.#leaks !== null && typeof guard === 'object' && guard !== null) this.#leaks.register(guard, hold, guard);
    return hold;
  }

  /** `lock`, `acquire` and their `try` forms. */
  blocking(original, { wordOf, isExclusive, isTry }) {
    const doctor = this;
    return function (options) {
      if (doctor.#isInside) return original.call(this, options);
      const info = doctor.#locks.ofWord(wordOf(this));
      if (!isTry && doctor.#order !== null && isEndless(options)) doctor.#order.look(info, true)?.tellSure();
      const result = doctor.#inside(original, this, options);
      if (result !== false && result !== null) doctor.#begin(info, isExclusive, info.address, result);
      return result;
    };
  }

  /** `lockAsync` and `acquireAsync`. */
  async(original, { wordOf, isExclusive }) {
    const doctor = this;
    return function (options) {
      if (doctor.#isInside) return original.call(this, options);
      const word = wordOf(this);
      const info = doctor.#locks.ofWord(word);
      const sighting = isEndless(options) ? (doctor.#order?.look(info, false) ?? null) : null;
      const count = () => countHeld(word, isExclusive);
      const call = () => doctor.#inside(original, this, options);
      return doctor.#await(info, isExclusive, info.address, sighting, count, call);
    };
  }

  /** A promise of a hold, which may be granted already. The code that awaits it goes on with the hold. */
  #await(info, isExclusive, address, sighting, count, call) {
    const { flows } = this.#holds;
    const grant = new Grant();
    const ask = () => this.#ask(info, isExclusive, address, sighting, count, call, grant);
    if (flows === null) return ask();
    const promise = flows.awaitOf(grant, ask);
    if (grant.hold === null && !grant.isPending) flows.forget(grant);
    return promise;
  }

  #ask(info, isExclusive, address, sighting, count, call, grant) {
    sighting?.tellSure();
    const { pending } = thread;
    const before = count();
    const promise = call();
    const seen = this.#waits.last;
    if (seen !== null && thread.pending > pending) {
      const { site } = seen;
      const { task } = this.#holds;
      seen.sighting = sighting;
      grant.isPending = true;
      seen.refused = chain(seen.refused, () => this.#holds.flows?.forget(grant));
      seen.granted = chain(seen.granted, () => {
        const hold = this.#holds.push(info, address, isExclusive, site, task);
        // The code that goes on with it runs later.
        hold.segment = -1;
        this.#take(grant, hold);
        if (this.#leaks !== null) promise.then((guard) => this.#watchGuard(guard, hold), ignore);
      });
    } else if (count() > before) {
      const hold = this.#push(info, isExclusive, address);
      this.#take(grant, hold);
      if (this.#leaks !== null) promise.then((guard) => this.#watchGuard(guard, hold), ignore);
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

  #watchGuard(guard, hold) {
    if (typeof guard === 'object' && guard !== null) this.#leaks.register(guard, hold, guard);
  }

  /** `unlock` of a lock. */
  unlock(original, { wordOf, isExclusive }) {
    const doctor = this;
    return function () {
      const result = original.call(this);
      if (doctor.#isInside) return result;
      doctor.#end(doctor.#locks.ofWord(wordOf(this)).address, isExclusive);
      return result;
    };
  }

  /** `unlock` of a guard. */
  unlockGuard(original, { wordOf }) {
    const doctor = this;
    return function () {
      const result = original.call(this);
      if (!result) return result;
      doctor.#end(
        doctor.#locks.ofWord(wordOf(this)).address,
        this.mode === undefined ? true : this.mode === 'exclusive',
      );
      doctor.#leaks?.unregister(this);
      return result;
    };
  }

  #end(address, isExclusive) {
    const hold = this.#holds.find(address, isExclusive);
    if (hold !== undefined) this.#holds.end(hold);
  }

  /** `executeLockedSync` and `runSync`. */
  executeSync(original, { wordOf, isExclusive, isOnce }) {
    const doctor = this;
    return function (fn, options) {
      const info = typeof fn === 'function' && !doctor.#isInside ? doctor.#locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined || (isOnce && this.isDone)) return original.call(this, fn, options);
      if (isEndless(options)) doctor.#order?.look(info, true)?.tellSure();
      const run = (...args) => {
        doctor.#isInside = false;
        const hold = doctor.#begin(info, isExclusive, info.address);
        try {
          return fn(...args);
        } finally {
          doctor.#holds.end(hold);
          doctor.#isInside = true;
        }
      };
      return doctor.#inside(original, this, run, options);
    };
  }

  /** `executeLocked` and `run`. */
  execute(original, { wordOf, isExclusive, isOnce }) {
    const doctor = this;
    return function (fn, options) {
      const info = typeof fn === 'function' && !doctor.#isInside ? doctor.#locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined || (isOnce && this.isDone)) return original.call(this, fn, options);
      const sighting = isEndless(options) ? (doctor.#order?.look(info, false) ?? null) : null;
      sighting?.tellSure();
      const site = info.isSampled() ? doctor.#sites.capture() : 0;
      const around = doctor.#holds.task;
      const runTask = (...args) => doctor.#runTask(info, isExclusive, site, around, fn, args);
      // The first time, so much later that whoever called in then() awaits it by now.
      const confirmAndRun = async (...args) => {
        for (let turn = 0; turn < TURNS; turn++) await undefined;
        sighting.confirm(awaitingCode());
        return runTask(...args);
      };
      const run = sighting?.isOpen ? confirmAndRun : runTask;
      const promise = doctor.#inside(original, this, run, options);
      if (doctor.#waits.last !== null) doctor.#waits.last.sighting = sighting;
      return promise;
    };
  }

  /** Runs a function that holds, as a task. */
  #runTask(info, isExclusive, site, around, fn, args) {
    const holds = this.#holds;
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

  /** `enter`: the callback is a task that nobody awaits. */
  enter(original, { wordOf }) {
    const doctor = this;
    return function (callback) {
      const info = typeof callback === 'function' ? doctor.#locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined) return original.call(this, callback);
      const around = doctor.#holds.task;
      const run = (token) => {
        const task = new Task(around);
        const hold = doctor.#holds.find(info.address, true);
        if (hold !== undefined) {
          task.hold = hold;
          hold.owner = task;
        }
        doctor.#holds.runIn(task, callback, token);
      };
      original.call(this, run);
    };
  }

  /** The methods of a condition, with the lock as their first argument: it is not held meanwhile. */
  wait(original) {
    const doctor = this;
    return function (lock, one, two) {
      const hold = doctor.#heldOf(lock);
      if (hold === undefined) return original.call(this, lock, one, two);
      doctor.#holds.suspend(hold);
      try {
        return original.call(this, lock, one, two);
      } finally {
        doctor.#holds.resume(hold);
      }
    };
  }

  waitAsync(original) {
    const doctor = this;
    return async function (lock, one, two) {
      const hold = doctor.#heldOf(lock);
      if (hold === undefined) return await original.call(this, lock, one, two);
      doctor.#holds.suspend(hold);
      try {
        return await original.call(this, lock, one, two);
      } finally {
        doctor.#holds.resume(hold);
      }
    };
  }

  #heldOf(lock) {
    const info = this.#locks.ofObject(lock);
    return info === undefined ? undefined : this.#holds.find(info.address, true);
  }

  /** `downgrade` and `tryUpgrade`, of an RwLock or its guard. */
  changeMode(original, { wordOf, isExclusive }) {
    const doctor = this;
    return function () {
      const result = original.call(this);
      const info = result === false ? undefined : doctor.#locks.ofWord(wordOf(this));
      const hold = info === undefined ? undefined : doctor.#holds.find(info.address, !isExclusive);
      if (hold !== undefined) doctor.#holds.setMode(hold, isExclusive);
      return result;
    };
  }

  /** `lock(index)` and `tryLock(index)` of a table. */
  lockAt(original, { wordOf, isTry }) {
    const doctor = this;
    return function (index, timeout) {
      const info = doctor.#isInside ? undefined : doctor.#locks.ofWord(wordOf(this));
      if (info === undefined) return original.call(this, index, timeout);
      if (!isTry && isEndless(timeout)) doctor.#order?.look(info, true)?.tellSure();
      const result = doctor.#inside(original, this, index, timeout);
      if (result) doctor.#begin(info, true, info.address + 4 * index);
      return result;
    };
  }

  lockAtAsync(original, { wordOf }) {
    const doctor = this;
    return function (index, options) {
      const info = doctor.#isInside ? undefined : doctor.#locks.ofWord(wordOf(this));
      if (info === undefined) return original.call(this, index, options);
      const sighting = isEndless(options) ? (doctor.#order?.look(info, false) ?? null) : null;
      const address = info.address + 4 * index;
      const count = () => (isIndexOf(this, index) && this.isHeldByThisThread(index) ? 1 : 0);
      const call = () => doctor.#inside(original, this, index, options);
      return doctor.#await(info, true, address, sighting, count, call);
    };
  }

  unlockAt(original, { wordOf }) {
    const doctor = this;
    return function (index) {
      const info = doctor.#isInside ? undefined : doctor.#locks.ofWord(wordOf(this));
      const result = doctor.#inside(original, this, index);
      if (info !== undefined) doctor.#end(info.address + 4 * index, true);
      return result;
    };
  }

  // What lock-all.js tells.

  wantsAll({ words }, isEndless, isAsync = false) {
    if (this.#order === null || !isEndless) return;
    for (const word of words) {
      const sighting = this.#order.look(this.#locks.ofWord(word), !isAsync);
      sighting?.tellSure();
    }
  }

  tookAll(_, words, guards) {
    words.forEach((word, index) => {
      const info = this.#locks.ofWord(word);
      this.#begin(info, guards[index].mode !== 'shared', info.address, guards[index]);
    });
  }
}

const ignore = () => {};
const isIndexOf = ({ length }, index) => Number.isInteger(index) && index >= 0 && index < length;

/** How often this thread holds what is at `word`. */
function countHeld(word, isExclusive) {
  if (isExclusive) return (Atomics.load(word, 0) & (OWNER | SHARED)) === thread.id ? 1 : 0;
  const [raw, guarded] = slotFor(word, Ask.Read);
  return raw + guarded;
}

exports.Methods = Methods;
