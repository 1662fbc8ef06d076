// Setting, resetting and waiting for an event, of either kind.

const { OUTCOMES } = require('../log.js');
const { Use } = require('../use.js');
const { drawLimit, drawOptions, pass } = require('./inside.js');

const outcomeOf = (isSet) => [isSet ? OUTCOMES.NOTIFIED : OUTCOMES.TIMED_OUT];

exports.perform = async (actor, thing) => {
  const { random } = actor;
  const event = actor.things.faces[thing];
  if (random.chance(0.3)) return exports.signal(actor, thing, 'set');
  if (random.chance(0.2)) return exports.signal(actor, thing, 'reset');
  const isAsync = random.chance(actor.asyncShare);
  const { given, timeout } = drawLimit(actor, isAsync);
  const use = new Use(actor, thing, isAsync ? 'event.waitAsync' : 'event.wait', { timeout });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const call = () => {
    if (actor.strikes('pass-event') || actor.strikes('pass-twice')) return true;
    return isAsync ? event.waitAsync(options) : event.wait(options);
  };
  return pass(actor, use, call, outcomeOf);
};

/** `verb` is `set` or `reset`. */
exports.signal = (actor, thing, verb) => {
  const use = new Use(actor, thing, verb);
  const isLost = verb === 'set' && (actor.strikes('lose-set') || actor.strikes('lose-auto-set'));
  if (!isLost) actor.things.faces[thing][verb]();
  use.ended(OUTCOMES.NONE);
};
