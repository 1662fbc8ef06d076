// Each verb of the package, called as its users do, and logged.

const { OUTCOMES } = require('./log.js');
const { imagine, isPassed, passedCycle } = require('./sabotage.js');

/** The value that a body returns to have the hold kept for ever, since its thread is about to end. */
const KEEP = Symbol('keep');

/** Ends a hold that `take` began. */
function giveBack(actor, first, release) {
  const wait = first.last;
  if (wait.isLost) return;
  wait.leaving();
  if (actor.strikes('forget-unlock')) return;
  try {
    release();
  } catch (error) {
    actor.complain('refused', `${wait} could not be unlocked: ${error.stack}`.replaceAll('\n', ' | '));
  }
  wait.freed();
}

function unlockGuard(actor, wait, guard) {
  if (actor.random.chance(0.5)) guard[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  else if (guard.unlock() !== true) actor.complain('refused', `the guard of ${wait} did not unlock`);
  if (guard.locked || guard.abandoned) actor.complain('error', `the guard of ${wait} says locked after its unlock`);
  actor.misuse.remember(guard);
}

/** Calls a verb that returns at once, or blocks; returns how to release, or undefined. */
function take(actor, wait, options) {
  const mutex = actor.mutexes[wait.mutex];
  if (actor.strikes('enter-unlocked')) {
    wait.held();
    return () => {};
  }
  if (wait.timeout > 0.5 && wait.timeout < Infinity && actor.strikes('early-timeout')) {
    wait.ended(OUTCOMES.TIMED_OUT);
    return undefined;
  }
  if (wait.isBlocking && wait.timeout === Infinity && actor.strikes('imagine-deadlock')) {
    wait.deadlocked(imagine(actor, wait));
    return undefined;
  }
  let got;
  try {
    got = wait.verb.startsWith('try') ? mutex[wait.verb]() : mutex[wait.verb](options);
  } catch (error) {
    wait.failed(error);
    return undefined;
  }
  if (got === false || got === null) {
    if (wait.guarded && wait.verb !== 'tryAcquire') actor.complain('error', `${wait} returned ${got}`);
    wait.ended(OUTCOMES.TIMED_OUT);
    return undefined;
  }
  if (actor.strikes('report-twice') && isPassed(actor, wait)) {
    wait.guarded ? got.unlock() : mutex.unlock();
    wait.deadlocked(passedCycle(actor));
    return undefined;
  }
  if (wait.guarded) {
    wait.held(got);
    return () => unlockGuard(actor, wait, got);
  }
  if (got !== true) actor.complain('error', `${wait} returned ${got}`);
  wait.held();
  return () => mutex.unlock();
}

async function takeAsync(actor, wait, options) {
  const mutex = actor.mutexes[wait.mutex];
  if (actor.strikes('lose-wait')) await new Promise(() => {});
  if (wait.verb === 'enter') {
    const token = await new Promise((resolve) => {
      mutex.enter((token) => {
        wait.held(token);
        if (actor.mayThrowInCallback()) actor.throwInCallback();
        resolve(token);
      });
    });
    return () => {
      mutex.leave(token);
      actor.misuse.remember(token);
    };
  }
  try {
    const got = await mutex[wait.verb](options);
    if (got === false) {
      if (wait.guarded) actor.complain('error', `${wait} returned false`);
      wait.ended(OUTCOMES.TIMED_OUT);
      return undefined;
    }
    if (!wait.guarded && got !== true) actor.complain('error', `${wait} returned ${got}`);
    wait.held(wait.guarded ? got : undefined);
    return wait.guarded ? () => unlockGuard(actor, wait, got) : () => mutex.unlock();
  } catch (error) {
    wait.failed(error);
    if (wait.reason !== undefined && actor.strikes('hold-after-abort')) wait.held();
    return undefined;
  }
}

/** The package has unlocked, if there was anything to unlock. */
function settle(wait) {
  if (!wait.last.isLost) wait.last.freed();
}

/** `executeLocked`: the package unlocks, also if the function throws. */
async function execute(actor, wait, options, body) {
  const failure = actor.random.chance(0.1) ? new Error('thrown under the lock') : undefined;
  let inside = false;
  let kept = false;
  const locked = async () => {
    inside = true;
    wait.held();
    kept = (await body()) === KEEP;
    if (kept) await new Promise(() => {});
    if (!wait.last.isLost) wait.last.leaving();
    if (failure !== undefined) throw failure;
    return wait;
  };
  try {
    const answer = await actor.mutexes[wait.mutex].executeLocked(locked, options);
    if (answer !== wait) actor.complain('error', `${wait} returned ${answer}`);
    settle(wait);
  } catch (error) {
    if (inside && error === failure) settle(wait);
    else if (!wait.last.isLost || error?.code !== 'ERR_LOCK_NOT_OWNER') wait.failed(error);
  }
}

function executeSync(actor, wait, options, body) {
  const failure = actor.random.chance(0.1) ? new Error('thrown under the lock') : undefined;
  let inside = false;
  const locked = () => {
    inside = true;
    wait.held();
    body();
    if (!wait.last.isLost) wait.last.leaving();
    if (failure !== undefined) throw failure;
    return wait;
  };
  try {
    const answer = actor.mutexes[wait.mutex].executeLockedSync(locked, options);
    if (answer !== wait) actor.complain('error', `${wait} returned ${answer}`);
    settle(wait);
  } catch (error) {
    if (inside && error === failure) settle(wait);
    else if (!wait.last.isLost || error?.code !== 'ERR_LOCK_NOT_OWNER') wait.failed(error);
  }
}

/** Waits, and if it holds then, runs a body inside: `bodies.sync` or `bodies.async`, as the verb or luck says. */
exports.perform = async (actor, wait, options, bodies) => {
  if (wait.verb === 'executeLocked') return execute(actor, wait, options, bodies.async);
  if (wait.verb === 'executeLockedSync') return executeSync(actor, wait, options, bodies.sync);
  const release = wait.isAsync ? await takeAsync(actor, wait, options) : take(actor, wait, options);
  if (release === undefined) return undefined;
  const answer = actor.random.chance(wait.isAsync ? 0.4 : 0.15) ? await bodies.async() : bodies.sync();
  if (answer !== KEEP) giveBack(actor, wait, release);
  return undefined;
};

/** As `perform`, for a verb that blocks or returns at once, and a body that does not await. */
exports.performSync = (actor, wait, options, body) => {
  if (wait.verb === 'executeLockedSync') return executeSync(actor, wait, options, body);
  const release = take(actor, wait, options);
  if (release !== undefined && body() !== KEEP) giveBack(actor, wait, release);
  return undefined;
};

exports.KEEP = KEEP;
