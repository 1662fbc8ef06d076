// The base of all primitives but the mutex, which loads less: their place, name, inspection, and how they wait.

const { markAsUncloneable } = require('node:worker_threads');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { lazily } = require('../load/lazily.js');
const { toAsyncOptions, toLockOptions, toTimeout, toWords } = require('../arguments.js');
const { invalidThis, mainThread } = require('../errors.js');
const { knownSince } = require('../engine/diagnosis.js');
const names = require('../engine/names.js');
const { lockBlocking, lockWord } = require('../engine/wait.js');

const inspection = lazily(() => require('../engine/inspection.js'));

let inner;
let isPrimitive;

/** The fields that `console.log()` shows. */
const fieldsOf = ({ holders, waiters }) => ({ holders: holders.length, waiters: waiters.length });

class SharedPrimitive {
  static {
    inner = (primitive) => ({ words: primitive.#words, mayBlock: primitive.#mayBlock });
    isPrimitive = (value) => #words in Object(value);
  }

  #words;
  #ask;
  #mayBlock;

  /**
   * `ask` is what `inspect()` shows of it, `type` the name of its class, `kind` what messages call it, `known` the names of its
   * options.
   */
  constructor(type, ask, bytes, buffer, byteOffset, options, kind = type.toLowerCase(), known) {
    const words = toWords(buffer, byteOffset, bytes);
    const { allowMainThread, maySleep, name, onAbandoned } = toLockOptions(options, known);
    knownSince(buffer);
    words.kind = kind;
    words.type = type;
    if (name !== undefined) names.name(words, name);
    if (onAbandoned !== undefined) words.onAbandoned = onAbandoned;
    if (!maySleep) words.staysAwake = true;
    this.#words = words;
    this.#ask = ask;
    this.#mayBlock = allowMainThread || !isMainThread;
    markAsUncloneable?.(this);
  }

  get buffer() {
    return this.#words.buffer;
  }

  get byteOffset() {
    return this.#words.byteOffset;
  }

  get name() {
    return this.#words.name ?? null;
  }

  inspect() {
    return inspection().inspectWord(this.#words, binding.inspect(this.#words, this.#ask));
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#words in this)) return this;
    const seen = binding.inspect(this.#words, this.#ask);
    return inspection().showWord(this.constructor.name, this.#words, seen, fieldsOf, depth, options);
  }
}

/** Defines `BYTES` and `ALIGN` of a class, and registers it. */
exports.defineSize = (name, primitive, bytes) => {
  thread.addClass(name, primitive, wordsOf);
  Object.defineProperty(primitive, 'BYTES', { value: bytes, enumerable: true });
  Object.defineProperty(primitive, 'ALIGN', { value: 4, enumerable: true });
};

/** A request to pass, which leaves nothing to hold. */
exports.passage = (ask) => ({
  ask,
  count: 1,
  of: 0,
  isCounted: false,
  isGuarded: false,
  isExclusive: false,
  isPassage: true,
  take: () => true,
});

/** A request that counts: the binding tells it numbers. */
class CountedRequest {}

Object.assign(CountedRequest.prototype, {
  count: 1,
  isCounted: true,
  isGuarded: true,
  isExclusive: false,
  /** The number that the call found when it queued; -1 if it did not. */
  arrived: -1,
  /** The number with which it was refused at once. */
  parties: 0,
  /** The number with which it was granted. */
  given: 0,
});

/** Blocks this thread until the request is granted. Returns what it takes, or false; `alternative` is for the main thread. */
exports.blockFor = (primitive, request, options, verb, alternative) => {
  const { words, mayBlock } = inner(primitive);
  const limit = options === undefined ? Infinity : toTimeout(words, options);
  if (!mayBlock) throw mainThread(words, alternative, primitive.constructor.name);
  return lockBlocking(primitive, words, request, limit, verb);
};

/** A promise that is rejected with the error, or with what `verb` was called on, if that is the reason. */
exports.rejectCall = (error, self, verb) => Promise.reject(isPrimitive(self) ? error : invalidThis(self, verb));

/** A promise of what the request takes; `known` are the options of the verb, if it has more than the others. */
exports.awaitFor = (primitive, request, options, verb, known) => {
  try {
    const { words } = inner(primitive);
    return lockWord(primitive, words, request, toAsyncOptions(words, options, known), verb);
  } catch (error) {
    return exports.rejectCall(error, primitive, verb);
  }
};

const wordsOf = (primitive) => inner(primitive).words;

exports.CountedRequest = CountedRequest;
exports.SharedPrimitive = SharedPrimitive;
/** Whether this thread may block for it. */
exports.mayBlock = (primitive) => inner(primitive).mayBlock;
/** The view of a primitive's memory. */
exports.wordsOf = wordsOf;
