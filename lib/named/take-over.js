// A lock whose holder has ended inside comes to its next holder: `onAbandoned` of the manager runs, or the thread is warned.

const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { warn } = require('../engine/abandonment.js');
const { tellAbandoned } = require('../engine/diagnosis.js');
const { after } = require('../engine/pending-wait.js');
const { notOwner, thenableRepair } = require('../errors.js');
const { isThenable } = require('../arguments.js');
const { placeOf, stolen } = require('./errors.js');
const { endOf, giveBack, isRepaired, isStolen, lossOf, noteEnd } = require('./held-lock.js');

const { EndedThread } = binding.Field;

const isShared = (lock) => lock.mode === 'shared';

/** The end that happened, for a message; with the thread that has ended. */
function describeEnd(end) {
  if (typeof end === 'number') {
    binding.setReport(end);
    // A read, no call, which may fail for want of stack.
    const threadId = thread.record[EndedThread];
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

/** Why another has it now: it was stolen, or lost. Null if neither has happened, as far as this thread knows. */
const takenFrom = (lock) => (isStolen(lock) ? stolen(lock.name) : lossOf(lock));

/** The function has returned. */
function conclude(lock) {
  let refusal;
  // By these calls this thread may learn of what became of it meanwhile.
  if (lock.locked) {
    try {
      lock.markConsistent();
      return;
    } catch (error) {
      refusal = error;
    }
  }
  throw (
    takenFrom(lock) ??
    refusal ??
    notOwner(placeOf(lock.name), 'mark as consistent', 'its onAbandoned() has unlocked it. Leave it locked there.')
  );
}

/** Whether there is anything to repair. There is no warning of what the function repairs. */
function isMarked(lock) {
  tellEnd(lock);
  return !isShared(lock) && lock.abandoned;
}

/** Calls the function, if the lock is marked. When this returns, or what it returns is fulfilled, the lock is consistent. */
function repair(lock, onAbandoned) {
  if (!isMarked(lock)) return undefined;
  const repaired = onAbandoned(lock);
  if (isThenable(repaired)) return concludeAfter(lock, repaired);
  conclude(lock);
  return undefined;
}

async function concludeAfter(lock, repaired) {
  await repaired;
  conclude(lock);
}

/** Warns of who ended inside, if that is this lock's to report. If it cannot, for want of stack, the next has to report it. */
function warnOfEnd(lock) {
  const end = endOf(lock);
  if (end === null) return;
  const { what, threadId } = describeEnd(end);
  const place = placeOf(lock.name);
  warn(place, what, isShared(lock));
  noteEnd(lock, null);
  tellAbandoned(lock, place, threadId);
}

/** The locks, for a promise; or a promise of them. When it fails, none is held. */
exports.accept = (held, locks, onAbandoned) => {
  const repaired = takeOverAll(locks, onAbandoned === undefined ? warnOfEnd : (lock) => repair(lock, onAbandoned));
  return repaired === undefined ? held : after(repaired, () => held);
};

/** As `accept`, for a verb that blocks. When this throws, the caller has to give the lock back. */
exports.acceptBlocking = (lock, onAbandoned) => {
  if (onAbandoned === undefined) {
    warnOfEnd(lock);
    return;
  }
  if (!isMarked(lock)) return;
  if (isThenable(onAbandoned(lock))) throw thenableRepair(placeOf(lock.name));
  conclude(lock);
};

/** Takes one after the other over, by `act`; undefined if none has to be waited for. When one fails, none is held. */
function takeOverAll(locks, act, from = 0) {
  const fail = (error) => {
    giveBackAll(locks);
    throw error;
  };
  try {
    for (let index = from; index < locks.length; index++) {
      const repaired = act(locks[index]);
      if (repaired !== undefined) return after(repaired, () => takeOverAll(locks, act, index + 1), fail);
    }
  } catch (error) {
    fail(error);
  }
  return undefined;
}

/** Runs a callback: `run(callback)` calls it and releases the locks. Who repairs in its first turn is not warned. */
exports.run = (locks, callback, onAbandoned, run) => {
  if (onAbandoned !== undefined) {
    const repaired = takeOverAll(locks, (lock) => repair(lock, onAbandoned));
    return repaired === undefined ? run(callback) : after(repaired, () => run(callback));
  }
  return run(unlessRepaired(locks, callback, clock.setImmediate));
};

/**
 * The function, after which this thread is warned of what it has not marked as consistent: `later`, if there is that and it returns an
 * object.
 */
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

/** Tells of an end that only this thread has learned of, or that the next will not: of what was stolen, or lost. */
function forward(lock) {
  try {
    if (!lock.locked || typeof endOf(lock) === 'object') tellEnd(lock)?.();
  } catch {
    // The warning failed: the error for which the lock goes back says more.
  }
}

/** The locks go back though their code was not in: the next have to report the ends that these did not. */
function giveBackAll(locks) {
  thread.drainSoon();
  // As in `releaseAll`.
  for (let index = locks.length - 1; index >= 0; index--) {
    forward(locks[index]);
    giveBack(locks[index]);
  }
}

exports.giveBackAll = giveBackAll;
exports.takenFrom = takenFrom;
exports.unlessRepaired = unlessRepaired;
