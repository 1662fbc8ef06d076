// Every error of the package: what failed, on which mutex, what to do. The codes are stable.

const { inspect } = require('node:util');
const { isAnyArrayBuffer, isSharedArrayBuffer } = require('node:util/types');
const { DOMException } = require('./load/clock.js');

/** A message has so many names of locks that were asked for together. */
const MOST_NAMES = 5;

const LOCK_ADVICE = 'Wait longer, or use lock() or lockAsync(), which return false instead.';

/** Gives an error these properties. Defined, not assigned: where the prototypes are frozen, a name could not be assigned. */
function assign(error, properties) {
  for (const [name, value] of Object.entries(properties)) {
    Object.defineProperty(error, name, { value, configurable: true, enumerable: true, writable: true });
  }
  return error;
}

/** A verb that ran out of time, and could not return anything that says so. */
class TimeoutError extends Error {
  /** Not for users: `index.d.ts` declares it private. `state` says why, and `advice` what to do. */
  constructor(place, timeout, verb, state, advice = LOCK_ADVICE) {
    super(`${verb}() timed out after ${timeout} ms waiting for ${describe(place)}. ${state} ${advice}`);
    assign(this, { name: 'TimeoutError', code: 'ERR_LOCK_TIMEOUT' });
  }
}

/** A blocking wait without a timeout that could never end. */
class DeadlockError extends Error {
  /** Not for users: `index.d.ts` declares it private. */
  constructor(place, cycle, kinds = []) {
    super(describeCycle(place, cycle, kinds));
    assign(this, { name: 'DeadlockError', code: 'ERR_LOCK_DEADLOCK', cycle });
    // Loaded now: few programs have one.
    require('./error-stack.js').beginWithProgram(this);
  }
}

/** A barrier that parties do not pass any more. */
class BrokenBarrierError extends Error {
  /** Not for users: `index.d.ts` declares it private. */
  constructor(place) {
    super(
      `Cannot pass ${describe(place)}, which is broken: a party timed out, was aborted or ended, a member's thread ended, or ` +
        'reset() was called meanwhile. When all parties have stopped, call reset() in one of them.',
    );
    assign(this, { name: 'BrokenBarrierError', code: 'ERR_LOCK_BROKEN' });
  }
}

/** A lock that ended while it was held. */
class LockLostError extends Error {
  /** Not for users: `index.d.ts` declares it private. `reason` is a key of `LOSSES`. */
  constructor(name, fence, reason, heldMs) {
    super(
      `The named lock ${inspect(name)} was lost after ${Math.round(heldMs)} ms: ${LOSSES[reason]} Others may hold it now. ` +
        'Stop what needs it; a resource that checks fences refuses the rest.',
    );
    assign(this, { name: 'LockLostError', code: 'ERR_LOCK_LOST', lockName: name, fence, reason, heldMs });
  }
}

/** Ends of a lock while it is held. */
const LOSSES = {
  unreachable: 'its store did not answer for so long that it may have given the lock away.',
  taken: 'its store has ended it: a session was ended, a lease revoked, data removed, or a server failed over.',
  closed: 'its LockManager was closed.',
  worker: 'the thread that kept it has ended.',
};

/** A lock, or its word, as messages name it. */
function describe({ byteOffset = -1, name, kind = 'mutex' }, as = kind) {
  if (byteOffset < 0 && Array.isArray(name)) {
    const more = name.length > MOST_NAMES ? `, and ${name.length - MOST_NAMES} more` : '';
    return `the named locks ${name
      .slice(0, MOST_NAMES)
      .map((one) => inspect(one))
      .join(', ')}${more}`;
  }
  if (byteOffset < 0) return `the named lock ${inspect(name)}`;
  return `the ${as} ${typeof name === 'string' ? `${inspect(name)} ` : ''}at byte offset ${byteOffset}`;
}

