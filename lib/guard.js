const { lazily } = require('./lazily.js');
const { binding, thread } = require('./thread.js');

const errors = lazily(() => require('./errors.js'));
const inspection = lazily(() => require('./inspection.js'));

const { ABANDONED, GUARDED, OWNER } = binding;
const { compareExchange, load } = Atomics;
const MINE = thread.id | GUARDED;

/** Frees a word whose compare-exchange failed: somebody waits, it is marked, or it is not held here. */
function unlockContended(word, guarded) {
  // What may fail (a stack that overflows) comes first: after the binding has freed the word, nothing does.
  thread.drainSoon();
  const code = binding.unlock(word, guarded);
  if (code === binding.CORRUPT) throw errors().corrupt(word, load(word, 0));
  if (code === binding.NOT_OWNER) {
    const advice =
      !guarded && (load(word, 0) & (OWNER | GUARDED)) === MINE
        ? "this hold belongs to a guard, to executeLocked() or to a token of enter(). Only that guard's unlock(), the end of that function, or leave(token) frees it."
        : 'this thread does not hold it. Call it only after this thread has locked the mutex, and once for each lock.';
    throw errors().notOwner(word, 'unlock', advice, thread.isWaitingFor(word));
  }
}

/** Frees a hold that a guard owns, or would own if anybody had asked for one. */
function unlockGuarded(word) {
  if (compareExchange(word, 0, MINE, 0) !== MINE) unlockContended(word, true);
}

const secret = Symbol('LockGuard');

/** One hold of a mutex. */
class LockGuard {
  #mutex;
  #word;
  #locked = true;

  constructor(key, mutex, word) {
    if (key !== secret) {
      throw new TypeError('Illegal constructor. Guards come from acquire(), acquireAsync(), tryAcquire() and enter().');
    }
    this.#mutex = mutex;
    this.#word = word;
  }

  get mutex() {
    return this.#mutex;
  }

  get locked() {
    return this.#locked;
  }

  get abandoned() {
    return this.#locked && (load(this.#word, 0) & ABANDONED) !== 0;
  }

  unlock() {
    if (!this.#locked) return false;
    unlockGuarded(this.#word);
    this.#locked = false;
    return true;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    return inspection().showGuard(this, depth, options);
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.unlock();
  }
}

exports.LockGuard = LockGuard;
exports.createGuard = (mutex, word) => new LockGuard(secret, mutex, word);
exports.unlockContended = unlockContended;
exports.unlockGuarded = unlockGuarded;
