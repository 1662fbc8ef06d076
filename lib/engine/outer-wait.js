// Promises for what is asked outside of the process: for locks of files, lists of their holders, and answers of stores.

const { describe, noBackgroundThread, placeOfName } = require('../errors.js');
const { PendingWait } = require('./pending-wait.js');
const { binding, isGranted, thread } = require('./thread.js');

const { Number: NUMBER } = binding.Field;
const { FAILED, GRANTED, GRANTED_ABANDONED, PENDING, TIMED_OUT } = binding;

/**
 * A subclass has `conclude(status, number)`, which makes of a grant what the promise is fulfilled with, and `errorOf(told)`, which makes
 * an error of what the binding tells. Without a grant the promise is fulfilled with null.
 */
class OuterWait extends PendingWait {
  /** The binding has just been asked for this name, or what has none, and has returned this status. */
  begin(status, name) {
    if (status === PENDING) thread.add(this);
    else if (status === TIMED_OUT) this.end(null);
    else throw noBackgroundThread(describe(placeOfName(name)));
  }

  /** It is over, with this status. */
  settle(status) {
    const number = thread.record[NUMBER];
    try {
      if (status === FAILED) this.reject(this.errorOf(binding.takeTold()));
      else this.resolve(isGranted(status) ? this.conclude(status, number) : null);
    } catch (error) {
      // For want of stack: what nobody gets is released, for which no function of JS need begin.
      if (status === GRANTED || status === GRANTED_ABANDONED) binding.giveBackHeld(number);
      this.reject(error);
    }
    this.stopListening();
  }

  /** Withdraws it, unless it is over. */
  cancel() {
    if (thread.cancel(this)) this.end(null);
  }

  end(value) {
    this.resolve(value);
    this.stopListening();
  }
}

exports.OuterWait = OuterWait;