/** The message of a deadlock that was found at `place`, where the cycle begins. */
function describeCycle(place, cycle, kinds) {
  const [{ threadId }] = cycle;
  if (cycle.length === 1 && place.verb === 'run') {
    return (
      `Deadlock: thread ${threadId} would wait for ever for ${describe(place)}, which it runs itself, or waits to run ` +
      'already, perhaps in a run() that is not over. Await that, or give a timeout.'
    );
  }
  if (cycle.length === 1) {
    // The order of names is strict: its own pending requests are in the way, whoever holds the lock.
    const orAhead = place.type === 'HeldLock' ? ' or waits for already,' : '';
    return (
      `Deadlock: thread ${threadId} would wait for ever for ${describe(place)}, which it holds itself,` +
      `${orAhead} directly or by one of its asynchronous tasks. Unlock it first, or give a timeout.`
    );
  }
  const steps = cycle.map((wait, index) => {
    // A long one has only its first steps here.
    const isCut = kinds.length > cycle.length && index === cycle.length - 1;
    const holder = isCut ? 'another, and so on' : `thread ${cycle[(index + 1) % cycle.length].threadId}`;
    return `thread ${wait.threadId} waits for ${describe(index === 0 ? place : { ...wait, kind: kinds[index]?.toLowerCase() ?? 'lock' })}, held by ${holder}`;
  });
  return (
    `Deadlock: ${steps.join('; ')}. None of these threads can go on, so thread ${threadId} gave up its wait. ` +
    'Take several locks in the same order everywhere, or give a timeout.'
  );
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}

function coded(error, code) {
  return assign(error, { code });
}

exports.assign = assign;
exports.TimeoutError = TimeoutError;
exports.DeadlockError = DeadlockError;
exports.BrokenBarrierError = BrokenBarrierError;
exports.LockLostError = LockLostError;
exports.describe = describe;

/** The place of a name in messages, which has no byte offset. */
exports.placeOfName = (name) => ({ kind: 'named lock', type: 'HeldLock', name });

/** A getter, or a proxy, may throw; that must not take the place of the error. */
function classOf(value) {
  try {
    return `${value.constructor?.name ?? 'an unknown class'}`;
  } catch {
    return 'an unknown class';
  }
}

function invalidArgument(name, expected, value, place, advice = '') {
  const where = place === undefined ? '' : ` for ${describe(place)}`;
  const received = isObject(value) ? `an instance of ${classOf(value)}` : inspect(value);
  return coded(
    new TypeError(`The "${name}" argument${where} must be ${expected}. Received ${received}.${advice}`),
    'ERR_INVALID_ARG_TYPE',
  );
}

/** A verb that returns a promise was called on something else than an object of its class. */
exports.invalidThis = (value, verb) =>
  coded(
    new TypeError(
      `${verb}() was called on ${isObject(value) ? 'another object' : inspect(value)}. Call it as a method of the object that was made for ` +
        'the lock, and bind it where it is passed on; a proxy of such an object is another object.',
    ),
    'ERR_INVALID_THIS',
  );

/** Something else was passed in the place of a lock; what is called a Mutex looks right. */
exports.notLock = (name, expected, value) => {
  const looksRight = isObject(value) && classOf(value) === 'Mutex';
  return invalidArgument(
    name,
    expected,
    value,
    undefined,
    looksRight
      ? ' That is the Mutex of another package, or of another copy of sablock: make one here on the same buffer.'
      : '',
  );
};

/** `place` is the lock whose verb got the argument, or its word; undefined for the constructor. */
exports.invalidArgument = invalidArgument;

/** Throws for an option with this name if it is near one of the known ones, or something else has it; `other` is more advice. */
exports.checkUnknown = (name, known, place, options, other, isBlocking = false) => {
  // A signal made by hand has no class of its own.
  if (name === 'aborted' && typeof options.addEventListener === 'function')
    throw exports.noOptions('options', options, place);
  // Loaded now: few programs misspell an option.
  const advice = require('./misspelt-options.js').adviceOn(name, known, isBlocking);
  if (advice === undefined) return;
  const where = place === undefined ? '' : ` for ${describe(place)}`;
  throw coded(
    new TypeError(`There is no option ${inspect(name)}${where}. ${other ?? advice} Nothing was changed.`),
    'ERR_INVALID_ARG_TYPE',
  );
};

