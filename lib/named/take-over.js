// A lock whose holder has ended inside comes to its next holder: `onAbandoned` of the manager runs, or the thread is warned.

const clock = require('../load/clock.js');
const { binding } = require('../engine/thread.js');
const { endedThread, warn } = require('../engine/abandonment.js');
const { tellAbandoned } = require('../engine/diagnosis.js');
const { notOwner, thenableRepair } = require('../errors.js');
const { isThenable } = require('../arguments.js');
const { placeOf, stolen } = require('./errors.js');
const { endOf, isRepaired, isStolen, lossOf, noteEnd } = require('./held-lock.js');

const isShared = (lock) => lock.mode === 'shared';

/** What happened, for a message; with the thread that has ended. */
function describeEnd(end) {
  if (typeof end === 'number') {
    binding.setReport(end);
    const threadId = endedThread();
    binding.setReport(0);
    return { what: `Thread ${threadId} ended`, threadId };
  }
  const { pid, threadId, isOfStore } = end;
  if (isOfStore) return { what: 'A holder ended, or lost the lock,', threadId };
  const who = pid < 0 ? 'A process' : `Process ${pid}${threadId > 0 ? ` (its thread ${threadId})` : ''}`;
  return { what: `${who} ended`, threadId };
}

/** Publishes who ended inside, if that is this lock's to report. Returns a function that warns of it; null if none did. */
function tellEnd(lock) {
  const end = endOf(lock);
  if (end === null) return null;
  const { what, threadId } = describeEnd(end);
  noteEnd(lock, null);
  const place = placeOf(lock.name);
  tellAbandoned(lock, place, threadId);
  return () => warn(place, what, isShared(lock));
}

/** The function has returned. */
function conclude(lock) {
  if (isStolen(lock)) throw stolen(lock.name);
  if (lossOf(lock) !== null) throw lossOf(lock);
  if (!lock.locked) {
    throw notOwner(
      placeOf(lock.name),
      'mark as consistent',
      'its onAbandoned() has unlocked it. Leave it locked there.',
    );
  }
  lock.markConsistent();
}

/** Whether there is anything to repair. There is no warning of what the function repairs. */
function isMarked(lock) {
  tellEnd(lock);
  return !isShared(lock) && lock.abandoned;
}

/** Calls the function, if the lock is marked. When this returns, or what it returns is fulfilled, it is consistent; else unlocked. */
function repair(lock, onAbandoned) {
  if (!isMarked(lock)) return undefined;
  const fail = (error) => {
    lock.unlock();
    throw error;
  };
  try {
    const repaired = onAbandoned(lock);
    if (isThenable(repaired))
      return Promise.resolve(repaired)
        .then(() => conclude(lock))
        .catch(fail);
    conclude(lock);
  } catch (error) {
    fail(error);
  }
  return undefined;
}

function repairBlocking(lock, onAbandoned) {
  if (!isMarked(lock)) return;
  try {
    if (isThenable(onAbandoned(lock))) throw thenableRepair(placeOf(lock.name));
    conclude(lock);
  } catch (error) {
    lock.unlock();
    throw error;
  }
}

/** The locks, for a promise; or a promise of them. */
exports.accept = (held, locks, onAbandoned) => {
  if (onAbandoned === undefined) {
    for (const lock of locks) tellEnd(lock)?.();
    return held;
  }
  const repaired = repairAll(locks, onAbandoned);
  return repaired === undefined ? held : repaired.then(() => held);
};

/** As `accept`, for a verb that blocks. When this throws, the lock is unlocked. */
exports.acceptBlocking = (lock, onAbandoned) => {
  if (onAbandoned === undefined) tellEnd(lock)?.();
  else repairBlocking(lock, onAbandoned);
};

/** One after the other; undefined if none has to be waited for. When one fails, none is held. */
function repairAll(locks, onAbandoned, from = 0) {
  const fail = (error) => {
    for (const lock of locks) lock.unlock();
    throw error;
  };
  try {
    for (let index = from; index < locks.length; index++) {
      const repaired = repair(locks[index], onAbandoned);
      if (repaired !== undefined) return repaired.then(() => repairAll(locks, onAbandoned, index + 1), fail);
    }
  } catch (error) {
    fail(error);
  }
  return undefined;
}

/** Runs a callback: `run(callback)` calls it and releases the locks. Who repairs in its first turn is not warned. */
exports.run = (locks, callback, onAbandoned, run) => {
  if (onAbandoned !== undefined) {
    const repaired = repairAll(locks, onAbandoned);
    return repaired === undefined ? run(callback) : repaired.then(() => run(callback));
  }
  return run(unlessRepaired(locks, callback, clock.setImmediate));
};

/** The function, after which this thread is warned of what it has not marked as consistent: `later`, if it returns an object. */
function unlessRepaired(locks, callback, later) {
  const ends = locks.map((lock) => ({ lock, tell: tellEnd(lock) })).filter(({ tell }) => tell !== null);
  const look = () => {
    for (const { lock, tell } of ends) if (!isRepaired(lock)) tell();
  };
  return (held) => {
    let isOver = true;
    try {
      const result = callback(held);
      isOver = result === null || (typeof result !== 'object' && typeof result !== 'function');
      return result;
    } finally {
      if (isOver || later === undefined) look();
      else later(look);
    }
  };
}

/** As `run`, for a function that must not return a promise: what is to be called in its place. */
exports.unlessRepaired = (locks, fn) => unlessRepaired(locks, fn);

/** The lock goes back though its code was not in: what this thread has learned of an end, nobody else does. */
exports.forward = (lock) => {
  if (typeof endOf(lock) === 'object') tellEnd(lock)?.();
};
