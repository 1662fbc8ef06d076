const { binding, thread } = require('../engine/thread.js');
const { corrupt } = require('../engine/corrupt.js');
const { invalidThis } = require('../errors.js');
const { SharedPrimitive, awaitFor, blockFor, defineSize, mayBlock, passage, wordsOf } = require('./base.js');

const { Ask, Change, SET, WAITING } = binding;
const { compareExchange, load } = Atomics;

const MANUAL = passage(Ask.ManualResetEvent);
const AUTO = passage(Ask.AutoResetEvent);

/** The base of both events: a flag, which is changed here while nobody waits, and by the core while somebody does. */
class ResetEvent extends SharedPrimitive {
  #word;
  #ask;

  constructor(type, ask, buffer, byteOffset, options) {
    super(type, ask, 4, buffer, byteOffset, options, 'event');
    this.#word = wordsOf(this);
    this.#ask = ask;
  }

  get isSet() {
    return (load(this.#word, 0) & SET) !== 0;
  }

  set() {
    const was = compareExchange(this.#word, 0, 0, SET);
    if (was !== 0 && was !== SET) this.#change(Change.Set);
  }

  reset() {
    const was = compareExchange(this.#word, 0, SET, 0);
    // Reset already, with or without waiters.
    if (was !== SET && was !== 0 && was !== WAITING) this.#change(Change.Reset);
  }

  #change(change) {
    thread.drainSoon();
    if (binding.change(this.#word, this.#ask, change, 0, 0) === binding.CORRUPT) throw corrupt(this.#word);
  }
}

/** A flag that threads wait for, until somebody resets it. */
class ManualResetEvent extends ResetEvent {
  static {
    defineSize('ManualResetEvent', ManualResetEvent, 4);
  }

  #word;
  #mayBlock;

  constructor(buffer, byteOffset, options) {
    super('ManualResetEvent', Ask.ManualResetEvent, buffer, byteOffset, options);
    this.#word = wordsOf(this);
    this.#mayBlock = mayBlock(this);
  }

  wait(timeout) {
    if (timeout === undefined && this.#mayBlock && load(this.#word, 0) === SET) return true;
    return blockFor(this, MANUAL, timeout, 'wait', 'waitAsync()');
  }

  waitAsync(options) {
    try {
      if (options === undefined && load(this.#word, 0) === SET) return Promise.resolve(true);
      return awaitFor(this, MANUAL, options, 'waitAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'waitAsync'));
    }
  }
}

/** A flag that lets one pass each time that it is set. */
class AutoResetEvent extends ResetEvent {
  static {
    defineSize('AutoResetEvent', AutoResetEvent, 4);
  }

  #word;
  #mayBlock;

  constructor(buffer, byteOffset, options) {
    super('AutoResetEvent', Ask.AutoResetEvent, buffer, byteOffset, options);
    this.#word = wordsOf(this);
    this.#mayBlock = mayBlock(this);
  }

  wait(timeout) {
    if (timeout === undefined && this.#mayBlock && compareExchange(this.#word, 0, SET, 0) === SET) return true;
    return blockFor(this, AUTO, timeout, 'wait', 'waitAsync()');
  }

  waitAsync(options) {
    try {
      if (options === undefined) {
        const passed = Promise.resolve(true);
        if (compareExchange(this.#word, 0, SET, 0) === SET) return passed;
      }
      return awaitFor(this, AUTO, options, 'waitAsync');
    } catch (error) {
      if (#word in Object(this)) throw error;
      return Promise.reject(invalidThis(this, 'waitAsync'));
    }
  }
}

exports.ManualResetEvent = ManualResetEvent;
exports.AutoResetEvent = AutoResetEvent;