/** An option of verbs that return promises was given to one that blocks. */
exports.notForBlocking = (name, place) => {
  const where = place === undefined ? '' : ` for ${describe(place)}`;
  const what =
    name === 'signal'
      ? 'no signal can abort a thread that blocks. Give a timeout'
      : 'a thread that blocks has no event loop to keep alive';
  return coded(
    new TypeError(
      `The option ${inspect(name)}${where} is for the verbs that return promises: ${what}, or use such a verb. Nothing was changed.`,
    ),
    'ERR_INVALID_ARG_TYPE',
  );
};

/** Something that is no options object stands in its place. */
exports.noOptions = (name, value, place) =>
  invalidArgument(
    name,
    'an options object',
    value,
    place,
    typeof value.aborted === 'boolean' ? ' Pass { signal }.' : '',
  );

/** The reason of a signal that gives none. */
exports.abortedWithoutReason = () =>
  new DOMException('The wait was aborted by a signal that gives no reason.', 'AbortError');

/** The memory of a lock is not shared: perhaps it was, before it was sent to another process. */
exports.notShared = (buffer) =>
  invalidArgument('buffer', 'a SharedArrayBuffer', buffer, undefined, adviceOnMemory(buffer));

/** The buffer of a view, or of a WebAssembly.Memory. */
const bufferOf = (value) =>
  ArrayBuffer.isView(value) || (typeof WebAssembly === 'object' && value instanceof WebAssembly.Memory)
    ? value.buffer
    : undefined;

function adviceOnMemory(buffer) {
  if (isSharedArrayBuffer(bufferOf(buffer))) return ' Pass its buffer.';
  if (isAnyArrayBuffer(buffer) || ArrayBuffer.isView(buffer)) {
    return (
      ' Memory is shared only if it was made by new SharedArrayBuffer(), and only between threads: what is sent to ' +
      'another process (child_process, cluster) arrives there as a copy.'
    );
  }
  if (!isObject(buffer) || Object.keys(buffer).length > 0) return '';
  const prototype = Object.getPrototypeOf(buffer);
  // The realm does not matter.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return '';
  return (
    ' An empty object is what arrives when a SharedArrayBuffer is sent to another process (child_process, cluster, a ' +
    'pool of processes) or through JSON: memory is shared by the threads of one process. Use node:worker_threads.'
  );
}

exports.outOfRange = (name, expected, value) =>
  coded(
    new RangeError(`The "${name}" argument is out of range: it must be ${expected}. Received ${inspect(value)}.`),
    'ERR_OUT_OF_RANGE',
  );

/** No lock of a table has this number. */
exports.badIndex = (place, index, length) =>
  typeof index === 'number'
    ? exports.outOfRange('index', `an integer from 0 to ${length - 1}, for ${describe(place)}`, index)
    : invalidArgument('index', 'a number', index, place);

/** A count would leave its range; nothing was changed. */
exports.beyondCount = (place, by, count, most) =>
  coded(
    new RangeError(
      `Cannot ${by < 0 ? `count down ${describe(place)} by ${-by}` : `add ${by} to ${describe(place)}`}: its count is ` +
        `${count}, and must stay between 0 and ${most}. Nothing was changed.`,
    ),
    'ERR_OUT_OF_RANGE',
  );

exports.thenableResult = (place, verb = 'executeLockedSync', state = 'is already unlocked', other = 'executeLocked') =>
  coded(
    new TypeError(
      `The "fn" argument of ${verb}() must not return a promise: ${describe(place)} ${state} when it settles. ` +
        `Use ${other}().`,
    ),
    'ERR_INVALID_ARG_TYPE',
  );

