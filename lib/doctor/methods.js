// The methods that take the place of the package's own while the doctor is on. Each calls the original, and notes what that did.

const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { Task } = require('./holds.js');
const { awaitingCode } = require('./sites.js');
const { TURNS } = require('./tracking.js');

const { Ask, OWNER, SHARED } = binding;

/** Whether a timeout, or the options of a verb, leave the wait without an end of its own. */
function isEndless(options) {
  if (options === undefined) return true;
  if (typeof options === 'number') return !(options < Infinity);
  if (typeof options !== 'object' || options === null) return false;
  const { timeout, signal } = options;
  return signal === undefined && (timeout === undefined || !(timeout < Infinity));
}

/** By their names in swap.js. Each gets what is noted, the original, and what there is to know of it. */
const METHODS = {
  /** `lock`, `acquire` and their `try` forms. */
  blocking(tracking, original, { wordOf, isExclusive, isTry }) {
    return function (options) {
      if (tracking.isInside) return original.call(this, options);
      const info = tracking.locks.ofWord(wordOf(this));
      if (!isTry && isEndless(options)) tracking.look(info, true);
      const result = tracking.inside(original, this, options);
      if (result !== false && result !== null) tracking.begin(info, isExclusive, info.address, result);
      return result;
    };
  },

  /** `lockAsync` and `acquireAsync`. */
  async(tracking, original, { wordOf, isExclusive }) {
    return function (options) {
      if (tracking.isInside) return original.call(this, options);
      const word = wordOf(this);
      const info = tracking.locks.ofWord(word);
      const sighting = isEndless(options) ? tracking.look(info, false) : null;
      const count = () => countHeld(word, isExclusive);
      const call = () => tracking.inside(original, this, options);
      return tracking.await(info, isExclusive, info.address, sighting, count, call);
    };
  },

  /** `unlock` of a lock. */
  unlock(tracking, original, { wordOf, isExclusive }) {
    return function () {
      const result = original.call(this);
      if (tracking.isInside) return result;
      tracking.end(tracking.locks.ofWord(wordOf(this)).address, isExclusive);
      return result;
    };
  },

  /** `unlock` of a guard. */
  unlockGuard(tracking, original, { wordOf }) {
    return function () {
      const result = original.call(this);
      if (!result) return result;
      tracking.end(
        tracking.locks.ofWord(wordOf(this)).address,
        this.mode === undefined ? true : this.mode === 'exclusive',
      );
      tracking.leaks?.unregister(this);
      return result;
    };
  },

  /** `executeLockedSync` and `runSync`. */
  executeSync(tracking, original, { wordOf, isExclusive, isOnce }) {
    return function (fn, options) {
      const info = typeof fn === 'function' && !tracking.isInside ? tracking.locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined || (isOnce && this.isDone)) return original.call(this, fn, options);
      if (isEndless(options)) tracking.look(info, true);
      const run = (...args) => {
        tracking.isInside = false;
        const hold = tracking.begin(info, isExclusive, info.address);
        try {
          return fn(...args);
        } finally {
          tracking.holds.end(hold);
          tracking.isInside = true;
        }
      };
      return tracking.inside(original, this, run, options);
    };
  },

  /** `executeLocked` and `run`. */
  execute(tracking, original, { wordOf, isExclusive, isOnce }) {
    return function (fn, options) {
      const info = typeof fn === 'function' && !tracking.isInside ? tracking.locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined || (isOnce && this.isDone)) return original.call(this, fn, options);
      const sighting = isEndless(options) ? tracking.look(info, false) : null;
      const site = info.isSampled() ? tracking.sites.capture() : 0;
      const around = tracking.holds.task;
      const runTask = (...args) => tracking.runTask(info, isExclusive, site, around, fn, args);
      // The first time, so much later that whoever called in then() awaits it by now.
      const confirmAndRun = async (...args) => {
        for (let turn = 0; turn < TURNS; turn++) await undefined;
        sighting.confirm(awaitingCode());
        return runTask(...args);
      };
      const run = sighting?.isOpen ? confirmAndRun : runTask;
      const promise = tracking.inside(original, this, run, options);
      if (tracking.waits.last !== null) tracking.waits.last.sighting = sighting;
      return promise;
    };
  },

  /** `enter`: the callback is a task that nobody awaits. */
  enter(tracking, original, { wordOf }) {
    return function (callback) {
      const info = typeof callback === 'function' ? tracking.locks.ofWord(wordOf(this)) : undefined;
      if (info === undefined) return original.call(this, callback);
      const around = tracking.holds.task;
      const run = (token) => {
        const task = new Task(around);
        const hold = tracking.holds.find(info.address, true);
        if (hold !== undefined) {
          task.hold = hold;
          hold.owner = task;
        }
        tracking.holds.runIn(task, callback, token);
      };
      original.call(this, run);
    };
  },

  /** The methods of a condition, with the lock as their first argument: it is not held meanwhile. */
  wait(tracking, original) {
    return function (lock, one, two) {
      const hold = tracking.heldOf(lock);
      if (hold === undefined) return original.call(this, lock, one, two);
      tracking.holds.suspend(hold);
      try {
        return original.call(this, lock, one, two);
      } finally {
        tracking.holds.resume(hold);
      }
    };
  },

  waitAsync(tracking, original) {
    return async function (lock, one, two) {
      const hold = tracking.heldOf(lock);
      if (hold === undefined) return await original.call(this, lock, one, two);
      tracking.holds.suspend(hold);
      try {
        return await original.call(this, lock, one, two);
      } finally {
        tracking.holds.resume(hold);
      }
    };
  },

  /** `downgrade` and `tryUpgrade`, of an RwLock or its guard. */
  changeMode(tracking, original, { wordOf, isExclusive }) {
    return function () {
      const result = original.call(this);
      const info = result === false ? undefined : tracking.locks.ofWord(wordOf(this));
      const hold = info === undefined ? undefined : tracking.holds.find(info.address, !isExclusive);
      if (hold !== undefined) tracking.holds.setMode(hold, isExclusive);
      return result;
    };
  },

  /** `lock(index)` and `tryLock(index)` of a table. */
  lockAt(tracking, original, { wordOf, isTry }) {
    return function (index, timeout) {
      const info = tracking.isInside ? undefined : tracking.locks.ofWord(wordOf(this));
      if (info === undefined) return original.call(this, index, timeout);
      if (!isTry && isEndless(timeout)) tracking.look(info, true);
      const result = tracking.inside(original, this, index, timeout);
      if (result) tracking.begin(info, true, info.address + 4 * index);
      return result;
    };
  },

  lockAtAsync(tracking, original, { wordOf }) {
    return function (index, options) {
      const info = tracking.isInside ? undefined : tracking.locks.ofWord(wordOf(this));
      if (info === undefined) return original.call(this, index, options);
      const sighting = isEndless(options) ? tracking.look(info, false) : null;
      const address = info.address + 4 * index;
      const count = () => (isIndexOf(this, index) && this.isHeldByThisThread(index) ? 1 : 0);
      const call = () => tracking.inside(original, this, index, options);
      return tracking.await(info, true, address, sighting, count, call);
    };
  },

  unlockAt(tracking, original, { wordOf }) {
    return function (index) {
      const info = tracking.isInside ? undefined : tracking.locks.ofWord(wordOf(this));
      const result = tracking.inside(original, this, index);
      if (info !== undefined) tracking.end(info.address + 4 * index, true);
      return result;
    };
  },
};

const isIndexOf = ({ length }, index) => Number.isInteger(index) && index >= 0 && index < length;

/** How often this thread holds what is at `word`. */
function countHeld(word, isExclusive) {
  if (isExclusive) return (Atomics.load(word, 0) & (OWNER | SHARED)) === thread.id ? 1 : 0;
  const [raw, guarded] = slotFor(word, Ask.Read);
  return raw + guarded;
}

exports.METHODS = METHODS;
