// Draws the next wait: a verb, a mutex, a time limit, a signal.

const { ASYNC, BLOCKING, Wait } = require('./wait.js');

const ENDLESS = [undefined, NaN, Infinity];
const ONCE = [0, -1, -Infinity, -0.001];

function drawTimeout(random, weights) {
  switch (random.weighted(weights)) {
    case 'endless':
      return { given: random.pick(ENDLESS), timeout: Infinity };
    case 'once':
      return { given: random.pick(ONCE), timeout: 0 };
    default: {
      const timeout = random.chance(0.3) ? random.between(0.05, 1) : random.between(1, random.chance(0.2) ? 120 : 15);
      return { given: timeout, timeout };
    }
  }
}

/** A signal for some of the waits: aborted before, in this turn, soon, or shared by many. */
function drawSignal(actor) {
  const { random } = actor;
  const choice = random.next();
  if (choice < 0.75) return {};
  if (choice < 0.85) {
    const { signal } = actor.sharedController();
    return { signal, reason: () => signal.reason };
  }
  const controller = new AbortController();
  const { signal } = controller;
  const own = random.chance(0.5) ? { why: 'torture' } : undefined;
  const abort = () => controller.abort(own);
  if (choice < 0.87) abort();
  else if (choice < 0.9) queueMicrotask(abort);
  else if (choice < 0.93) setImmediate(abort);
  else setTimeout(abort, random.below(12));
  return { signal, reason: () => signal.reason };
}

function draw(actor, verb, mutex, limits) {
  const { random } = actor;
  const hasOptions = verb !== 'enter' && !verb.startsWith('try');
  const { given, timeout } = drawTimeout(random, limits);
  const wait = new Wait(actor, verb, mutex, verb.startsWith('try') ? 0 : hasOptions ? timeout : Infinity);
  if (!hasOptions) return { wait };
  if (!ASYNC.has(verb)) {
    const takesNumber = verb === 'lock' && random.chance(0.7);
    return { wait, options: takesNumber ? given : given === undefined ? undefined : { timeout: given } };
  }
  const { signal, reason } = drawSignal(actor);
  wait.reason = reason;
  if (signal === undefined && random.chance(0.5)) {
    return { wait, options: verb === 'lockAsync' || given === undefined ? given : { timeout: given } };
  }
  return { wait, options: { timeout: given, signal, ref: random.chance(0.8) } };
}

/** A wait of a thread that may hold nothing. */
exports.drawWait = (actor, mutex = actor.random.below(actor.mutexes.length)) => {
  const { random, style } = actor;
  const verb = random.weighted(style.verbs);
  const limits = BLOCKING.has(verb) && actor.isMain ? { timed: 1, once: 1 } : { endless: 5, timed: 3, once: 1 };
  return draw(actor, verb, mutex, limits);
};

/**
 * A wait of a thread that holds something already. Pending promises have a time limit here, since cycles with them are
 * not detected; blocking ones have none, mostly, since theirs are.
 */
exports.drawNested = (actor, isAsync, held) => {
  const { random } = actor;
  const others = actor.mutexes.length - 1;
  const isOther = others > 0 && random.chance(0.9);
  const mutex = isOther ? (held + 1 + random.below(others)) % (others + 1) : held;
  if (isAsync) {
    const verb = random.pick(['lockAsync', 'acquireAsync', 'executeLocked']);
    return draw(actor, verb, mutex, { timed: 5, once: 1 });
  }
  const verb = random.pick(['lock', 'lock', 'acquire', 'executeLockedSync', 'tryLock', 'tryAcquire']);
  return draw(actor, verb, mutex, actor.isMain ? { timed: 1, once: 1 } : { endless: 4, timed: 1 });
};
