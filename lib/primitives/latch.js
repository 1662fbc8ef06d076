const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { toCountOf } = require('../arguments.js');
const { corrupt } = require('../engine/corrupt.js');
const { beyondCount, invalidThis } = require('../errors.js');
const { SharedPrimitive, awaitFor, blockFor, defineSize, mayBlock, passage, wordsOf } = require('./base.js');

const { Ask, Change, MAX_COUNT } = binding;
const { Found } = binding.Field;
const { compareExchange, load } = Atomics;

const PASS = passage(Ask.LatchPassage);
const secret = Symbol('LatchEntry');

let leave;
let isIn;

/** A count that threads wait for to be zero. */
class Latch extends SharedPrimitive {
  static {
    defineSize('Latch', Latch, 4);
    leave = (latch, entry) => latch.#leave(entry);
  }

  #word;
  #mayBlock;
  /** The counts of this thread's entries; see register.js. */
  #slot = null;

  constructor(buffer, byteOffset, options) {
    super('Latch', Ask.LatchEntry, 4, buffer, byteOffset, options);
    this.#word = wordsOf(this);
    this.#mayBlock = mayBlock(this);
  }

  get count() {
    return load(this.#word, 0) & MAX_COUNT;
  }

  add(n = 1) {
    this.#change(toCountOf(this.#word, n));
  }

  countDown(n = 1) {
    return this.#change(-toCountOf(this.#word, n));
  }

  wait(timeout) {
    if (timeout === undefined && this.#mayBlock && load(this.#word, 0) === 0) return true;
    return blockFor(this, PASS, timeout, 'wait', 'waitAsync()');
  }

  waitAsync(options) {
    try {
      if (options === undefined && load(this.#word, 0) === 0) return Promise.resolve(true);
      return awaitFor(this, PASS, options, 'waitAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'waitAsync'));
    }
  }

  enter() {
    this.#slot ??= slotFor(this.#word, Ask.LatchEntry);
    const word = this.#word;
    const slot = this.#slot;
    const entry = new LatchEntry(secret, this);
    for (;;) {
      const was = load(word, 0);
      // Full, somebody waits, or no count: the core's.
      if (was < 0 || was >= MAX_COUNT) break;
      // One expression: see register.js.
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(word, 0, was, was + 1) === was && (slot[1] += 1) !== undefined) return entry;
    }
    const status = binding.tryAcquire(word, Ask.LatchEntry, 1, 0);
    if (status === binding.CORRUPT) throw corrupt(word);
    if (status === binding.TIMED_OUT) throw beyondCount(word, 1, this.count, MAX_COUNT);
    return entry;
  }

  /** Counts one down that `enter` has added, by this entry; false if others had counted it down already. */
  #leave(entry) {
    const word = this.#word;
    const slot = this.#slot;
    for (;;) {
      const was = load(word, 0);
      // Others have counted it down, somebody waits, or no count: the core's.
      if (was <= 0 || was > MAX_COUNT) break;
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(word, 0, was, was - 1) === was && (slot[1] -= 1) !== undefined) return true;
    }
    thread.drainSoon();
    // Users' code that has run in that may have left: see `drainSoon`.
    if (!isIn(entry)) return false;
    const status = binding.release(word, Ask.LatchEntry, 1, 0);
    if (status === binding.CORRUPT) throw corrupt(word);
    // Not owner: others had counted it down.
    return status === binding.RELEASED;
  }

  /** Changes the count; returns what is left. */
  #change(by) {
    const word = this.#word;
    for (;;) {
      const was = load(word, 0);
      const left = was + by;
      if ((was & ~MAX_COUNT) !== 0 || left < 0 || left > MAX_COUNT) break;
      if (compareExchange(word, 0, was, left) === was) return left;
    }
    thread.drainSoon();
    const status = binding.change(word, Ask.LatchEntry, Change.Add, by, 0);
    if (status === binding.CORRUPT) throw corrupt(word);
    if (status !== binding.RELEASED) throw beyondCount(word, by, this.count, MAX_COUNT);
    return thread.record[Found];
  }
}

/** One of a latch's count, which is counted down at the latest when its thread ends. */
class LatchEntry {
  static {
    isIn = (entry) => entry.#isIn;
  }

  #latch;
  #isIn = true;

  constructor(key, latch) {
    if (key !== secret) throw new TypeError('Illegal constructor. Entries come from enter() of a latch.');
    this.#latch = latch;
  }

  get latch() {
    return this.#latch;
  }

  leave() {
    if (!this.#isIn) return false;
    const isCountedDown = leave(this.#latch, this);
    this.#isIn = false;
    return isCountedDown;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.leave();
  }
}

exports.Latch = Latch;
exports.LatchEntry = LatchEntry;
