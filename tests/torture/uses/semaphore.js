// Permits: taken, given back in parts or at once, or forgotten and added again.

const { endIfDue } = require('../body.js');
const { FATES, FORGOTTEN, KINDS } = require('../log.js');
const { THINGS } = require('../things.js');
const { Use } = require('../use.js');
const { drawLimit, drawOptions, hold } = require('./inside.js');

const SYNC = ['acquire', 'acquire', 'tryAcquire', 'executeSync'];
const ASYNC = ['acquireAsync', 'acquireAsync', 'execute'];

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const semaphore = actor.things.faces[thing];
  const isAsync = random.chance(actor.asyncShare);
  const verb = random.pick(isAsync ? ASYNC : SYNC);
  const isTry = verb === 'tryAcquire';
  const count = 1 + (random.chance(0.6) ? 0 : random.below(THINGS[thing].of));
  const { given, timeout } = drawLimit(actor, isAsync);
  const order = isAsync ? actor.nextOrder(thing) : -1;
  const use = new Use(actor, thing, `semaphore.${verb}`, { timeout: isTry ? 0 : timeout, count, order });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  if (!isAsync && actor.strikes('overtake')) return pretend(use);
  const calls = {
    acquire: () => semaphore.acquire(count, options),
    tryAcquire: () => semaphore.tryAcquire(count),
    acquireAsync: () => (misses(actor, timeout) ? timesOut(timeout) : semaphore.acquireAsync(count, options)),
  };
  if (verb in calls) {
    return hold(actor, use, calls[verb], { release: (permits) => giveBack(actor, use, semaphore, permits) });
  }
  return execute(use, (fn) => semaphore[verb](fn, { ...options, permits: count }));
};

/** As if it had stood in the queue for all that time. */
const misses = (actor, timeout) => timeout > 1 && timeout < Infinity && actor.strikes('miss-turn');
const timesOut = (timeout) => new Promise((resolve) => setTimeout(resolve, timeout + 1, null));

/** As if it had been let in. */
function pretend(use) {
  use.held();
  use.leaving();
  use.freed();
}

function giveBack(actor, use, semaphore, permits) {
  const { random } = actor;
  if (actor.strikes('lose-permit')) return permits.forget();
  if (actor.strikes('add-permit')) semaphore.release();
  if (permits.count > 1 && random.chance(0.5)) permits.release(1);
  if (random.chance(0.1)) {
    return addAgain(actor, use, semaphore, permits);
  }
  return permits.release();
}

/** If its thread ends between the two, the main thread adds them: else others would wait for them for ever. */
function addAgain(actor, use, semaphore, permits) {
  const { count } = permits;
  const { fields, at } = use.forgetting(count);
  const { MISSING, ADDED } = FORGOTTEN;
  // V8 ends a thread where a function or a loop begins: never between one of these calls and the line below it.
  permits.forget();
  fields[at] = MISSING;
  // Some of those that are to end by an exit do so here, before their time.
  if (actor.plan.fate === FATES.EXITS && actor.random.chance(0.5)) endIfDue(actor, FATES.EXITS);
  semaphore.release(count);
  fields[at] = ADDED;
}

/** Adds the permits that a thread which has ended had forgotten and not added again. */
exports.addMissing = ({ faces }, log) => {
  for (const { kind, index, mutex, cleared, woken } of log.records()) {
    if (kind !== KINDS.USE || THINGS[mutex].kind !== 'semaphore' || cleared !== FORGOTTEN.MISSING) continue;
    faces[mutex].release(woken);
    log.write(index, { cleared: FORGOTTEN.ADDED });
  }
};

async function execute(use, call) {
  let isIn = false;
  try {
    await call(() => {
      isIn = true;
      use.held();
      use.leaving();
    });
  } catch (error) {
    if (isIn) throw error;
    use.failed(error);
    return;
  }
  use.freed();
}
