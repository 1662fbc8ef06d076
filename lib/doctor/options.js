// The options of `start()`.

const { checkNames, checkOptions, own } = require('../arguments.js');
const { invalidArgument } = require('../errors.js');

const DEFAULTS = {
  lockOrder: true,
  deadlocks: true,
  contention: true,
  trace: false,
  leaks: false,
  places: true,
  longHoldMs: 100,
  likelyMs: 1000,
  stuckMs: 5000,
  throwOnDeadlock: false,
};

function expected(name, byDefault, value) {
  if (typeof byDefault === 'number') {
    return typeof value === 'number' && value > 0 ? null : 'a number of milliseconds above 0';
  }
  if (typeof value === 'boolean') return null;
  if (name !== 'throwOnDeadlock') return 'a boolean';
  return value === 'likely' ? null : 'a boolean or "likely"';
}

/** All of them, with their defaults. */
exports.toOptions = (options = {}) => {
  checkOptions(options);
  checkNames(options, Object.keys(DEFAULTS));
  const checked = { ...DEFAULTS };
  for (const [name, byDefault] of Object.entries(DEFAULTS)) {
    const value = own(options, name);
    if (value === undefined) continue;
    const right = expected(name, byDefault, value);
    if (right !== null) throw invalidArgument(`options.${name}`, right, value);
    checked[name] = value;
  }
  return checked;
};
