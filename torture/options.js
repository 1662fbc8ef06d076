// The command line of the torture run.

const { parseArgs } = require('node:util');
const { PACES } = require('./plans.js');
const { SABOTAGES } = require('./sabotage.js');

const NUMBERS = {
  seconds: 20,
  seed: 1,
  threads: 6,
  mutexes: 4,
  /** How often loops are kept from turning, relative to the usual. */
  busy: 1,
  /** How often threads end, relative to the usual. */
  deaths: 1,
  /** Whether a thread's other tasks go on in the moment between its uncaught error and its end: 1 or 0. */
  'after-throw': 1,
  /** The first round to run, to come back to one that failed. */
  round: 1,
  'round-seconds': 2.5,
  /** Without any progress for so many milliseconds, the run has failed. */
  patience: 10_000,
  /** No wait shorter than this, in milliseconds, counts as overtaken. */
  slack: 3000,
};

exports.readOptions = (args) => {
  const options = {
    sabotage: { type: 'string' },
    pace: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  };
  for (const name in NUMBERS) options[name] = { type: 'string', default: String(NUMBERS[name]) };
  const { values } = parseArgs({ args, options });
  for (const name in NUMBERS) {
    const value = Number(values[name]);
    if (!(value >= 0)) throw new RangeError(`--${name} must be a number, 0 or more; got ${values[name]}`);
    values[name] = value;
  }
  if (values.pace !== undefined && !(values.pace in PACES)) {
    throw new RangeError(`--pace must be one of ${Object.keys(PACES).join(', ')}; got ${values.pace}`);
  }
  if (values.sabotage !== undefined && !(values.sabotage in SABOTAGES)) {
    throw new RangeError(`--sabotage must be one of ${Object.keys(SABOTAGES).join(', ')}; got ${values.sabotage}`);
  }
  return values;
};
