// Draws what a round is like, and how each of its threads is to end.

const { FATES } = require('./log.js');

/** What rounds are like, and how often: `crossing` is for deadlocks. */
const PACES = { hot: 2, usual: 4, sparse: 2, crossing: 1 };

exports.PACES = PACES;

/** A round: busy or sparse, many mutexes or few, ends often or seldom. */
exports.drawProfile = (random, options) => {
  const pace = options.pace ?? random.weighted(PACES);
  const think = { hot: 0.005, usual: 0.2, sparse: 0.9, crossing: 0.1 }[pace];
  const isCrossing = pace === 'crossing';
  const styles = isCrossing ? { crosses: 6, mixes: 1 } : { blocks: 2, nests: 2, awaits: 2, mixes: 3 };
  return {
    pace,
    think,
    thinkMs: pace === 'sparse' ? 20 : 5,
    holdUs: isCrossing ? 300 : random.pick([1, 20, 100]),
    busy: random.pick([0, 0.005, 0.02]) * options.busy,
    threads: Math.max(1, Math.min(options.threads, 2 + random.below(options.threads))),
    mutexes: isCrossing ? Math.max(3, options.mutexes) : 1 + random.below(options.mutexes),
    goesOnAfterThrow: options['after-throw'] > 0,
    stride: random.pick([4, 64]),
    styles: Array.from({ length: 7 }, () => random.weighted(styles)),
    ms: options['round-seconds'] * 1000 * random.between(0.5, 1.2),
    killEveryMs: options.deaths === 0 ? Infinity : random.pick([60, 150, 400]) / options.deaths,
    suicides: options.deaths === 0 ? 0 : 0.5,
    lifeMs: 1500 / (options.deaths || 1),
  };
};

/** How a thread is to end by itself, and when: `{ fate, after }`. */
exports.drawPlan = (random, profile) => {
  if (!random.chance(profile.suicides)) return { fate: FATES.RUNNING, after: 0 };
  const fate = FATES[random.weighted({ EXITS: 4, THROWS: 4, RETURNS: 4, OVERFLOWS: 0.5 })];
  return { fate, after: random.between(20, profile.lifeMs) };
};
