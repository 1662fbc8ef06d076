// A thread does this while it holds: nothing, work, other locks, wrong calls, or its own end.

const { setImmediate: turn, setTimeout: sleep } = require('node:timers/promises');
const { FATES } = require('./log.js');
const { KEEP, perform, performSync } = require('./verbs.js');
const { drawNested } = require('./choices.js');
const { notifySome, waitWithMutex, waitWithMutexAsync } = require('./conditions.js');

exports.endIfDue = end;

const DEEPEST = 3;

/** The bodies of the hold of `wait`, `depth` holds deep. */
exports.bodiesOf = (actor, wait, depth) => ({
  sync: () => inside(actor, wait) ?? syncBody(actor, wait, depth),
  async: async () => inside(actor, wait) ?? (await asyncBody(actor, wait, depth)),
});

/** Begins every hold. */
function inside(actor, wait) {
  const { random } = actor;
  const mutex = actor.mutexes[wait.mutex];
  if (actor.mayBlock && actor.strikes('sleep-inside')) actor.sleep(60_000);
  if (wait.abandoned ? random.chance(0.5) : random.chance(0.01)) {
    wait.clearing();
    mutex.markConsistent();
    if (mutex.abandoned) actor.complain('marked', `${wait} is marked after markConsistent`);
  }
  return end(actor);
}

/** If this thread is to end by itself: now, while it holds. `fate`: how, if it is due. */
function end(actor, fate = actor.dueFate()) {
  switch (fate) {
    case FATES.EXITS:
      actor.meet(fate);
      process.exit(actor.random.below(3));
      for (;;);
    case FATES.THROWS:
      actor.meet(fate);
      queueMicrotask(() => {
        throw new Error('torture: thrown by a holder');
      });
      return KEEP;
    case FATES.OVERFLOWS: {
      actor.meet(fate);
      const heap = [];
      for (;;) heap.push(new Array(500).fill(heap.length + 0.5));
    }
    default:
      return undefined;
  }
}

function syncBody(actor, wait, depth) {
  const { random, profile } = actor;
  const { holdUs } = profile;
  if (depth < DEEPEST && random.chance(actor.style.nest)) {
    if (profile.pace === 'crossing') actor.sleep(random.between(0, 3));
    else if (random.chance(0.5)) actor.spin(random.between(0, holdUs) / 1000);
    const { wait: nested, options } = drawNested(actor, false, wait.mutex);
    performSync(actor, nested, options, exports.bodiesOf(actor, nested, depth + 1).sync);
    return undefined;
  }
  if (random.chance(profile.waitsWithMutex)) {
    if (actor.mayBlock && !random.chance(profile.notifying.share)) waitWithMutex(actor, wait, depth > 0);
    else notifySome(actor);
    return undefined;
  }
  const choice = random.next();
  if (choice < 0.4) return undefined;
  if (choice < 0.7) actor.spin(random.between(0, holdUs) / 1000);
  else if (choice < 0.72) actor.spin(random.between(0.5, 3));
  else if (choice < 0.8) actor.misuse.try(wait);
  else if (random.chance(profile.busy)) actor.beBusy();
  return undefined;
}

async function asyncBody(actor, wait, depth) {
  const { random } = actor;
  const choice = random.next();
  // With nothing else held: it locks the mutex again without a limit, and cycles with promises are not detected.
  if (depth === 0 && random.chance(actor.profile.waitsWithMutex)) await waitWithMutexAsync(actor, wait);
  else if (choice < 0.3) await turn();
  else if (choice < 0.4) await sleep(random.below(4));
  else if (choice < 0.5) for (let step = 0; step < 10; step++) await undefined;
  else if (choice < 0.5 + actor.style.nest && depth < DEEPEST) {
    const { wait: nested, options } = drawNested(actor, true, wait.mutex);
    await perform(actor, nested, options, exports.bodiesOf(actor, nested, depth + 1));
  } else return syncBody(actor, wait, depth);
  // Other tasks of this thread have run: it may be time.
  return end(actor);
}
