// The second step of a request whose backend has an outer lock: the engine has granted the name to it, and it takes the outer
// lock before its code runs. See backend.js.

const { binding, thread } = require('../engine/thread.js');
const { reportOutside } = require('../engine/abandonment.js');
const { lazily } = require('../load/lazily.js');
const { placeOf } = require('./errors.js');
const { giveBack, numberOf, setOuter } = require('./held-lock.js');
const { MODES } = require('./options.js');
const { timedOut } = require('./requests.js');

const signals = lazily(() => require('../engine/signals.js'));

const left = (deadline) => Math.max(deadline - performance.now(), 0);

/** The request gets nothing: others of the process may have what the engine has granted to it. */
function withdraw({ lock }) {
  thread.drainSoon();
  giveBack(lock);
}

/** With what was locked outside. */
function enterWith({ lock }, held) {
  setOuter(lock, held);
  // The mark outside counts; see `reportEnd`.
  const number = numberOf(lock);
  if (lock.mode === 'exclusive' && binding.isNameAbandoned(number)) binding.markNameConsistent(number);
  if (held.ended != null) reportOutside(lock, placeOf(lock.name), held.ended, lock.mode === 'shared');
  return lock;
}

/** What `use` makes of the lock, once it is locked outside too; or a promise of that. */
exports.enter = (request) => {
  const { backend, lock, options, use } = request;
  let held;
  try {
    held = backend.outer.tryLock(lock.name, MODES[options.mode]);
  } catch (error) {
    withdraw(request);
    throw error;
  }
  if (held !== null) return use(enterWith(request, held));
  if (!options.ifAvailable) return wait(request);
  withdraw(request);
  return use(null);
};

async function wait(request) {
  const { backend, lock, options, use } = request;
  binding.noteNameIn(numberOf(lock), false);
  let held;
  try {
    const waited = backend.outer.lockAsync(lock.name, MODES[options.mode], left(request.deadline), options.ref);
    held = await (options.signal === undefined ? waited.promise : unlessAborted(waited, options.signal));
    if (held === null) throw timedOut(lock.name, options.timeout, request.verb);
  } catch (error) {
    withdraw(request);
    throw error;
  }
  enterWith(request, held);
  binding.noteNameIn(numberOf(lock), true);
  return use(lock);
}

/** The promise, which is rejected with the signal's reason when that aborts in time. */
function unlessAborted({ promise, cancel }, signal) {
  return new Promise((resolve, reject) => {
    const listener = {
      abort(reason) {
        if (cancel()) reject(reason);
      },
    };
    signals().listen(signal, listener);
    const stop = (settle) => (value) => {
      signals().unlisten(signal, listener);
      settle(value);
    };
    promise.then(stop(resolve), stop(reject));
  });
}

/** The lock, once it is locked outside too; null if it had to be available and is not. Blocks. */
exports.enterBlocking = (request) => {
  const { backend, lock, options, deadline } = request;
  const mode = MODES[options.mode];
  const held = backend.outer.tryLock(lock.name, mode);
  if (held !== null) return enterWith(request, held);
  if (options.ifAvailable) {
    withdraw(request);
    return null;
  }
  binding.noteNameIn(numberOf(lock), false);
  const waited = backend.outer.lockBlocking(lock.name, mode, left(deadline));
  if (waited === null) throw timedOut(lock.name, options.timeout, request.verb);
  enterWith(request, waited);
  binding.noteNameIn(numberOf(lock), true);
  return lock;
};
