const { binding, thread } = require('../engine/thread.js');
const { corrupt } = require('../errors.js');
const { SharedPrimitive, awaitFor, blockFor, defineSize, passage, wordsOf } = require('./base.js');

const { Ask, SET, WAITING } = binding;
const { compareExchange, load } = Atomics;

const PASS = passage(Ask.ManualResetEvent);

/** A flag that threads wait for, until somebody resets it. */
class ManualResetEvent extends SharedPrimitive {
  static {
    defineSize(ManualResetEvent, 4);
  }

  #word;

  constructor(buffer, byteOffset, options) {
    super('event', Ask.ManualResetEvent, 4, buffer, byteOffset, options);
    this.#word = wordsOf(this);
  }

  get isSet() {
    return (load(this.#word, 0) & SET) !== 0;
  }

  set() {
    const was = compareExchange(this.#word, 0, 0, SET);
    if (was !== 0 && was !== SET) this.#change(binding.setEvent);
  }

  reset() {
    const was = compareExchange(this.#word, 0, SET, 0);
    // Reset already, with or without waiters.
    if (was !== SET && was !== 0 && was !== WAITING) this.#change(binding.resetEvent);
  }

  wait(timeout) {
    return (timeout === undefined && this.isSet) || blockFor(this, PASS, timeout, 'wait', 'waitAsync()');
  }

  waitAsync(options) {
    return awaitFor(this, PASS, options, 'waitAsync');
  }

  #change(change) {
    thread.drainSoon();
    if (change(this.#word, Ask.ManualResetEvent) === binding.CORRUPT) throw corrupt(this.#word, load(this.#word, 0));
  }
}

exports.ManualResetEvent = ManualResetEvent;
