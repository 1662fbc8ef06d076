// Which holds the running code is inside of: those whose functions await it. V8 knows, and shows it in stacks: the functions that
// verbs with callbacks run have names that say by which hold. It costs nothing until it is asked for.

const { types } = require('node:util');
const { quietly } = require('../engine/diagnosis.js');
const { readStack } = require('./sites.js');

const settled = Promise.resolve();
const ignore = () => {};

/** Whether the runtime has such stacks. */
exports.knowsChains = process.versions.v8 !== undefined && process.versions.bun === undefined;

/** The functions that run under a tracked hold have this name and a serial. */
const MARK = 'sablock hold ';
/** A promise that may be settled by more than one of those that it was made of. (A race leaves no frame: it looks like one that is awaited.) */
const SEVERAL = /^async Promise\.any/;

/** The serials of the holds whose functions have called, or await, the code that runs; innermost first. */
function enclosing() {
  const serials = [];
  for (const frame of readStack()) {
    const name = frame.getFunctionName?.() ?? '';
    if (name.startsWith(MARK)) serials.push(Number(name.slice(MARK.length)));
    else if (SEVERAL.test(frame.toString())) break;
  }
  return serials;
}
exports.enclosing = enclosing;

/**
 * Calls `tell` in a microtask with the serials of the holds whose functions await `promise`, which stays as it is. The promise of
 * the reaction that asks has a reaction of its own, which would settle `promise` if its functions did anything: so V8 goes on
 * from there.
 */
exports.askWhoAwaits = (promise, tell) => {
  const asking = settled.then(() => tell(enclosing()));
  function Stand(executor) {
    executor(ignore, ignore);
    return promise;
  }
  asking.constructor = { [Symbol.species]: Stand };
  asking.then(ignore, ignore);
};

/** The number of calls of a function of this name, in this file, that run. Those that were cut off are not on the stack. */
exports.countCalls = (name, file) =>
  readStack(Infinity).filter((frame) => frame.getFunctionName?.() === name && frame.getFileName() === file).length;

/** The status of a call that has none: it has thrown, or was cut off, as `vm` does it with a time limit, which runs no `finally`. */
const CUT_OFF = -1;

/** The calls that block this thread now. */
class BlockingCalls {
  /** The ends of each, outermost first: users' code may run in one. */
  #ends = [];

  /** Makes a call; `end` gets its status. */
  block(call, args, end) {
    const { length } = this.#ends;
    this.#ends.push(end);
    let status = CUT_OFF;
    try {
      status = call(...args);
      return status;
    } finally {
      this.#cutOff(length + 1);
      this.#ends.pop();
      quietly(() => end(status));
    }
  }

  /** Ends those that do not run any more. */
  endCutOff() {
    if (this.#ends.length > 0) this.#cutOff(exports.countCalls('block', __filename));
  }

  #cutOff(from) {
    for (const end of this.#ends.splice(from)) quietly(() => end(CUT_OFF));
  }
}

exports.BlockingCalls = BlockingCalls;
exports.CUT_OFF = CUT_OFF;

/** Whether it is the prototype of promises: of this realm, or of another one, as test runners make. That of a subclass has one more behind it. */
function isOfPromises(prototype) {
  if (prototype === Promise.prototype) return true;
  const base = prototype && Object.hasOwn(prototype, Symbol.toStringTag) && Object.getPrototypeOf(prototype);
  return Boolean(base) && Object.getPrototypeOf(base) === null;
}

/** Whether `await` does nothing but wait for it: what else is thenable is left to whoever awaits it. */
const isPlain = (result) =>
  types.isPromise(result) &&
  isOfPromises(Object.getPrototypeOf(result)) &&
  !Object.hasOwn(result, 'then') &&
  !Object.hasOwn(result, 'constructor');

/** Runs `fn` with the mark of a hold on it, and on what it awaits; returns what it returns. */
exports.runMarked = (serial, fn, args, end) => {
  const name = `${MARK}${serial}`;
  const marked = {
    [name]: (run) => run(),
    async [`${name}.`](promise) {
      try {
        return await promise;
      } finally {
        end();
      }
    },
  };
  let result;
  try {
    result = marked[name](() => Reflect.apply(fn, undefined, args));
  } catch (error) {
    end();
    throw error;
  }
  if (isPlain(result)) return marked[`${name}.`](result);
  end();
  return result;
};
