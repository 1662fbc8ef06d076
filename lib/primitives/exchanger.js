const { reserveStack } = require('../engine/stack.js');
const { binding } = require('../engine/thread.js');
const { toCountOf } = require('../arguments.js');
const { TimeoutError } = require('../errors.js');
const { CountedRequest, SharedPrimitive, awaitFor, blockFor, defineSize, rejectCall, wordsOf } = require('./base.js');

const { Ask } = binding;

/** A request to meet another, with a value. */
class ExchangeRequest extends CountedRequest {
  ask = Ask.Exchange;
  isPassage = true;

  constructor(word, value) {
    super();
    this.of = toCountOf(word, value, 'value', 2 ** 31 - 1, -(2 ** 31)) >>> 0;
    // The other gets the value: nothing may fail after that.
    reserveStack();
  }

  /** The value that the other brought. */
  take() {
    return this.given | 0;
  }

  timedOut(word, timeout, verb) {
    return new TimeoutError(word, timeout, verb, 'No other call came, and none will get the value.', 'Wait longer.');
  }
}

/** A place where two threads meet, and each goes on with the other's value. */
class Exchanger extends SharedPrimitive {
  static {
    defineSize('Exchanger', Exchanger, 8);
  }

  constructor(buffer, byteOffset, options) {
    super('Exchanger', Ask.Exchange, 8, buffer, byteOffset, options);
  }

  exchange(value, timeout) {
    return blockFor(this, new ExchangeRequest(wordsOf(this), value), timeout, 'exchange', 'exchangeAsync()');
  }

  exchangeAsync(value, options) {
    try {
      return awaitFor(this, new ExchangeRequest(wordsOf(this), value), options, 'exchangeAsync');
    } catch (error) {
      return rejectCall(error, this, 'exchangeAsync');
    }
  }
}

exports.Exchanger = Exchanger;
