// The arguments of named locks are converted as Web IDL does for the Web Locks API, and checked in the specification's order,
// before anything is changed.

const clock = require('../load/clock.js');
const { binding } = require('../engine/thread.js');
const { invalidArgument } = require('../errors.js');
const { checkBlockingOption, checkBoolean, checkNames, checkOptions, isAbortSignal } = require('../arguments.js');
const { notSupported, placeOf } = require('./errors.js');

const { Exclusive, Shared } = binding.NameMode;

/** The options if nothing is said. */
const DEFAULTS = {
  mode: Exclusive,
  ifAvailable: false,
  steal: false,
  signal: undefined,
  timeout: Infinity,
  ref: true,
  fence: false,
};

const KNOWN = Object.keys(DEFAULTS);

/**
 * A name as any value of JavaScript becomes one, but for `undefined`: all who pass it by mistake would share one lock.
 */
function toName(name) {
  if (name === undefined) throw invalidArgument('name', 'a string', name);
  return typeof name === 'string' ? name : `${name}`;
}

/** From what users pass to options of which all are set but the signal. */
function toOptions(name, options, isBlocking = false) {
  if (options === undefined || options === null) return DEFAULTS;
  const place = placeOf(name);
  // Functions are no options. Not so in Web IDL: a callback would count as none, and never run.
  checkOptions(options, place);
  // As Web IDL reads a dictionary: in the order of their names, those that are inherited too.
  const { fence = false, ifAvailable, mode, ref = true, signal, steal, timeout = Infinity } = options;
  checkNames(options, KNOWN, place, isBlocking);
  checkBoolean('options.fence', fence, place);
  checkBoolean('options.ref', ref, place);
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw invalidArgument('options.signal', 'an AbortSignal', signal, place);
  }
  if (typeof timeout !== 'number') {
    throw invalidArgument('options.timeout', 'a number of milliseconds', timeout, place);
  }
  return {
    mode: toMode(mode, name),
    ifAvailable: Boolean(ifAvailable),
    steal: Boolean(steal),
    signal,
    timeout: Number.isNaN(timeout) ? Infinity : timeout,
    ref,
    fence,
  };
}

function toMode(mode, name) {
  const text = mode === undefined ? 'exclusive' : `${mode}`;
  if (text === 'exclusive') return Exclusive;
  if (text === 'shared') return Shared;
  throw invalidArgument('options.mode', '"exclusive" or "shared"', mode, placeOf(name));
}

/** As `toOptions`, for what blocks: no event loop turns there in which a signal could abort. */
function toBlockingOptions(name, options) {
  const asked = toOptions(name, options, true);
  if (asked === DEFAULTS) return asked;
  for (const option of ['signal', 'ref']) checkBlockingOption(options, option, placeOf(name));
  return asked;
}

/** Refuses requests that the specification does not allow for this name, or this backend. */
function checkRequest(backend, name, options) {
  backend.outer?.check?.();
  if (name.charCodeAt(0) === HYPHEN) {
    throw notSupported(`The name ${JSON.stringify(name)} begins with a hyphen, which is reserved. Use another.`);
  }
  if (options === DEFAULTS) return;
  const { steal, ifAvailable, signal } = options;
  if (steal && ifAvailable) {
    throw notSupported('The options "steal" and "ifAvailable" exclude each other: what is stolen is always available.');
  }
  if (steal && options.mode !== Exclusive) {
    throw notSupported('The option "steal" needs the mode "exclusive".');
  }
  if (signal !== undefined && (steal || ifAvailable)) {
    throw notSupported('The option "signal" excludes "steal" and "ifAvailable", with which nothing is waited for.');
  }
  if (options.mode !== Exclusive && !backend.canShare) {
    throw notSupported('The mode "shared" is not for this store: its server has none. Ask for "exclusive".');
  }
  if (steal && !backend.canSteal) {
    throw notSupported(
      'The option "steal" is for locks of the process only: nothing can stop a holder in another process.',
    );
  }
}

const HYPHEN = 0x2d;

/**
 * The time that is left until then, in milliseconds. Once it is over that is not 0, unless `timeout` was: 0 means a try, and for the
 * answer to that a store may take its time.
 */
exports.timeLeft = (deadline, timeout) => Math.max(deadline - clock.now(), timeout > 0 ? Number.MIN_VALUE : 0);

/** Users' names of the modes, by the binding's numbers. */
exports.MODES = ['exclusive', 'shared'];
exports.DEFAULTS = DEFAULTS;
exports.toName = toName;
exports.toOptions = toOptions;
exports.toBlockingOptions = toBlockingOptions;
exports.checkRequest = checkRequest;
