// Requests that block the thread.

const { binding, thread } = require('../engine/thread.js');
const { readCycle } = require('../engine/wait.js');
const { tellDeadlock } = require('../engine/diagnosis.js');
const { DeadlockError, corrupt, describe, noBackgroundThread, thenableResult, threadEnding } = require('../errors.js');
const { isThenable } = require('../arguments.js');
const { placeOf } = require('./errors.js');
const { newLock, numberOf, setGranted } = require('./held-lock.js');
const { release, reportEnd, steal, timedOut } = require('./requests.js');

const { DEADLOCK, GRANTED, GRANTED_ABANDONED, INTERRUPTED, TIMED_OUT } = binding;
const { Number: NUMBER } = binding.Field;

/** The lock of this name; null if it had to be available and is not. */
exports.obtainBlocking = (backend, name, options, verb) => {
  const { mode, ifAvailable, timeout } = options;
  const lock = newLock(name, mode);
  const limit = ifAvailable ? 0 : timeout;
  const deadline = limit === Infinity ? Infinity : performance.now() + limit;
  const status = options.steal ? steal(backend.space, name) : binding.acquireName(backend.space, name, mode, limit);
  switch (status) {
    case GRANTED:
    case GRANTED_ABANDONED:
      break;
    case TIMED_OUT:
      if (ifAvailable) return null;
      throw timedOut(name, timeout, verb);
    case DEADLOCK: {
      const error = new DeadlockError(placeOf(name), readCycle());
      tellDeadlock(lock, placeOf(name), error.cycle);
      throw error;
    }
    case INTERRUPTED:
      throw threadEnding(describe(placeOf(name)));
    default:
      throw status === binding.CORRUPT ? corrupt(placeOf(name), 0) : noBackgroundThread(describe(placeOf(name)));
  }
  const number = thread.record[NUMBER];
  try {
    setGranted(lock, number);
    if (status === GRANTED_ABANDONED) reportEnd(backend, lock);
    if (backend.outer === null) return lock;
    return require('./outside.js').enterBlocking({ backend, lock, options, verb, deadline });
  } catch (error) {
    // Nothing was locked outside, and its code will not learn of it.
    binding.giveBackName(number);
    throw error;
  }
};

/** Runs a function with its lock; returns its result. Released is the lock then. */
exports.runWithBlocking = (lock, fn) => {
  const number = lock === null ? -1 : numberOf(lock);
  let result;
  let error;
  let hasThrown = false;
  try {
    result = fn(lock);
  } catch (thrown) {
    error = thrown;
    hasThrown = true;
  }
  if (lock !== null) {
    try {
      release(lock);
    } catch (refusal) {
      // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
      if (!(refusal instanceof RangeError)) throw refusal;
      binding.letGoOfName(number);
      binding.wake();
      if (!hasThrown) throw refusal;
    }
  }
  if (hasThrown) throw error;
  if (lock !== null && isThenable(result)) {
    throw thenableResult(placeOf(lock.name), 'requestSync', 'is already released', 'request');
  }
  return result;
};
