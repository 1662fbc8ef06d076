const { binding, thread } = require('./thread.js');
const { checkFunction, toAsyncOptions, toTimeout, toWaiters, toWord } = require('./arguments.js');
const { corrupt, invalidArgument, mainThread, noBackgroundThread, notOwner } = require('./errors.js');
const { innerOf } = require('./mutex.js');
const { PendingWait } = require('./pending-wait.js');
const { isWatched, whileBlocked } = require('./diagnosis.js');
const { conclude, lockWord } = require('./wait.js');

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
    lockWord(this.mutex, this.word, this.guarded, options).then(
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

  constructor(buffer, byteOffset) {
    this.#word = toWord(buffer, byteOffset);
  }

  get buffer() {
    return this.#word.buffer;
  }

  get byteOffset() {
    return this.#word.byteOffset;
  }

  wait(mutex, timeout) {
    const { word, mayBlock } = toInner(mutex);
    const limit = toTimeout(word.byteOffset, timeout);
    if (!mayBlock) throw mainThread(word.byteOffset, 'waitAsync()');
    return this.#wait(mutex, word, limit);
  }

  waitFor(mutex, predicate, timeout) {
    const { word, mayBlock } = toInner(mutex);
    checkFunction(word, 'predicate', predicate);
    const limit = toTimeout(word.byteOffset, timeout);
    if (!mayBlock) throw mainThread(word.byteOffset, 'waitForAsync()');
    toHold(word);
    const deadline = performance.now() + limit;
    while (!predicate()) {
      if (!this.#wait(mutex, word, deadline - performance.now())) return Boolean(predicate());
    }
    return true;
  }

  async waitAsync(mutex, options) {
    const { word } = toInner(mutex);
    return this.#waitAsync(mutex, word, toAsyncOptions(word.byteOffset, options));
  }

  async waitForAsync(mutex, predicate, options) {
    const { word } = toInner(mutex);
    checkFunction(word, 'predicate', predicate);
    const { timeout, signal, ref } = toAsyncOptions(word.byteOffset, options);
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
    if (-1 - answer === binding.NO_CLOCK) throw noBackgroundThread(`the condition at byte offset ${this.byteOffset}`);
    throw -1 - answer === binding.CORRUPT ? corrupt(word.byteOffset, load(word, 0)) : notHeld(word);
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

const notHeld = ({ byteOffset }) =>
  notOwner(byteOffset, 'wait with', 'this thread does not hold it. Lock it first: to wait is to unlock it meanwhile.');

exports.Condition = Condition;
