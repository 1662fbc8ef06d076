// Checks and converts what users pass, before anything is changed.

const { isSharedArrayBuffer } = require('node:util/types');
const { lazily } = require('./load/lazily.js');

const errors = lazily(() => require('./errors.js'));

const TIMEOUT = 'a number of milliseconds or an options object';
const MILLISECONDS = 'a number of milliseconds';
/** The options of an asynchronous wait, if none are given. */
const NO_OPTIONS = { timeout: Infinity, signal: undefined, ref: true };
const DEFAULTS = { allowMainThread: false, maySleep: true, name: undefined, onAbandoned: undefined };

/** Infinity for ever, zero or less one try. */
function toMilliseconds(place, name, value, expected) {
  if (value === undefined) return Infinity;
  if (typeof value !== 'number') throw errors().invalidArgument(name, expected, value, place);
  return Number.isNaN(value) ? Infinity : value;
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}

const { getPrototypeOf, hasOwn, prototype: OBJECT } = Object;

/**
 * Whether an object may be one of options: no array, signal, date or promise. Whoever passes such a thing believes that it means
 * something. Objects of the program's own classes, and of other realms, are as good as literals.
 */
function isOptions(object) {
  const prototype = getPrototypeOf(object);
  if (prototype === OBJECT || prototype === null) return true;
  return OBJECT.toString.call(object) === '[object Object]' && !isAbortSignal(object);
}

/** Throws for what is no object, and for an object that is none of options. */
function checkOptions(options, place) {
  if (!isObject(options)) throw errors().invalidArgument('options', 'an object', options, place);
  if (!isOptions(options)) throw errors().noOptions('options', options, place);
}

/** Throws for an option that is not known, and near one that is or known elsewhere: it would mean nothing, and the wait be for ever. */
function checkNames(options, known, place, isBlocking) {
  for (const name in options) {
    if (known.includes(name) || !hasOwn(options, name)) continue;
    errors().checkUnknown(name, known, place, options, undefined, isBlocking);
  }
}

/** The value of an option, read once: the object's own, whatever a prototype has; `usual` if there is none. */
function own(options, name, usual) {
  const value = hasOwn(options, name) ? options[name] : undefined;
  return value === undefined ? usual : value;
}

exports.checkNames = checkNames;
exports.checkOptions = checkOptions;
exports.isOptions = isOptions;
exports.own = own;

/** Options of all that wait; some mean nothing to some. */
const OF_WAITS = ['timeout', 'signal', 'ref'];
const OF_FUTEX = ['signal', 'ref'];
const OF_EXECUTE = [...OF_WAITS, 'permits'];
const OF_PRIMITIVES = ['allowMainThread', 'name'];
const NONE = [];

/** Options of the constructors of locks that are marked and repaired. */
const OF_LOCKS = [...OF_PRIMITIVES, 'maySleep', 'onAbandoned'];

exports.OF_EXECUTE = OF_EXECUTE;
exports.OF_LOCKS = OF_LOCKS;
exports.OF_PRIMITIVES = OF_PRIMITIVES;

/** The number of permits in the options of `execute` and `executeSync`. */
exports.toPermits = (place, options) => {
  if (!isObject(options)) return 1;
  checkOptions(options, place);
  return own(options, 'permits', 1);
};

/**
 * From `Timeout | LockOptions` to milliseconds, for a call that blocks. The place, a lock or its word, is for the message; `known` are
 * the names of the verb's options.
 */
exports.toTimeout = (place, timeout, known = OF_WAITS) => {
  if (!isObject(timeout)) return toMilliseconds(place, 'timeout', timeout, TIMEOUT);
  checkOptions(timeout, place);
  let limit;
  for (const name in timeout) {
    if (!hasOwn(timeout, name)) continue;
    if (name === 'timeout') limit = timeout.timeout;
    else checkBlockingOption(timeout, name, place, known);
  }
  // The ones that are not enumerable, too: for a literal this costs nothing.
  if (limit === undefined && 'timeout' in timeout) limit = own(timeout, 'timeout');
  if ('signal' in timeout && hasOwn(timeout, 'signal')) checkBlockingOption(timeout, 'signal', place);
  if ('ref' in timeout && hasOwn(timeout, 'ref')) checkBlockingOption(timeout, 'ref', place);
  return toMilliseconds(place, 'options.timeout', limit, MILLISECONDS);
};

