// Functions that are to be run once: most of them fail, so that the next one runs.

const { OUTCOMES } = require('../log.js');
const { ofKind } = require('../things.js');
const { Use } = require('../use.js');
const { KEEP } = require('../verbs.js');
const { drawLimit, drawOptions, inside, insideAsync } = require('./inside.js');

const ALL = ofKind('once');
const FAILURE = new Error('torture: the next one is to run');

/** One of the first that are not done. */
function draw({ random, things }) {
  const first = ALL.findIndex((thing) => !things.faces[thing].isDone);
  return ALL[first < 0 ? random.below(ALL.length) : Math.min(ALL.length - 1, first + random.below(2))];
}

exports.perform = async (actor) => {
  const { random } = actor;
  const thing = draw(actor);
  const once = actor.things.faces[thing];
  const isAsync = random.chance(actor.asyncShare);
  const { given, timeout } = drawLimit(actor, isAsync);
  const use = new Use(actor, thing, isAsync ? 'once.run' : 'once.runSync', { timeout });
  const options = isAsync ? drawOptions(actor, use, given) : { timeout: given };
  const fails = random.chance(0.95);
  const begin = ({ abandoned }) => {
    use.held({ abandoned: Number(abandoned) });
    use.alone(abandoned);
  };
  const end = () => {
    use.aloneNoMore();
    use.leaving();
    if (fails) throw FAILURE;
    // The run came to its end.
    use.clearing();
  };
  const runAsync = async (given) => {
    begin(given);
    if ((await insideAsync(actor)) === KEEP) await new Promise(() => {});
    end();
  };
  const run = (given) => {
    begin(given);
    inside(actor);
    end();
  };
  if (actor.strikes('run-again')) return twice(use, run);
  try {
    const hasRun = await (isAsync ? once.run(runAsync, options) : once.runSync(run, options));
    if (hasRun) use.freed();
    else use.ended(OUTCOMES.REFUSED);
  } catch (error) {
    if (error === FAILURE) use.freed();
    else use.failed(error);
  }
  return undefined;
};

/** As if it were this one's turn. */
function twice(use, run) {
  try {
    run({ abandoned: false });
  } catch (error) {
    if (error !== FAILURE) throw error;
  }
  use.freed();
}
