// A thread does this while it uses something: nothing, work, a rest, or its own end.

const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');
const { endIfDue } = require('../body.js');
const { drawSignal, drawTimeout } = require('../choices.js');
const { OUTCOMES } = require('../log.js');
const { KEEP } = require('../verbs.js');

/** Without awaiting. Returns `KEEP` if the thread is about to end. */
exports.inside = (actor) => {
  const { random, profile } = actor;
  if (endIfDue(actor) === KEEP) return KEEP;
  const choice = random.next();
  if (choice < 0.4) actor.spin(random.between(0, profile.holdUs) / 1000);
  else if (choice < 0.42) actor.spin(random.between(0.5, 3));
  else if (random.chance(profile.busy / 2)) actor.beBusy();
  return undefined;
};

exports.insideAsync = async (actor) => {
  const choice = actor.random.next();
  if (choice < 0.3) await turn();
  else if (choice < 0.4) await sleep(actor.random.below(4));
  return exports.inside(actor);
};

/** A function that uses what it holds: `enter` gets what the function is given, `leave` is called before it returns. */
exports.within = (actor, isAsync, enter, leave) => {
  if (!isAsync) {
    return (held) => {
      enter(held);
      exports.inside(actor);
      leave();
    };
  }
  return async (held) => {
    enter(held);
    if ((await exports.insideAsync(actor)) === KEEP) await new Promise(() => {});
    leave();
  };
};

/**
 * A time limit as it is given, and as it counts. A thread with several tasks blocks for a while only: another of them may have
 * what it waits for.
 */
exports.drawLimit = (actor, isAsync) => {
  const mayStay = isAsync || (actor.mayBlock && actor.style.tasks === 1);
  return drawTimeout(actor.random, mayStay ? { endless: 4, timed: 4, long: 1, once: 1 } : { timed: 4, once: 1 });
};

/** Options of an asynchronous use, whose signal it remembers. */
exports.drawOptions = (actor, use, given) => {
  const { signal, reason } = drawSignal(actor);
  use.reason = reason;
  return { timeout: given, signal, ref: actor.random.chance(0.8) };
};

/**
 * Holds what `acquire` returns, unless that is false or null. `enter` is called when it is held and returns what to log; `leave`
 * and `release` before and when it is given back.
 */
exports.hold = async (actor, use, acquire, { enter, leave, release }) => {
  let got;
  try {
    if (use.isAsync && actor.strikes('lose-use')) await new Promise(() => {});
    const pending = acquire();
    if (use.isAsync) use.queued();
    got = use.isAsync ? await pending : pending;
  } catch (error) {
    use.failed(error);
    return;
  }
  if (got === false || got === null) {
    use.ended(OUTCOMES.TIMED_OUT);
    return;
  }
  use.held(enter?.(got));
  const isKept = (actor.random.chance(0.3) ? await exports.insideAsync(actor) : exports.inside(actor)) === KEEP;
  // The thread is about to end: nothing else is to be begun by this task.
  if (isKept) await new Promise(() => {});
  const isGone = leave?.(got);
  if (isGone) return;
  use.leaving();
  release(got);
  use.freed();
};

/** A wait that leaves nothing to hold. `outcomeOf` returns how it ended, from what it returned. */
exports.pass = async (actor, use, wait, outcomeOf) => {
  try {
    if (use.isAsync && actor.strikes('lose-use')) await new Promise(() => {});
    const pending = wait();
    if (use.isAsync) use.queued();
    const got = use.isAsync ? await pending : pending;
    const [outcome, fields] = outcomeOf(got);
    use.ended(outcome, fields);
  } catch (error) {
    use.failed(error);
  }
};