/** Throws for an option that a call that blocks does not have. */
function checkBlockingOption(options, name, place, known = OF_WAITS) {
  if (!known.includes(name)) errors().checkUnknown(name, known, place, options, undefined, true);
  else if (!OF_FUTEX.includes(name)) return;
  else if (options[name] !== undefined) throw errors().notForBlocking(name, place);
}

exports.checkBlockingOption = checkBlockingOption;

/** From `Timeout | AsyncLockOptions` to `{ timeout, signal, ref }`, all of them set but the signal. `known` as in `toTimeout`. */
exports.toAsyncOptions = (place, options, known = OF_WAITS) => {
  if (options === undefined) return NO_OPTIONS;
  if (!isObject(options)) {
    return { timeout: toMilliseconds(place, 'timeout', options, TIMEOUT), signal: undefined, ref: true };
  }
  checkOptions(options, place);
  let timeout;
  let signal;
  let ref;
  for (const name in options) {
    if (!hasOwn(options, name)) continue;
    if (name === 'timeout') timeout = options.timeout;
    else if (name === 'signal') signal = options.signal;
    else if (name === 'ref') ref = options.ref;
    else if (!known.includes(name)) errors().checkUnknown(name, known, place, options);
  }
  // As in `toTimeout`.
  if (timeout === undefined && 'timeout' in options) timeout = own(options, 'timeout');
  if (signal === undefined && 'signal' in options) signal = own(options, 'signal');
  if (ref === undefined && 'ref' in options) ref = own(options, 'ref');
  if (ref === undefined) ref = true;
  checkWaitOptions(signal, ref, place);
  return { timeout: toMilliseconds(place, 'options.timeout', timeout, MILLISECONDS), signal, ref };
};

/** The options of `waitAsync`: `{ signal, ref }`, both set but the signal. */
exports.toWaitOptions = (options) => {
  if (options === undefined) return NO_OPTIONS;
  checkOptions(options);
  const signal = own(options, 'signal');
  const ref = own(options, 'ref', true);
  checkNoOptions(options, OF_FUTEX, ['timeout']);
  checkNames(options, OF_FUTEX);
  checkWaitOptions(signal, ref);
  return { signal, ref };
};

const FUTEX =
  'The timeout of wait() and waitAsync() is a number: waitAsync(typedArray, index, value, timeout, { signal, ref }).';

/** Throws for an option that is not known and near one of `names`, where the waiting functions take none of these. */
function checkNoOptions(value, known, names) {
  for (const name in value) {
    if (!known.includes(name) && hasOwn(value, name)) errors().checkUnknown(name, names, undefined, value, FUTEX);
  }
}

/** Refuses a value that is not a number and stands where the waiting functions take their timeout. */
exports.checkNoTimeout = (value) => {
  if (isAbortSignal(value)) throw errors().noOptions('timeout', value);
  checkNoOptions(value, NONE, OF_WAITS);
};

function checkWaitOptions(signal, ref, place) {
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw errors().invalidArgument('options.signal', 'an AbortSignal', signal, place);
  }
  exports.checkBoolean('options.ref', ref, place);
}

// By what it does, not by its class: another realm's signals, and polyfills, are as good.
function isAbortSignal(value) {
  return (
    isObject(value) &&
    typeof value.aborted === 'boolean' &&
    typeof value.addEventListener === 'function' &&
    typeof value.removeEventListener === 'function'
  );
}

exports.isAbortSignal = isAbortSignal;

