// Entries of a latch, and waits until there are none. Counts that outlive their thread are the main thread's only.

const { OUTCOMES } = require('../log.js');
const { Use } = require('../use.js');
const { drawLimit, drawOptions, hold, pass } = require('./inside.js');

const outcomeOf = (isOpen) => [isOpen ? OUTCOMES.NOTIFIED : OUTCOMES.TIMED_OUT];

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const latch = actor.things.faces[thing];
  if (random.chance(0.5)) return wait(actor, thing, latch);
  if (actor.isMain && random.chance(0.3)) {
    const use = new Use(actor, thing, 'latch.add');
    return hold(actor, use, () => latch.add(2) ?? true, { release: () => latch.countDown(2) });
  }
  const use = new Use(actor, thing, 'latch.enter');
  return hold(actor, use, () => latch.enter(), {
    release(entry) {
      if (actor.strikes('keep-entry')) return;
      if (actor.strikes('count-twice')) latch.countDown();
      if (!entry.leave()) actor.complain('entries', `${use}: others had counted it down`);
    },
  });
};

function wait(actor, thing, latch) {
  const isAsync = actor.random.chance(actor.asyncShare);
  const { given, timeout } = drawLimit(actor, isAsync);
  const use = new Use(actor, thing, isAsync ? 'latch.waitAsync' : 'latch.wait', { timeout });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const call = () => {
    if (actor.strikes('pass-latch')) return true;
    if (isAsync && timeout > 1 && timeout < Infinity && actor.strikes('miss-opening')) {
      return new Promise((resolve) => setTimeout(resolve, timeout + 1, false));
    }
    return isAsync ? latch.waitAsync(options) : latch.wait(options);
  };
  return pass(actor, use, call, outcomeOf);
}
