const { markAsUncloneable } = require('node:worker_threads');
const { lazily } = require('./lazily.js');
const { binding, thread } = require('./thread.js');
const { checkFunction, toAsyncOptions, toLockOptions, toTimeout, toWaiters, toWord } = require('./arguments.js');
const { corrupt, describe, invalidArgument, mainThread, noBackgroundThread, notOwner } = require('./errors.js');
const { innerOf } = require('./mutex.js');
const { PendingWait } = require('./pending-wait.js');
const { isWatched, whileBlocked } = require('./diagnosis.js');
const { conclude, lockWord } = require('./wait.js');

const inspection = lazily(() => require('./inspection.js'));
const names = lazily(() => require('./names.js'));

const { GUARDED, OWNER } = binding;
const { load } = Atomics;

/** A promise for a notification, which is settled once the mutex is held again. */
class ConditionWait extends PendingWait {
  constructor(mutex, word, guarded, { signal, ref }) {
    super(signal, ref);
    this.mutex = mutex;
    this.word = word;
    this.guarded = guarded;
  }

  settle(code) {
    const isNotified = code === binding.NOTIFIED;
    this.#lockAgain(isNotified, () => this.resolve(isNotified));
    this.stopListening();
  }

  abort(reason) {
    if (!thread.cancel(this)) return;
    this.#lockAgain(false, () => this.reject(reason));
    this.stopListening();
  }

  /** Until the mutex is held again a notification is not quite ours: if this thread ends before, it is passed on. */
  #lockAgain(isNotified, conclude) {
    const accept = (isHeld) => {
      if (isNotified) binding.accept(this.token, isHeld);
    };
    const options = { timeout: Infinity, signal: undefined, ref: this.ref };
    // In the context of whoever waits, and not of whoever notified.
    const locking = this.runInAsyncScope(lockWord, null, this.mutex, this.word, this.guarded, options);
    locking.then(
      () => {
        accept(true);
        conclude();
      },
      (error) => {
        accept(false);
        this.reject(error);
      },
    );
  }
}

/** Waiting, with a mutex, until another thread says that something has changed. */
class Condition {
  static {
    for (const name of ['BYTES', 'ALIGN']) Object.defineProperty(Condition, name, { value: 4, enumerable: true });
  }

  #word;

  constructor(buffer, byteOffset, options) {
    const word = toWord(buffer, byteOffset);
    const { name } = toLockOptions(options);
    if (name !== undefined) names().name(word, name);
    this.#word = word;
    markAsUncloneable?.(this);
  }

  get buffer() {
    return this.#word.buffer;
  }

  get byteOffset() {
    return this.#word.byteOffset;
  }

  get name() {
    return this.#word.name ?? null;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    return #word in this ? inspection().showCondition(this.#word, depth, options) : this;
  }

  wait(mutex, timeout) {
    const { word, mayBlock } = toInner(mutex);
    const limit = toTimeout(word, timeout);
    if (!mayBlock) throw mainThread(word, 'waitAsync()');
    return this.#wait(mutex, word, limit);
  }

  waitFor(mutex, predicate, timeout) {
    const { word, mayBlock } = toInner(mutex);
    checkFunction(word, 'predicate', predicate);
    const limit = toTimeout(word, timeout);
    if (!mayBlock) throw mainThread(word, 'waitForAsync()');
    toHold(word);
    const deadline = performance.now() + limit;
    while (!predicate()) {
      if (!this.#wait(mutex, word, deadline - performance.now())) return Boolean(predicate());
    }
    return true;
  }

  async waitAsync(mutex, options) {
    const { word } = toInner(mutex);
    return this.#waitAsync(mutex, word, toAsyncOptions(word, options));
  }

  async waitForAsync(mutex, predicate, options) {
    const { word } = toInner(mutex);
    checkFunction(word, 'predicate', predicate);
    const { timeout, signal, ref } = toAsyncOptions(word, options);
    toHold(word);
    const deadline = performance.now() + timeout;
    while (!(await predicate())) {
      const left = deadline - performance.now();
      if (!(await this.#waitAsync(mutex, word, { timeout: left, signal, ref }))) return Boolean(await predicate());
    }
    return true;
  }

  notify(count = Infinity) {
    return binding.notify(this.#word, 0, toWaiters(count));
  }

  notifyOne() {
    return binding.notify(this.#word, 0, 1);
  }

  notifyAll() {
    return binding.notify(this.#word, 0, Infinity);
  }

  #wait(mutex, word, limit) {
    const guarded = toHold(word);
    if (limit <= 0) return false;
    thread.drainSoon();
    const wait = () => binding.waitUnlocked(this.#word, word, guarded, limit);
    const answer = isWatched() ? whileBlocked(mutex, word, wait) : wait();
    if (answer === binding.NOT_OWNER) throw notHeld(word);
    conclude(answer % binding.CODES, mutex, word, guarded, Infinity);
    return Math.floor(answer / binding.CODES) === binding.NOTIFIED;
  }

  #waitAsync(mutex, word, options) {
    const { timeout, signal } = options;
    const guarded = toHold(word);
    if (signal?.aborted) throw signal.reason;
    if (timeout <= 0) return false;
    const wait = new ConditionWait(mutex, word, guarded, options);
    // First whatever may throw, then the line.
    wait.startListening();
    thread.drainSoon();
    const answer = binding.waitUnlockedAsync(this.#word, word, guarded, timeout);
    if (answer >= 0) {
      thread.add(answer, wait);
      return wait.promise;
    }
    wait.stopListening();
    if (-1 - answer === binding.NO_CLOCK) throw noBackgroundThread(describe(this, 'condition'));
    throw -1 - answer === binding.CORRUPT ? corrupt(word, load(word, 0)) : notHeld(word);
  }
}

function toInner(mutex) {
  const inner = innerOf(mutex);
  if (inner === undefined) throw invalidArgument('mutex', 'a Mutex', mutex);
  return inner;
}

/** Whether a guard owns this thread's hold; throws if there is none. */
function toHold(word) {
  const value = load(word, 0);
  if ((value & OWNER) !== thread.id) throw notHeld(word);
  return (value & GUARDED) !== 0;
}

const notHeld = (word) =>
  notOwner(
    word,
    'wait with',
    'this thread does not hold it. Lock it first: to wait is to unlock it meanwhile.',
    thread.isWaitingFor(word),
  );

exports.Condition = Condition;
