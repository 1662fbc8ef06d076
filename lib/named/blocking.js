// Requests that block the thread.

const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { foundDeadlock } = require('../engine/wait.js');
const { corrupt, describe, thenableResult, threadEnding } = require('../errors.js');
const { isThenable } = require('../arguments.js');
const { placeOf } = require('./errors.js');
const { newLock, numberOf } = require('./held-lock.js');
const { confirmHeldBlocking, timeOutBlocking } = require('./holders.js');
const { enterBlocking } = require('./outside.js');
const { enterProcess, isPart, release, steal } = require('./requests.js');
const { giveBackAll, unlessRepaired } = require('./take-over.js');
const { startWatch } = require('./watch.js');

const { DEADLOCK, GRANTED, GRANTED_ABANDONED, INTERRUPTED, TIMED_OUT } = binding;
const { Number: NUMBER, WaitedMs } = binding.Field;

/**
 * The lock of this name; null if it had to be available and is not. `accept(lock)`, if it is given, is called once it is held; when
 * that throws, the lock goes back.
 */
exports.obtainBlocking = (backend, name, options, verb, accept) => {
  const { mode, ifAvailable, timeout } = options;
  const lock = newLock(name, mode);
  const limit = ifAvailable ? 0 : timeout;
  const deadline = timeout === Infinity ? Infinity : clock.now() + timeout;
  const request = { backend, lock, options, verb, deadline, watch: undefined };
  const status = options.steal ? steal(backend.space, name) : acquire(request, limit);
  switch (status) {
    case GRANTED:
    case GRANTED_ABANDONED:
      break;
    case TIMED_OUT:
      if (ifAvailable) {
        confirmHeldBlocking(backend, name);
        return null;
      }
      return timeOutBlocking(backend, name, options, verb);
    case DEADLOCK:
      throw foundDeadlock(lock, placeOf(name));
    case INTERRUPTED:
      throw threadEnding(describe(placeOf(name)));
    default:
      throw corrupt(placeOf(name), 0);
  }
  const number = thread.record[NUMBER];
  let held;
  try {
    enterProcess(backend, lock, options, number, status);
    if (backend.outer === null) {
      request.watch?.end(status);
      held = lock;
    } else {
      held = enterBlocking(request);
    }
  } catch (error) {
    // Nothing was locked outside, and its code will not learn of it.
    try {
      request.watch?.end();
      // A subscriber to the wait may have unlocked it.
      giveBackAll([lock]);
    } catch {
      // For want of stack.
      binding.giveBackHeld(number);
    }
    throw error;
  }
  if (held === null || accept === undefined) return held;
  try {
    accept(held);
  } catch (error) {
    try {
      giveBackAll([held]);
    } catch (refusal) {
      // As in `runWithBlocking`.
      if (!(refusal instanceof RangeError)) throw refusal;
      binding.letGoOfName(number);
      binding.wake();
    }
    throw error;
  }
  return held;
};

/** As `binding.acquireName`; a wait is published, at once if nothing came of it, else by the caller. */
function acquire(request, limit) {
  const { backend, lock, options } = request;
  startWatch(request, 'blocking');
  const status = binding.acquireName(backend.space, lock.name, options.mode, limit, isPart(backend, options));
  if (request.watch === undefined) return status;
  const hasWaited = thread.record[WaitedMs] >= 0;
  const isHeld = status === GRANTED || status === GRANTED_ABANDONED;
  if (!hasWaited || !isHeld) {
    request.watch.end(hasWaited ? status : undefined);
    request.watch = undefined;
  }
  return status;
}

/**
 * Runs a function with its lock, or with an array of them; returns its result. They are then released. `isWarned`: this thread, of
 * the marks that the function leaves.
 */
exports.runWithBlocking = (held, fn, isWarned) => {
  const numbers = held === null ? [] : [held].flat().map(numberOf);
  let result;
  let error;
  let hasThrown = false;
  try {
    // A copy, as in `runWith`. At the end of the stack it may fail, as the function may.
    const run = isWarned ? unlessRepaired([held].flat(), fn) : fn;
    result = run(Array.isArray(held) ? [...held] : held);
  } catch (thrown) {
    error = thrown;
    hasThrown = true;
  }
  if (held !== null) {
    try {
      release(held, hasThrown ? { error } : undefined);
    } catch (refusal) {
      // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
      if (!(refusal instanceof RangeError)) throw refusal;
      for (let index = 0; index < numbers.length; index++) binding.letGoOfName(numbers[index]);
      binding.wake();
      if (!hasThrown) throw refusal;
    }
  }
  if (hasThrown) throw error;
  if (held !== null && isThenable(result)) {
    const name = Array.isArray(held) ? held.map((lock) => lock.name) : held.name;
    throw thenableResult(placeOf(name), 'requestSync', 'is already released', 'request');
  }
  return result;
};