/** A party came to a barrier of another number of parties. */
exports.otherParties = (place, parties, others) =>
  coded(
    new RangeError(
      `Cannot wait at ${describe(place)} as one of ${parties} parties: those who wait are ${others} in all. Give every ` +
        'Barrier there the same number. Nothing was changed.',
    ),
    'ERR_OUT_OF_RANGE',
  );

exports.thenableRun = (place) =>
  coded(
    new TypeError(
      `The "fn" argument of runSync() must not return a promise: ${describe(place)} would be done before that settles. ` +
        'It is not done now, and the next in line runs. Use run().',
    ),
    'ERR_INVALID_ARG_TYPE',
  );

exports.thenablePredicate = (place) =>
  coded(
    new TypeError(
      `The "predicate" argument of waitFor() must not return a promise, which is always truthy: ${describe(place)} ` +
        'is still held. Use waitForAsync().',
    ),
    'ERR_INVALID_ARG_TYPE',
  );

exports.thenableRepair = (place) =>
  coded(
    new TypeError(
      `The function "onAbandoned" of ${describe(place)} must not return a promise: the verb that called it goes on when ` +
        'it returns. Repair the data in it, or unlock and repair elsewhere.',
    ),
    'ERR_INVALID_ARG_TYPE',
  );

/** `className` is of the object that was made for the lock; that of a table is the table. */
exports.mainThread = (place, alternative = 'lockAsync()', className = place.type ?? 'Mutex') =>
  coded(
    new TypeError(
      `Cannot block the main thread on ${describe(place)}. Use ${alternative} here, or create the ` +
        `${place.table === undefined ? className : 'LockTable'} with { allowMainThread: true }.`,
    ),
    'ERR_LOCK_MAIN_THREAD',
  );

/** `isWaiting`: this thread has pending waits for the lock, so perhaps its code goes on too early. */
exports.notOwner = (place, verb, advice, isWaiting = false) =>
  coded(
    new Error(
      `Cannot ${verb} ${describe(place)}: ${advice}` +
        (isWaiting
          ? ' A promise for it is pending in this thread, which gets the lock when that is fulfilled: did you forget `await`?'
          : ''),
    ),
    'ERR_LOCK_NOT_OWNER',
  );

exports.corrupt = (place, value) =>
  coded(
    new Error(
      `The memory of ${describe(place)} holds 0x${(value >>> 0).toString(16)} in its first word, which this package did not ` +
        'write, or wrote for another kind of lock. Give it bytes of its own, zero at first, and write to them by its ' +
        'methods only.',
    ),
    'ERR_LOCK_CORRUPT',
  );

/** The name of a class, in a sentence; none begins with another vowel than these. */
const withArticle = (type) => `${/^[AEO]/.test(type) ? 'an' : 'a'} ${type}`;

/** Others wait at the same place for a `queued`, and this is a `type`. */
exports.otherKind = (place, type, queued) =>
  coded(
    new Error(
      `The memory of ${describe(place)} is used as another kind of lock: it is ${withArticle(type)} here, and others wait there for ` +
        `${withArticle(queued)}. Give each of them bytes of its own.`,
    ),
    'ERR_LOCK_CORRUPT',
  );

exports.mainThreadWait = () =>
  coded(
    new TypeError('Cannot block the main thread in wait(): it could handle no events meanwhile. Use waitAsync() here.'),
    'ERR_LOCK_MAIN_THREAD',
  );

/** `what` is a description. */
exports.noBackgroundThread = (what) =>
  coded(
    new Error(
      `Cannot wait with a timeout for ${what}: the system refused the thread that ` +
        'keeps the time. Wait without a timeout, or end other threads first.',
    ),
    'ERR_LOCK_NO_THREAD',
  );

/** `what` is a description. */
exports.threadEnding = (what, verb = 'wait for') =>
  coded(
    new Error(
      `This thread is ending, so it cannot ${verb} ${what}. ` +
        'An uncaught error, process.exit() or terminate() came before.',
    ),
    'ERR_LOCK_THREAD_ENDING',
  );
