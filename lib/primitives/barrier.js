const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { reserveStack } = require('../engine/stack.js');
const { toCountOf } = require('../arguments.js');
const { checkKind, corrupt } = require('../engine/corrupt.js');
const { BrokenBarrierError, TimeoutError, otherParties } = require('../errors.js');
const { CountedRequest, SharedPrimitive, awaitFor, blockFor, defineSize, rejectCall, wordsOf } = require('./base.js');

const { ARRIVED, Ask, BROKEN, Change, MAX_PARTIES } = binding;
const { load } = Atomics;

const BROKEN_BY_TIMEOUT = 'The barrier is broken now, for all parties.';
const ADVICE = 'Wait longer; reset() makes the barrier new.';
const secret = Symbol('BarrierMember');

let leave;

/** A request to wait as one of so many parties. */
class PartyRequest extends CountedRequest {
  ask = Ask.BarrierParty;
  isPassage = true;

  constructor(of) {
    super();
    this.of = of;
    // The last party lets the others pass: nothing may fail after that.
    reserveStack();
  }

  /** The number of parties that come after. The last party does not queue. */
  take() {
    return this.arrived < 0 ? 0 : this.of - 1 - this.arrived;
  }

  /** For a barrier that is broken, or of another number of parties. */
  refused(_, word) {
    throw this.parties === 0 ? new BrokenBarrierError(word) : otherParties(word, this.of, this.parties);
  }

  timedOut(word, timeout, verb) {
    return new TimeoutError(word, timeout, verb, BROKEN_BY_TIMEOUT, ADVICE);
  }
}

/** A place where a number of parties wait for each other, again and again. */
class Barrier extends SharedPrimitive {
  static {
    defineSize('Barrier', Barrier, 8);
    leave = (barrier) => {
      barrier.#slot[1] -= 1;
    };
  }

  #words;
  #parties;
  /** The counts of this thread's memberships; see register.js. */
  #slot = null;

  constructor(buffer, byteOffset, parties, options) {
    super('Barrier', Ask.BarrierMember, 8, buffer, byteOffset, options);
    this.#words = wordsOf(this);
    this.#parties = toCountOf(this.#words, parties, 'parties', MAX_PARTIES);
  }

  get parties() {
    return this.#parties;
  }

  get waiting() {
    return load(this.#words, 0) & ARRIVED;
  }

  get broken() {
    return (load(this.#words, 0) & BROKEN) !== 0;
  }

  wait(timeout) {
    return blockFor(this, new PartyRequest(this.#parties), timeout, 'wait', 'waitAsync()');
  }

  waitAsync(options) {
    try {
      const request = new PartyRequest(this.#parties);
      // A party that comes with a signal that has aborted does not stay: like every party that goes, it breaks the barrier. But one
      // that names another number of parties is none.
      request.cameAborted = () => this.#change(Change.Break);
      return awaitFor(this, request, options, 'waitAsync');
    } catch (error) {
      return rejectCall(error, this, 'waitAsync');
    }
  }

  reset() {
    this.#change(Change.Reset);
  }

  join() {
    checkKind(this.#words);
    this.#slot ??= slotFor(this.#words, Ask.BarrierMember);
    const member = new BarrierMember(secret, this);
    // The words do not change: only the core, at this thread's end, wants to know.
    this.#slot[1] += 1;
    return member;
  }

  #change(change) {
    thread.drainSoon();
    if (binding.change(this.#words, Ask.BarrierParty, change, 0, this.#parties) === binding.CORRUPT)
      throw corrupt(this.#words);
  }
}

/** A thread's word that it will come, until it leaves: if it ends before, the barrier breaks. */
class BarrierMember {
  #barrier;
  #isIn = true;

  constructor(key, barrier) {
    if (key !== secret) throw new TypeError('Illegal constructor. Members come from barrier.join().');
    this.#barrier = barrier;
  }

  get barrier() {
    return this.#barrier;
  }

  leave() {
    if (!this.#isIn) return false;
    leave(this.#barrier);
    this.#isIn = false;
    return true;
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.leave();
  }
}

exports.Barrier = Barrier;
exports.BarrierMember = BarrierMember;
