// The waiting functions: the face and the semantics of Atomics.wait, Atomics.notify and Atomics.waitAsync, on this
// package's lines of waiters.

const { binding, isMainThread, thread } = require('../engine/thread.js');
const { reasonOf, toWaitOptions } = require('../arguments.js');
const { mainThreadWait, noBackgroundThread, threadEnding } = require('../errors.js');
const { isShared, toCount, toExpected, toIndexForNotify, toIndexForWait, toLimit } = require('./integers.js');
const { PendingWait } = require('../engine/pending-wait.js');

const { load } = Atomics;
const OUTCOMES = new Map([
  [binding.GRANTED, 'ok'],
  [binding.REFUSED, 'not-equal'],
  [binding.TIMED_OUT, 'timed-out'],
]);

/** A promise for a notification, pending once the thread has taken it in. */
class FutexWait extends PendingWait {
  settle(status) {
    this.resolve(OUTCOMES.get(status));
    this.stopListening();
  }
}

/** The outcome of a wait that need not begin, or null. Reading the element before the wait is queued decides nothing twice. */
function outcomeAtOnce(typedArray, index, expected, limit) {
  if (load(typedArray, index) !== expected) return 'not-equal';
  return limit === 0 ? 'timed-out' : null;
}

// Methods, since the originals are no constructors either.
const functions = {
  wait(typedArray, index, value, timeout) {
    const i = toIndexForWait(typedArray, index);
    const expected = toExpected(typedArray, value);
    const limit = toLimit(timeout);
    if (isMainThread) throw mainThreadWait();
    const outcome = outcomeAtOnce(typedArray, i, expected, limit);
    if (outcome !== null) return outcome;
    const status = binding.wait(typedArray, i, expected, limit);
    if (status === binding.INTERRUPTED) throw threadEnding(`a notification at index ${i}`);
    return OUTCOMES.get(status);
  },

  notify(typedArray, index, count) {
    const i = toIndexForNotify(typedArray, index);
    const most = toCount(count);
    return isShared(typedArray) ? binding.notify(typedArray, i, most) : 0;
  },

  // The default keeps the fifth parameter out of `length`.
  waitAsync(typedArray, index, value, timeout, options = undefined) {
    const i = toIndexForWait(typedArray, index);
    const expected = toExpected(typedArray, value);
    const limit = toLimit(timeout);
    const { signal, ref } = toWaitOptions(options);
    if (signal?.aborted) return { async: true, value: Promise.reject(reasonOf(signal)) };
    const outcome = outcomeAtOnce(typedArray, i, expected, limit);
    if (outcome !== null) return { async: false, value: outcome };
    const wait = new FutexWait(signal, ref);
    // First whatever may throw, then the queue.
    wait.startListening();
    const status = binding.waitAsync(typedArray, i, expected, limit);
    if (status === binding.PENDING) {
      thread.add(wait);
      return { async: true, value: wait.promise };
    }
    wait.stopListening();
    if (status === binding.NO_CLOCK) throw noBackgroundThread(`a notification at index ${i}`);
    return { async: false, value: OUTCOMES.get(status) };
  },
};

exports.wait = functions.wait;
exports.notify = functions.notify;
exports.waitAsync = functions.waitAsync;
