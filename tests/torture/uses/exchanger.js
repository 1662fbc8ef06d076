// Values that two swap. Each call brings a value of its own, by which the logs show who met whom.

const { OUTCOMES } = require('../log.js');
const { Use } = require('../use.js');
const { drawLimit, drawOptions, pass } = require('./inside.js');

const SLOT = 2 ** 20;

function exchange(actor, thing, isAsync, { given, timeout }) {
  const face = actor.things.faces[thing];
  actor.values = (actor.values ?? 0) + 1;
  const value = (actor.slot + 1) * SLOT + actor.values;
  const verb = isAsync ? 'exchanger.exchangeAsync' : 'exchanger.exchange';
  const use = new Use(actor, thing, verb, { timeout, count: value });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const call = () => (isAsync ? face.exchangeAsync(value, options) : face.exchange(value, options));
  return pass(actor, use, call, (got) => [OUTCOMES.NOTIFIED, { woken: actor.strikes('swap-value') ? got + 1 : got }]);
}

exports.perform = (actor, thing) => {
  const isAsync = actor.random.chance(actor.asyncShare);
  return exchange(actor, thing, isAsync, drawLimit(actor, isAsync));
};

/** Meets whoever is there, so that nobody waits in vain. */
exports.meet = (actor, thing) => exchange(actor, thing, true, { given: 0, timeout: 0 });
