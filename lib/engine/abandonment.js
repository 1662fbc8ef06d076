// The thread that acquires a lock whose holder's thread has ended: its `onAbandoned` runs, or it is warned.

const clock = require('../load/clock.js');
const { binding, thread } = require('./thread.js');
const { tellAbandoned } = require('./diagnosis.js');
const { corrupt } = require('./corrupt.js');
const { describe, notOwner, thenableRepair } = require('../errors.js');
const { isThenable } = require('../arguments.js');

/** The thread that ended inside, which the last acquisition has to report; null if there is none. */
function endedThread() {
  const ended = thread.record[binding.Field.EndedThread];
  return ended < 0 ? null : ended;
}

/** At most so many warnings in a thread */
const MOST = 5;
/** in this time; then one line for the rest. */
const WINDOW_MS = 1000;

function emit(message) {
  try {
    process.emitWarning(message, { type: 'AbandonedLockWarning', code: 'SABLOCK_ABANDONED' });
  } catch (error) {
    // The stack has ended: the caller does not get the mutex, and the next one is warned.
    if (error instanceof RangeError) throw error;
    // A replaced `emitWarning` threw: an uncaught error of its own. The caller has got the mutex and must learn of that.
    clock.throwLater(error);
  }
}

/** The warnings of this thread: one object for a thread, however often the package is loaded there. */
class Warnings {
  /** When the last ones were emitted. */
  #times = [];
  #leftOut = 0;
  #timer = null;
  #tellRest = () => {
    clock.clearTimeout(this.#timer);
    process.off('beforeExit', this.#tellRest);
    const count = this.#leftOut;
    this.#leftOut = 0;
    if (count === 0) return;
    emit(
      `${count} more ${count === 1 ? 'lock' : 'locks'} came to this thread from threads that ended while they held ` +
        `them; no more than ${MOST} warnings are given in a second. The channel sablock:abandoned has a message for each.`,
    );
  };

  /** `what` happened: who has ended. */
  warn(place, what, isShared) {
    const now = clock.now();
    if (this.#times.length === MOST) {
      if (now - this.#times[0] < WINDOW_MS) {
        this.#leaveOut();
        return;
      }
      this.#times.shift();
    }
    // First this: a replaced `emitWarning` may come here again.
    this.#times.push(now);
    try {
      emit(
        `${what} while it held ${describe(place)}, which ` +
          (isShared
            ? 'this thread now reads. The data that it guards may be half-written until a thread that holds it to write has ' +
              'checked it and called markConsistent().'
            : 'now belongs to this thread. The data that it guards may be half-written: check it, then call markConsistent().'),
      );
    } catch (error) {
      // At the end of the stack: it was not given.
      this.#times.pop();
      throw error;
    }
  }

  /** The rest is reported when the time is over, or before the process ends by itself. */
  #leaveOut() {
    if (this.#leftOut === 0) {
      this.#timer = clock.setTimeout(this.#tellRest, WINDOW_MS).unref();
      try {
        process.once('beforeExit', this.#tellRest);
      } catch (error) {
        // As in `emit`, of a listener of 'newListener'.
        if (error instanceof RangeError) throw error;
        clock.throwLater(error);
      }
    }
    this.#leftOut += 1;
  }
}

function warn(place, what, isShared) {
  thread.warnings ??= new Warnings();
  thread.warnings.warn(place, what, isShared);
}

exports.endedThread = endedThread;
/** `what`, that somebody ended, happened while it held the lock of this place, which this thread has now. */
exports.warn = warn;

/**
 * The status was `GRANTED_ABANDONED`, and there is no `onAbandoned`, or it cannot repair yet since the hold is shared: then
 * nobody is warned.
 */
exports.report = (lock, word, isShared = false) => {
  const threadId = endedThread();
  if (word.onAbandoned === undefined) {
    warn(word, `Thread ${threadId} ended`, isShared);
  }
  binding.setReport(0);
  tellAbandoned(lock, word, threadId);
};

/**
 * The word is held here and marked, and the lock has `onAbandoned`. Once this returns, it is consistent. It throws what
 * the function throws; the caller has to give the hold back then.
 */
exports.repair = (lock, word) => {
  const threadId = endedThread();
  // Null: another has reported the end, and has not repaired.
  if (threadId !== null) {
    binding.setReport(0);
    tellAbandoned(lock, word, threadId);
  }
  const { onAbandoned } = word;
  if (isThenable(onAbandoned(lock))) throw thenableRepair(word);
  const code = binding.change(word, word.ask ?? thread.plain.ask, binding.Change.MarkConsistent, 0, 0);
  if (code === binding.CORRUPT) throw corrupt(word);
  if (code === binding.NOT_OWNER) {
    throw notOwner(word, 'mark as consistent', 'its onAbandoned() has unlocked it. Leave it locked there.');
  }
};
