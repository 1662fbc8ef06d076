// Every error of the package: what failed, on which mutex, what to do. The codes are stable.

const { inspect } = require('node:util');

/** An `acquire*` or `executeLocked*` that ran out of time. */
class TimeoutError extends Error {
  /** Not for users: `index.d.ts` declares it private. */
  constructor(byteOffset, timeout) {
    super(
      `Timed out after ${timeout} ms waiting for the mutex at byte offset ${byteOffset}. ` +
        'Wait longer, or use lock() or lockAsync(), which answer false instead.',
    );
    this.name = 'TimeoutError';
    this.code = 'ERR_LOCK_TIMEOUT';
  }
}

/** A blocking wait without a timeout that could never end. */
class DeadlockError extends Error {
  /** Not for users: `index.d.ts` declares it private. */
  constructor(cycle) {
    super(describeCycle(cycle));
    this.name = 'DeadlockError';
    this.code = 'ERR_LOCK_DEADLOCK';
    this.cycle = cycle;
  }
}

function describeCycle(cycle) {
  const [{ threadId, byteOffset }] = cycle;
  if (cycle.length === 1) {
    return (
      `Deadlock: thread ${threadId} would wait for ever for the mutex at byte offset ${byteOffset}, which it holds ` +
      'itself, directly or by one of its asynchronous tasks. Unlock it first, or give a timeout.'
    );
  }
  const steps = cycle.map((wait, index) => {
    const holder = cycle[(index + 1) % cycle.length].threadId;
    return `thread ${wait.threadId} waits for the mutex at byte offset ${wait.byteOffset}, held by thread ${holder}`;
  });
  return (
    `Deadlock: ${steps.join('; ')}. Nobody in this cycle can go on, so thread ${threadId} gave up its wait. ` +
    'Lock several mutexes in the same order everywhere, or give a timeout.'
  );
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}

function coded(error, code) {
  error.code = code;
  return error;
}

exports.TimeoutError = TimeoutError;
exports.DeadlockError = DeadlockError;

/** `byteOffset` is that of the mutex whose verb got the argument; undefined for the constructor. */
exports.invalidArgument = (name, expected, value, byteOffset) => {
  const place = byteOffset === undefined ? '' : ` for the mutex at byte offset ${byteOffset}`;
  const received = isObject(value) ? `an instance of ${value.constructor?.name ?? 'an unknown class'}` : inspect(value);
  return coded(
    new TypeError(`The "${name}" argument${place} must be ${expected}. Received ${received}.`),
    'ERR_INVALID_ARG_TYPE',
  );
};

exports.outOfRange = (name, expected, value) =>
  coded(
    new RangeError(`The "${name}" argument is out of range: it must be ${expected}. Received ${inspect(value)}.`),
    'ERR_OUT_OF_RANGE',
  );

exports.thenableResult = (byteOffset) =>
  coded(
    new TypeError(
      'The "fn" argument of executeLockedSync() must not return a promise: the mutex at byte offset ' +
        `${byteOffset} is already unlocked when it settles. Use executeLocked().`,
    ),
    'ERR_INVALID_ARG_TYPE',
  );

exports.mainThread = (byteOffset, alternative = 'lockAsync()') =>
  coded(
    new TypeError(
      `Cannot block the main thread on the mutex at byte offset ${byteOffset}. ` +
        `Use ${alternative} here, or create the Mutex with { allowMainThread: true }.`,
    ),
    'ERR_LOCK_MAIN_THREAD',
  );

exports.notOwner = (byteOffset, verb, advice) =>
  coded(new Error(`Cannot ${verb} the mutex at byte offset ${byteOffset}: ${advice}`), 'ERR_LOCK_NOT_OWNER');

exports.corrupt = (byteOffset, value) =>
  coded(
    new Error(
      `The word at byte offset ${byteOffset} is no mutex of this package: it holds 0x${(value >>> 0).toString(16)}. ` +
        'Give the mutex four bytes of its own, zero at first, and write to them by its methods only.',
    ),
    'ERR_LOCK_CORRUPT',
  );

exports.mainThreadWait = () =>
  coded(
    new TypeError('Cannot block the main thread in wait(), since it would serve nobody. Use waitAsync() here.'),
    'ERR_LOCK_MAIN_THREAD',
  );

exports.noBackgroundThread = (place) =>
  coded(
    new Error(
      `Cannot wait with a timeout for ${place}: the system refused the thread that ` +
        'keeps the time. Wait without a timeout, or end other threads first.',
    ),
    'ERR_LOCK_NO_THREAD',
  );

exports.threadEnding = (place) =>
  coded(
    new Error(
      `This thread is ending, so it cannot wait for ${place}. ` +
        'An uncaught error, process.exit() or terminate() came before.',
    ),
    'ERR_LOCK_THREAD_ENDING',
  );

/** Says, once for each mutex and dead thread, that a thread ended while it held a mutex. */
exports.warnAbandoned = (byteOffset, threadId) => {
  const message =
    `Thread ${threadId} ended while it held the mutex at byte offset ${byteOffset}, which now belongs to this thread. ` +
    'The data that it guards may be half-written: check it, then call markConsistent().';
  try {
    process.emitWarning(message, { type: 'AbandonedMutexWarning', code: 'SABLOCK_ABANDONED' });
  } catch (error) {
    // The stack has ended: the caller does not get the mutex, and the next one is warned.
    if (error instanceof RangeError) throw error;
    // Somebody replaced `emitWarning`: an uncaught error of its own. The caller has got the mutex and must learn of that.
    queueMicrotask(() => {
      throw error;
    });
  }
};
