// Several mutexes at once, in one call: a wait is logged for each of them.

const { KEEP } = require('./verbs.js');
const { drawSignal, drawTimeout } = require('./choices.js');
const { endIfDue } = require('./body.js');
const { OUTCOMES } = require('./log.js');
const { lockAll, lockAllAsync } = require('./package.js');
const { lockableOf } = require('./table-face.js');
const { Wait } = require('./wait.js');

/** Some of them, each once, in any order. */
function drawMutexes({ random, mutexes }) {
  const left = [...mutexes.keys()];
  const count = 1 + random.below(Math.min(4, left.length));
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]);
}

exports.performSeveral = async (actor) => {
  const { random, style } = actor;
  const isAsync = !actor.mayBlock || (style.verbs.lockAsync !== undefined && random.chance(0.6));
  const chosen = drawMutexes(actor);
  // Promises hold meanwhile what they have already: cycles with them are not detected.
  const { given, timeout } = drawTimeout(random, isAsync ? { timed: 5, once: 1 } : { endless: 4, timed: 2, once: 1 });
  const waits = chosen.map((mutex) => new Wait(actor, isAsync ? 'lockAllAsync' : 'lockAll', mutex, timeout));
  // One more than once, now and then.
  const named = random.chance(0.1) ? [...chosen, chosen[0]] : chosen;
  const lockables = named.map((mutex) => lockableOf(actor.mutexes[mutex]));
  const { signal, reason } = isAsync ? drawSignal(actor) : {};
  for (const wait of waits) wait.reason = reason;
  let guard;
  try {
    guard = isAsync
      ? await lockAllAsync(lockables, { timeout: given, signal, ref: random.chance(0.8) })
      : lockAll(lockables, { timeout: given });
  } catch (error) {
    fail(actor, waits, error);
    return;
  }
  for (const wait of waits) wait.held();
  const marked = waits.filter(({ mutex }) => actor.mutexes[mutex].abandoned).length;
  if (guard.abandoned.length !== marked) {
    actor.complain('marked', `lockAll says that ${guard.abandoned.length} are marked, and ${marked} are`);
  }
  if (endIfDue(actor) === KEEP) return;
  actor.spin(random.between(0, actor.profile.holdUs) / 1000);
  for (const wait of waits) {
    if (wait.abandoned && random.chance(0.5)) {
      wait.clearing();
      actor.mutexes[wait.mutex].markConsistent();
    }
    wait.leaving();
  }
  if (guard.unlock() !== true || guard.locked) actor.complain('refused', 'the guard of lockAll did not unlock');
  for (const wait of waits) wait.freed();
};

/** A deadlock is one of them's, which the cycle begins with. */
function fail(actor, waits, error) {
  const first = error?.code === 'ERR_LOCK_DEADLOCK' ? actor.arena.mutexAt(error.cycle[0].byteOffset) : undefined;
  for (const wait of waits) {
    if (first === undefined || wait.mutex === first) wait.failed(error);
    else wait.ended(OUTCOMES.REFUSED);
  }
  if (first !== undefined && !waits.some(({ mutex }) => mutex === first)) {
    actor.complain('deadlock', `lockAll: the cycle begins with ${first}, which it was not called for`);
  }
}
