// What takes the place of the methods of LockManager and HeldLock. The engine knows their locks by name, and tells nothing of their
// waits: so they are seen here, from the outside.

const { thread } = require('../engine/thread.js');
const { Grant } = require('./flows.js');
const { askWhoAwaits, goesOnAs } = require('./chain.js');
const { awaitingCode } = require('./sites.js');
const { TURNS } = require('./tracking.js');

/** A request that blocked for less did not wait. */
const AT_ONCE_MS = 0.05;

/** The holds of held locks. */
const holdOf = new WeakMap();

/** What there is to know of a request; null if its arguments are for the original to refuse or convert. */
function toRequest(tracking, backend, name, options) {
  if (tracking.isInside || typeof name !== 'string' || typeof backend !== 'object') return null;
  if (options !== undefined && (typeof options !== 'object' || options === null)) return null;
  const { mode, ifAvailable, steal, signal, timeout } = options ?? {};
  const isTimed = timeout !== undefined && timeout < Infinity;
  return {
    info: tracking.locks.ofName(backend.space, name),
    isExclusive: mode !== 'shared',
    isEndless: !ifAvailable && !steal && !isTimed && signal === undefined,
  };
}

/** The begin of a hold whose object is known. */
function hold(tracking, { info, isExclusive }, lock, site, task) {
  const begun = tracking.holds.push(info, info.address, isExclusive, site, task);
  holdOf.set(lock, begun);
  return begun;
}

/** Blocks by `call`; returns what that returns, and the call site. */
function block(tracking, { info, isEndless, isExclusive }, call) {
  if (isEndless) tracking.look(info, true);
  const seen = tracking.waits.beginBlockingFor(info, isEndless, isExclusive);
  let isGranted = false;
  try {
    const result = call();
    isGranted = true;
    return result;
  } finally {
    const waitedMs = performance.now() - seen.since;
    tracking.waits.end(seen, waitedMs < AT_ONCE_MS ? -1 : waitedMs, isGranted);
  }
}

exports.NAMED_METHODS = {
  /** `request(name, callback)`, or `request(name, options, callback)`. */
  request(tracking, original, { wordOf }) {
    return function (name, second, ...third) {
      const hasOptions = third.length > 0;
      const callback = hasOptions ? third[0] : second;
      const asked =
        typeof callback === 'function'
          ? toRequest(tracking, wordOf(this), name, hasOptions ? second : undefined)
          : null;
      if (asked === null) return original.call(this, name, second, ...third);
      const { info, isExclusive, isEndless } = asked;
      const sighting = isEndless ? tracking.look(info, false) : null;
      const site = info.isSampled() ? tracking.sites.capture() : 0;
      const around = tracking.holds.task;
      let seen = null;
      const runTask = (lock) => {
        const run = () => {
          const { hold: begun } = tracking.holds.task;
          holdOf.set(lock, begun);
          goesOnAs(begun.serial, promise);
          return callback(lock);
        };
        return tracking.runTask(info, isExclusive, site, around, run, []);
      };
      const confirmAndRun = async (lock) => {
        for (let turn = 0; turn < TURNS; turn++) await undefined;
        await new Promise((resolve) => {
          askWhoAwaits(promise, (awaiting) => {
            sighting.confirm(awaiting);
            resolve();
          });
        });
        return runTask(lock);
      };
      const run = (lock) => {
        if (seen !== null) tracking.waits.end(seen, 0, true);
        if (lock === null) return callback(null);
        return sighting?.isOpen ? confirmAndRun(lock) : runTask(lock);
      };
      const { pending } = thread;
      const promise = tracking.insideWith(original, this, hasOptions ? [name, second, run] : [name, run]);
      if (isEndless && thread.pending > pending) {
        seen = tracking.waits.beginAsyncFor(info, isExclusive, promise);
        seen.sighting = sighting;
      }
      return promise;
    };
  },

  acquireNamedAsync(tracking, original, { wordOf }) {
    return function (name, options) {
      const asked = toRequest(tracking, wordOf(this), name, options);
      if (asked === null) return original.call(this, name, options);
      const { info, isExclusive, isEndless } = asked;
      const sighting = isEndless ? tracking.look(info, false) : null;
      const site = info.isSampled() ? tracking.sites.capture() : 0;
      const { flows, task } = tracking.holds;
      const grant = new Grant();
      let seen = null;
      const ask = () => {
        const { pending } = thread;
        let acquired = tracking.inside(original, this, name, options);
        const isWaiting = isEndless && thread.pending > pending;
        if (sighting?.isOpen) for (let turn = 0; turn < TURNS; turn++) acquired = acquired.then((lock) => lock);
        const promise = acquired.then((lock) => {
          if (seen !== null) tracking.waits.end(seen, 0, true);
          if (lock === null) return lock;
          if (sighting?.isOpen) sighting.confirm(awaitingCode());
          const begun = hold(tracking, asked, lock, site, task);
          begun.segment = -1;
          tracking.take(grant, begun);
          return lock;
        });
        if (isWaiting) {
          seen = tracking.waits.beginAsyncFor(info, isExclusive, promise);
          seen.sighting = sighting;
        }
        return promise;
      };
      if (flows === null) return ask();
      grant.isPending = true;
      return flows.awaitOf(grant, ask);
    };
  },

  acquireNamed(tracking, original, { wordOf }) {
    return function (name, options) {
      const asked = toRequest(tracking, wordOf(this), name, options);
      if (asked === null) return original.call(this, name, options);
      const lock = block(tracking, asked, () => tracking.inside(original, this, name, options));
      if (lock !== null) hold(tracking, asked, lock, tracking.site(asked.info), tracking.holds.task);
      return lock;
    };
  },

  /** `requestSync(name, fn)`, or `requestSync(name, options, fn)`. */
  requestSync(tracking, original, { wordOf }) {
    return function (name, second, ...third) {
      const hasOptions = third.length > 0;
      const fn = hasOptions ? third[0] : second;
      const asked =
        typeof fn === 'function' ? toRequest(tracking, wordOf(this), name, hasOptions ? second : undefined) : null;
      if (asked === null) return original.call(this, name, second, ...third);
      const { info, isEndless, isExclusive } = asked;
      if (isEndless) tracking.look(info, true);
      const seen = tracking.waits.beginBlockingFor(info, isEndless, isExclusive);
      let isOver = false;
      const end = (isGranted) => {
        if (isOver) return;
        isOver = true;
        const waitedMs = performance.now() - seen.since;
        tracking.waits.end(seen, waitedMs < AT_ONCE_MS ? -1 : waitedMs, isGranted);
      };
      const run = (lock) => {
        end(true);
        if (lock === null) return fn(null);
        tracking.isInside = false;
        const begun = hold(tracking, asked, lock, tracking.site(info), tracking.holds.task);
        try {
          return fn(lock);
        } finally {
          tracking.holds.end(begun);
          tracking.isInside = true;
        }
      };
      try {
        return tracking.insideWith(original, this, hasOptions ? [name, second, run] : [name, run]);
      } finally {
        end(false);
      }
    };
  },

  unlockNamed(tracking, original) {
    return function () {
      const result = original.call(this);
      const begun = holdOf.get(this);
      if (begun !== undefined) tracking.holds.end(begun);
      return result;
    };
  },
};