/** Why a signal has aborted: those of polyfills and of old runtimes do not say it. */
exports.reasonOf = ({ reason }) => (reason === undefined ? errors().abortedWithoutReason() : reason);

/** `place` is a lock or its word, for the message; here, and below. */
exports.checkBoolean = (name, value, place) => {
  if (typeof value !== 'boolean') throw errors().invalidArgument(name, 'a boolean', value, place);
};

exports.checkFunction = (place, name, value) => {
  if (typeof value !== 'function') throw errors().invalidArgument(name, 'a function', value, place);
};

/** The arguments of the verbs that run a function: a number behind it, others' weight or time, would be taken for a timeout. */
exports.checkExecuted = (place, fn, options) => {
  exports.checkFunction(place, 'fn', fn);
  if (typeof options === 'number') {
    const advice = ' Say what it is: { timeout: 500 }, or { permits: 2 } of a semaphore.';
    throw errors().invalidArgument('options', 'an object', options, place, advice);
  }
};

/** A view of the four bytes of a mutex, or of a condition. */
exports.toWord = (buffer, byteOffset) => exports.toWords(buffer, byteOffset, 4);

/** A view of the bytes of a primitive. */
exports.toWords = (buffer, byteOffset = 0, bytes = 4) => {
  if (!isSharedArrayBuffer(buffer)) throw errors().notShared(buffer);
  if (typeof byteOffset !== 'number') throw errors().invalidArgument('byteOffset', 'a number', byteOffset);
  if (!Number.isInteger(byteOffset) || byteOffset < 0 || byteOffset % 4 !== 0) {
    throw errors().outOfRange('byteOffset', 'a multiple of 4, 0 or more', byteOffset);
  }
  if (byteOffset + bytes > buffer.byteLength) {
    throw errors().outOfRange(
      'byteOffset',
      `${bytes} bytes or more before the end of the ${buffer.byteLength} bytes`,
      byteOffset,
    );
  }
  return new Int32Array(buffer, byteOffset, bytes / 4);
};

exports.isThenable = (value) =>
  value !== null && (typeof value === 'object' || typeof value === 'function') && typeof value.then === 'function';

exports.isIterable = (value) => isObject(value) && typeof value[Symbol.iterator] === 'function';

/** A number of a count: an integer of 1 or more, or of `least`. */
exports.toCountOf = (place, n, name = 'n', most = 2 ** 30, least = 1) => {
  if (typeof n !== 'number') throw errors().invalidArgument(name, 'a number', n, place);
  if (!Number.isInteger(n) || n < least || n > most) {
    throw errors().outOfRange(name, `an integer from ${least} to ${most}`, n);
  }
  return n;
};

/** The number of waiters that a notification of a condition is for. */
exports.toWaiters = (count) => {
  if (typeof count !== 'number') throw errors().invalidArgument('count', 'a number', count);
  if (!(count >= 0)) throw errors().outOfRange('count', 'a number of waiters, 0 or more', count);
  return count;
};

/**
 * The options of the constructors: `{ allowMainThread, maySleep, name, onAbandoned }`, the last two undefined if they are not
 * given. `known` are the names of those that the class has.
 */
exports.toLockOptions = (options, known = OF_PRIMITIVES) => {
  if (options === undefined) return DEFAULTS;
  checkOptions(options);
  checkNames(options, known);
  const allowMainThread = own(options, 'allowMainThread', false);
  const maySleep = own(options, 'maySleep', true);
  const name = own(options, 'name');
  const onAbandoned = own(options, 'onAbandoned');
  exports.checkBoolean('options.allowMainThread', allowMainThread);
  exports.checkBoolean('options.maySleep', maySleep);
  if (name !== undefined && typeof name !== 'string') {
    throw errors().invalidArgument('options.name', 'a string', name);
  }
  if (onAbandoned !== undefined) exports.checkFunction(undefined, 'options.onAbandoned', onAbandoned);
  return { allowMainThread, maySleep, name, onAbandoned };
};
