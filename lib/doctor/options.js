// The options of `start()`.

const { invalidArgument } = require('../errors.js');

const DEFAULTS = {
  lockOrder: true,
  deadlocks: true,
  contention: true,
  trace: false,
  leaks: false,
  longHoldMs: 100,
  stuckMs: 5000,
  throwOnDeadlock: false,
};

/** All of them, with their defaults. */
exports.toOptions = (options = {}) => {
  if (typeof options !== 'object' || options === null) throw invalidArgument('options', 'an object', options);
  const checked = { ...DEFAULTS };
  for (const [name, byDefault] of Object.entries(DEFAULTS)) {
    const value = options[name];
    if (value === undefined) continue;
    const isMs = typeof byDefault === 'number';
    const isRight = isMs ? typeof value === 'number' && value > 0 : typeof value === 'boolean';
    if (!isRight) {
      throw invalidArgument(`options.${name}`, isMs ? 'a number of milliseconds above 0' : 'a boolean', value);
    }
    checked[name] = value;
  }
  return checked;
};
