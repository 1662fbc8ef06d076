// The second step of a request whose backend has an outer lock: the engine has granted the name to it, and it takes the outer
// lock before its code runs. See backend.js.

const { binding } = require('../engine/thread.js');
const { abortOf, listen, unlistenSafely } = require('../engine/signals.js');
const { reserveStack } = require('../engine/stack.js');
const { endOf, goesBack, noteEnd, numberOf, setFence, setOuter } = require('./held-lock.js');
const { timeLeft } = require('./options.js');
const { timeOut, timeOutBlocking } = require('./holders.js');
const { giveBackAll } = require('./take-over.js');
const { startWatch } = require('./watch.js');

const { GRANTED, GRANTED_ABANDONED, TIMED_OUT } = binding;

/** The request gets nothing: others of the process may have what the engine has granted to it. `status`: why, to be published. */
function withdraw({ lock, watch }, status) {
  watch?.end(status);
  giveBackAll([lock]);
}

/**
 * The end inside that a grant outside has to report is this lock's to report, though that was lost, or goes back; of several, the first.
 * Called once for each grant.
 */
function takeEnd(lock, held) {
  if (held.ended !== null && endOf(lock) === null) noteEnd(lock, held.ended);
}

/** With what was locked outside. */
function enterWith({ lock, watch }, held) {
  setOuter(lock, held);
  if (held.fence !== null) setFence(lock, held.fence);
  // The mark outside counts; see `enterProcess`.
  const number = numberOf(lock);
  const isMarked = lock.mode === 'exclusive' && binding.lookAtHeld(number) === GRANTED_ABANDONED;
  if (isMarked) binding.markConsistent(number);
  takeEnd(lock, held);
  watch?.end(GRANTED);
  return lock;
}

/** The same, where its name showed as pending; one of several names still does. */
function enterAfterWait(request, held) {
  const { lock, options } = request;
  enterWith(request, held);
  binding.noteIn(numberOf(lock), options.isPart !== true);
  return lock;
}

/** The name of the process is not enough: the request waits for the lock outside. A request to a store says nothing of others. */
function noteWait(request, how) {
  if (request.backend.outer.isAsync) return;
  binding.noteIn(numberOf(request.lock), false);
  startWatch(request, how);
}

/** The timeout of the wait outside: 0 if it is a try, which the store may take `patience` to answer. */
function limitsOf({ deadline, options }) {
  const patience = timeLeft(deadline, options.timeout);
  return { timeout: options.ifAvailable ? 0 : patience, patience };
}

/** Lost before this thread has seen it, as when the process was stopped meanwhile: it is asked for again. */
function isLost(lock, held) {
  if (held === null || (held.lost ?? null) === null) return false;
  takeEnd(lock, held);
  return true;
}

const tryLock = ({ outer }, { name }, options) =>
  options.ifAvailable ? outer.lockIfAvailable(name, options) : outer.tryLock(name, options);

/** The result of `use` with the lock, once it is locked outside too; or a promise of that. */
exports.enter = (request) => {
  const { backend, lock, options, use } = request;
  if (backend.outer.isAsync) return wait(request);
  let held;
  try {
    held = tryLock(backend, lock, options);
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
  noteWait(request, 'async');
  let held;
  let status;
  let abort = null;
  const note = (reason) => {
    abort = { reason };
  };
  try {
    const beside = request.deadline === Infinity ? undefined : goesBack([...(options.beside?.values() ?? []), lock]);
    do {
      const ask = () => backend.outer.lockAsync(lock.name, options, { ...limitsOf(request), beside });
      held = await (options.signal === undefined ? ask().promise : unlessAborted(ask, options.signal, note));
      abort ??= abortOf(options.signal);
      if (abort !== null) {
        if (held !== null) takeEnd(lock, held);
        held?.unlock();
        throw abort.reason;
      }
    } while (isLost(lock, held));
    if (held === null && !options.ifAvailable) {
      status = TIMED_OUT;
      await timeOut(backend, lock.name, { ...options, isFirst: true }, request.verb);
    }
  } catch (error) {
    withdraw(request, abort === null ? status : 'aborted');
    throw error;
  }
  if (held === null) {
    withdraw(request);
    return use(null);
  }
  enterAfterWait(request, held);
  return use(lock);
}

/**
 * The promise of what `ask` has asked for; when the signal aborts, or has that event dispatched, that is noted, and what was asked for is
 * withdrawn.
 */
async function unlessAborted(ask, signal, note) {
  let waited;
  let isAborted = false;
  const listener = {
    abort(reason) {
      note(reason);
      isAborted = true;
      waited?.cancel();
    },
  };
  // First whatever may throw, then the queue.
  listen(signal, listener);
  try {
    waited = ask();
    if (isAborted) waited.cancel();
    return await waited.promise;
  } finally {
    unlistenSafely(signal, listener);
  }
}

/** The lock, once it is locked outside too; null if it had to be available and is not. Blocks. */
exports.enterBlocking = (request) => {
  reserveStack();
  const { backend, lock, options } = request;
  const { isAsync } = backend.outer;
  let held = isAsync ? null : tryLock(backend, lock, options);
  if (held !== null) return enterWith(request, held);
  if (isAsync || !options.ifAvailable) {
    noteWait(request, 'blocking');
    do {
      held = backend.outer.lockBlocking(lock.name, options, limitsOf(request));
    } while (isLost(lock, held));
    if (held !== null) return enterAfterWait(request, held);
  }
  if (options.ifAvailable) {
    withdraw(request);
    return null;
  }
  request.watch?.end(TIMED_OUT);
  return timeOutBlocking(backend, lock.name, { ...options, isFirst: true }, request.verb);
};
