const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');

const corruption = lazily(() => require('../engine/corrupt.js'));
const diagnosis = lazily(() => require('../engine/diagnosis.js'));
const errors = lazily(() => require('../errors.js'));
const inspection = lazily(() => require('../engine/inspection.js'));

const { ABANDONED, Ask, GUARDED, OWNER } = binding;
const { HasAway, Number: NUMBER } = binding.Field;
const { compareExchange, load } = Atomics;
const MINE = thread.id | GUARDED;

/** Frees a hold of the thread itself, whose compare-exchange failed: somebody waits, it is marked, or it is not held here. */
function unlockContended(word) {
  // A call that may fail (a stack that overflows) comes first: after the binding has freed the word, nothing does.
  thread.drainSoon(word);
  const { raw } = waysOf(word);
  const status = binding.release(word, raw.ask, 1, 0);
  if (status !== binding.RELEASED) throw raw.notHeld(word, status);
}

const IS_AWAY = 'the hold of this guard is away, in a Condition.waitAsync() that is not over. Await that first.';

/** The error for a change that the binding has refused; `advise()` is for what is not held. */
function refusal(word, status, advise, verb = 'unlock') {
  if (status === binding.CORRUPT) return corruption().corrupt(word);
  const advice = status === binding.AWAY ? IS_AWAY : advise();
  return errors().notOwner(word, verb, advice, thread.isWaitingFor(word));
}

/** The error for an unlock that the binding has refused. */
const refused = (word, status, request) => refusal(word, status, () => adviceFor(word, request));

function adviceFor(word, request) {
  if (!request.isGuarded && (load(word, 0) & (OWNER | GUARDED)) === MINE) {
    return "this hold belongs to a guard, to executeLocked(), to a token of enter() or to a pending lockAllAsync(). Only that guard's unlock(), the end of that function or of that wait, or leave(token) frees it.";
  }
  const holder = diagnosis().describeHolder(word);
  return `this thread does not hold it. ${holder} Call it only after this thread has locked it, and once for each lock.`;
}

const secret = Symbol('LockGuard');

/** To hold a mutex by the thread itself; see wait.js. */
const RAW = {
  ask: Ask.Mutex,
  count: 1,
  of: 0,
  isCounted: false,
  isGuarded: false,
  isExclusive: true,
  /** A prefix of its verbs in messages. */
  prefix: '',
  tryFree: (word) => compareExchange(word, 0, 0, thread.id) === 0,
  take: () => true,
  notHeld: (word, status) => refused(word, status, RAW),
};

/** To hold a mutex by a guard. */
const GUARDED_HOLD = {
  ...RAW,
  ask: Ask.MutexGuarded,
  isGuarded: true,
  tryFree: (word) => compareExchange(word, 0, 0, MINE) === 0,
  take: (mutex, word) => createGuard(mutex, word),
  endHold,
  notHeld: (word, status) => refused(word, status, GUARDED_HOLD),
};

/** The ways to hold a mutex: by the thread, by a guard, and by a function, which gets the era in which its hold began. */
const WAYS = { raw: RAW, guarded: GUARDED_HOLD, inside: { ...GUARDED_HOLD, take: () => thread.era } };

/** The ways to hold what has this word: a mutex, unless the word has ways of its own, as an RwLock's has. */
const waysOf = (word) => word.ways ?? WAYS;

let eraOf;
let isGuard;
let renew;

/** One hold of a mutex. */
class LockGuard {
  static {
    thread.addClass('LockGuard', LockGuard, (guard) => guard.#word);
    eraOf = (guard) => guard.#era;
    isGuard = (value) => #word in Object(value);
    renew = (guard) => {
      guard.#era = thread.era;
    };
  }

  #mutex;
  #word;
  /** The era in which it was made; 0 once it is spent. */
  #era = thread.era;

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

  get lock() {
    return this.#mutex;
  }

  get locked() {
    return this.#era !== 0 && !(thread.hasAway && binding.whereabouts(this.#word, this.#era) === binding.LOST);
  }

  get abandoned() {
    const isHere = this.#era !== 0 && !(thread.hasAway && binding.whereabouts(this.#word, this.#era) !== binding.HERE);
    return isHere && (load(this.#word, 0) & ABANDONED) !== 0;
  }

  unlock() {
    if (this.#era === 0) return false;
    if (thread.hasAway || compareExchange(this.#word, 0, MINE, 0) !== MINE) return this.#unlockContended();
    this.#era = 0;
    return true;
  }

  #unlockContended() {
    // As in `unlockContended`.
    thread.drainSoon(this.#word);
    // Users' code that has run in that may have unlocked it: see `drainSoon`.
    if (this.#era === 0) return false;
    const { ask, notHeld } = waysOf(this.#word).guarded;
    const status = binding.release(this.#word, ask, 1, 0, this.#era);
    if (status === binding.RELEASED || status === binding.LOST) this.#era = 0;
    thread.hasAway = thread.record[HasAway] === 1;
    if (this.#era !== 0) throw notHeld(this.#word, status);
    return status === binding.RELEASED;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#mutex in this)) return this;
    const { mutex, locked, abandoned } = this;
    return inspection().show('LockGuard', null, { locked, abandoned, mutex }, depth, options);
  }

  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.unlock();
  }
}

/**
 * Ends the hold of a function that has ended, `name`, which began in `era`. If the hold is away, the wait that it is lent to will
 * not bring it back. Returns the error if the function did not hold the lock any more, for a reason that it does not know.
 */
function endHold(word, era, name) {
  // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
  try {
    thread.drainSoon(word);
  } catch {
    binding.wake();
  }
  return holdEnded(word, binding.endGuard(word, word.ways?.guarded.ask ?? Ask.MutexGuarded, era), name);
}

/** With what `endGuard` returned. */
function holdEnded(word, ended, name) {
  thread.hasAway = thread.record[HasAway] === 1;
  if (ended === binding.AWAY) {
    const number = thread.record[NUMBER];
    const wait = thread.lent.get(number);
    thread.lent.delete(number);
    wait?.holderEnded(name);
    return undefined;
  }
  return ended === binding.RELEASED || ended === binding.LOST ? undefined : refused(word, ended, GUARDED_HOLD);
}

const createGuard = (mutex, word) => new LockGuard(secret, mutex, word);

exports.LockGuard = LockGuard;
/** For the constructors of guards. */
exports.GUARD_KEY = secret;
exports.createGuard = createGuard;
/** The era in which a guard's hold began; 0 once it is spent. */
exports.eraOf = (guard) => eraOf(guard);
/** As it is here, whatever the lock doctor puts in its place: an RwLock's guard, which the doctor sees itself, calls it. */
exports.unlockGuard = LockGuard.prototype.unlock;
/** Whether it is a guard, and no other object that inherits from one. */
exports.isGuard = (value) => isGuard(value);
/** For a guard that is about to hold exclusively again. */
exports.renew = (guard) => renew(guard);
exports.endHold = endHold;
exports.holdEnded = holdEnded;
exports.refusal = refusal;
exports.unlockContended = unlockContended;
exports.waysOf = waysOf;
