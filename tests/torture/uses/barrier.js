// Parties that wait for each other, members, and resets.

const { OUTCOMES } = require('../log.js');
const { Use } = require('../use.js');
const { drawLimit, drawOptions, hold, pass } = require('./inside.js');

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const barrier = actor.things.faces[thing];
  const choice = random.next();
  if (barrier.broken && actor.strikes('mend-broken')) barrier.reset();
  if (choice < 0.1 || (barrier.broken && choice < 0.6)) return exports.reset(actor, thing);
  if (choice < 0.3) {
    const use = new Use(actor, thing, 'barrier.join');
    return hold(actor, use, () => barrier.join(), { release: (member) => member.leave() });
  }
  const isAsync = random.chance(actor.asyncShare);
  const { given, timeout } = drawLimit(actor, isAsync);
  const use = new Use(actor, thing, isAsync ? 'barrier.waitAsync' : 'barrier.wait', { timeout });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const call = () => {
    if (actor.strikes('pass-barrier')) return 1;
    return isAsync ? barrier.waitAsync(options) : barrier.wait(options);
  };
  return pass(actor, use, call, (index) => [OUTCOMES.NOTIFIED, { count: index }]);
};

exports.reset = (actor, thing) => {
  const use = new Use(actor, thing, 'barrier.reset');
  actor.things.faces[thing].reset();
  use.ended(OUTCOMES.NONE);
};
