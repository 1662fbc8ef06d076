// To run a function under a lock that one may hold, whatever it is: a mutex, or `write` of an RwLock. `inside` is the request of
// such a function, which nobody sees a guard of: it gets the era in which its hold began.

const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { checkFunction, isThenable, toAsyncOptions } = require('../arguments.js');
const { endHold, holdEnded } = require('./guard.js');

const errors = lazily(() => require('../errors.js'));
const loadWaits = lazily(() => require('../engine/wait.js'));

const { compareExchange } = Atomics;
const MINE_GUARDED = thread.id | binding.GUARDED;

/** A promise of what the request takes. */
function lockAsync(lock, word, request, options, verb) {
  try {
    return loadWaits().lockWord(lock, word, request, toAsyncOptions(word, options), verb);
  } catch (error) {
    return Promise.reject(error);
  }
}

exports.lockAsync = lockAsync;

/** As `holdEnded`, for the hold of a function that has ended. */
function end(word, era, verb) {
  const isFreed = !thread.hasAway && compareExchange(word, 0, MINE_GUARDED, 0) === MINE_GUARDED;
  return isFreed ? undefined : endHold(word, era, `${verb}()`);
}

exports.executeLocked = async function executeLocked(lock, word, fn, options, inside, verb) {
  checkFunction(word, 'fn', fn);
  let { era } = thread;
  // A lock that is free needs no request; and what is no promise is not awaited.
  if (options === undefined && thread.pending === 0 && compareExchange(word, 0, 0, MINE_GUARDED) === 0) {
    await undefined;
  } else {
    era = await lockAsync(lock, word, inside, options, verb);
  }
  let result;
  try {
    result = fn();
    if (isThenable(result)) result = await result;
  } catch (error) {
    // What `fn` throws says more than why the lock could not be freed.
    end(word, era, verb);
    throw error;
  }
  const error = end(word, era, verb);
  if (error !== undefined) throw error;
  return result;
};

/** The arguments are checked, and the thread may block. No function of JS but `fn` begins while the lock is held. */
exports.executeLockedSync = function executeLockedSync(lock, word, fn, limit, inside, verb) {
  if (compareExchange(word, 0, 0, MINE_GUARDED) !== 0) loadWaits().lockBlocking(lock, word, inside, limit, verb);
  const { era } = thread;
  let result;
  let error;
  let hasThrown = false;
  try {
    result = fn();
  } catch (thrown) {
    error = thrown;
    hasThrown = true;
  }
  if (thread.hasAway || compareExchange(word, 0, MINE_GUARDED, 0) !== MINE_GUARDED) {
    // Until the word is free, nothing may fail for want of stack, for which `fn` may have failed.
    try {
      thread.drainSoon(word);
    } catch {
      binding.wake();
    }
    const ended = binding.endGuard(word, era, inside.ask);
    if (ended !== binding.RELEASED) {
      const refusal = holdEnded(word, ended, `${verb}()`);
      // What `fn` throws says more than this.
      if (refusal !== undefined && !hasThrown) throw refusal;
    }
  }
  if (hasThrown) throw error;
  if (isThenable(result)) throw errors().thenableResult(word);
  return result;
};
