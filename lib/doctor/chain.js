// Who awaits whom. V8 knows: a stack that is taken in a reaction of a promise shows the async functions that await what the
// reaction settles. Asking it costs nothing until somebody asks, where promise hooks would cost each promise of the program.

const { awaitingCode } = require('./sites.js');

const settled = Promise.resolve();
const ignore = () => {};

/** Whether the runtime has such stacks. */
exports.knowsChains = process.versions.v8 !== undefined && process.versions.bun === undefined;

/**
 * Calls `tell` in a microtask with what awaits `promise` (`awaitingCode`), which stays as it is. The promise of
 * the reaction that asks has a reaction of its own, which would settle `promise` if its functions did anything: so V8 goes on
 * from there.
 */
exports.askWhoAwaits = (promise, tell) => {
  ask(promise, (awaiting) => {
    const further = promises.get(awaiting.holds.at(-1))?.deref();
    if (further === undefined || further === promise) return tell(awaiting);
    return exports.askWhoAwaits(further, ({ holds, functions }) => {
      tell({ holds: awaiting.holds.concat(holds), functions: awaiting.functions.concat(functions) });
    });
  });
};

/** By the serial of a hold: the promise of its request, where that is not made of what its function returns in a way that V8 knows. */
const promises = new Map();
const collected = new FinalizationRegistry((serial) => promises.delete(serial));

/** Whoever awaits `promise` waits for the function that holds. */
exports.goesOnAs = (serial, promise) => {
  promises.set(serial, new WeakRef(promise));
  collected.register(promise, serial);
};

function ask(promise, tell) {
  const asking = settled.then(() => tell(awaitingCode()));
  function Stand(executor) {
    executor(ignore, ignore);
    return promise;
  }
  asking.constructor = { [Symbol.species]: Stand };
  asking.then(ignore, ignore);
}

const NATIVE = /^function \(\) \{\s*\[native code\]\s*\}$/;
const { then: originalThen } = Promise.prototype;
const sourceOf = Function.prototype.toString;

/** Whether this may be the function by which a promise is resolved. */
const mayResolve = (handler) =>
  typeof handler === 'function' && handler.length === 1 && handler.name === '' && NATIVE.test(sourceOf.call(handler));

/** Whether the engine itself calls, to make a promise of another: then there is nothing else that could settle it. */
function isCalledByEngine() {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 1;
    Error.prepareStackTrace = (_, frames) => frames;
    const holder = {};
    Error.captureStackTrace(holder, then);
    const [caller] = holder.stack;
    // Functions that only await what is being made do not call.
    if (caller === undefined || caller.isAsync()) return true;
    return caller.getFunctionName() === 'runMicrotasks' || INTERNAL.test(caller.getFileName() ?? '');
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const INTERNAL = /^node:internal\/process\/task_queues/;

/**
 * In place of `Promise.prototype.then`. V8 takes a promise whose `resolve` is passed to `then` for one that waits for nothing else,
 * though a timer may settle it first (`Promise.race`, a timeout made by hand). A function around `resolve` hides it.
 */
class Replacement {
  // biome-ignore lint/suspicious/noThenProperty: it is that of the class of promises.
  then(onFulfilled, onRejected) {
    const isHidden = mayResolve(onFulfilled) && !isCalledByEngine();
    return originalThen.call(this, isHidden ? (value) => onFulfilled(value) : onFulfilled, onRejected);
  }
}
const { then } = Replacement.prototype;

let users = 0;

/** Until `showResolvers` is called as often. */
exports.hideResolvers = () => {
  if (users++ > 0) return;
  Object.defineProperty(Promise.prototype, 'then', { value: then, configurable: true, writable: true });
};

exports.showResolvers = () => {
  if (--users > 0 || Promise.prototype.then !== then) return;
  Object.defineProperty(Promise.prototype, 'then', { value: originalThen, configurable: true, writable: true });
};
