const { lazily } = require('../load/lazily.js');
const { markAsUncloneable } = require('node:worker_threads');
const clock = require('../load/clock.js');
const { binding, isMainThread, thread } = require('../engine/thread.js');
const { OF_LOCKS, checkFunction, toLockOptions, toWord } = require('../arguments.js');
const { ExclusiveLock, NEW_GUARD, innerOf, wordOf } = require('./exclusive.js');
const { createGuard, isGuard } = require('./guard.js');

const corruption = lazily(() => require('../engine/corrupt.js'));
const errors = lazily(() => require('../errors.js'));
const inspection = lazily(() => require('../engine/inspection.js'));
const names = lazily(() => require('../engine/names.js'));

const { ABANDONED, Ask, OWNER } = binding;
const { load } = Atomics;
const ME = thread.id;

/** The fields that `console.log()` shows. */
const fieldsOf = ({ locked, ownerThreadId, abandoned, waiters }) => ({
  locked,
  ownerThreadId,
  abandoned,
  waiters: waiters.length,
});

const isSame = (word, other) => word === other || binding.address(word) === binding.address(other);

/**
 * Awaits the token, which asks for no `then` that users may have patched. Begins before anything is acquired: at the end of the
 * stack it might not afterwards. Notes what is thrown at once, without a call.
 */
async function acquireFor(mutex, callback, outcome) {
  let acquired;
  try {
    acquired = mutex.acquireAsync();
  } catch (error) {
    outcome.error = error;
    outcome.hasThrown = true;
    return;
  }
  const token = await acquired;
  // In a microtask of its own, what it throws is an uncaught error and not a rejection that nobody could handle.
  clock.queueMicrotask(() => callback(token));
}

/** A mutual-exclusion lock on four bytes of shared memory. */
class Mutex extends ExclusiveLock {
  static {
    thread.addClass('Mutex', Mutex, wordOf);
    // It stays that of the first load: one of a later load would keep its whole environment.
    thread.plain ??= { type: 'Mutex', ask: Ask.Mutex };
    for (const name of ['BYTES', 'ALIGN']) Object.defineProperty(Mutex, name, { value: 4, enumerable: true });
  }

  constructor(buffer, byteOffset, options) {
    const word = toWord(buffer, byteOffset);
    const { allowMainThread, maySleep, name, onAbandoned } = toLockOptions(options, OF_LOCKS);
    // The word carries them to wherever it is at hand.
    if (name !== undefined) names().name(word, name);
    if (onAbandoned !== undefined) word.onAbandoned = onAbandoned;
    if (!maySleep) word.staysAwake = true;
    super(word, allowMainThread || !isMainThread);
    // Since Node.js 22.12: else postMessage() would send an empty object.
    markAsUncloneable?.(this);
  }

  get buffer() {
    return wordOf(this).buffer;
  }

  get byteOffset() {
    return wordOf(this).byteOffset;
  }

  get name() {
    return wordOf(this).name ?? null;
  }

  enter(callback) {
    checkFunction(wordOf(this), 'callback', callback);
    const outcome = { error: undefined, hasThrown: false };
    acquireFor(this, callback, outcome);
    if (outcome.hasThrown) throw outcome.error;
  }

  leave(token) {
    const isOurs = isGuard(token) && token.mutex !== null && isSame(wordOf(token.mutex), wordOf(this));
    if (!isOurs || !token.unlock()) {
      throw errors().notOwner(
        wordOf(this),
        'leave',
        'this is not the token of its current holder. Pass the token that the callback of enter() got.',
      );
    }
  }

  get isLocked() {
    return (load(wordOf(this), 0) & OWNER) !== 0;
  }

  get abandoned() {
    const word = load(wordOf(this), 0);
    return (word & OWNER) === ME && (word & ABANDONED) !== 0;
  }

  markConsistent() {
    const status = binding.change(wordOf(this), Ask.Mutex, binding.Change.MarkConsistent, 0, 0);
    if (status === binding.CORRUPT) throw corruption().corrupt(wordOf(this));
    if (status === binding.NOT_OWNER) {
      throw errors().notOwner(
        wordOf(this),
        'mark as consistent',
        'this thread does not hold it. Lock it and check its data first.',
        thread.isWaitingFor(wordOf(this)),
      );
    }
  }

  inspect() {
    return inspection().inspectWord(wordOf(this), binding.inspect(wordOf(this), Ask.Mutex));
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (innerOf(this) === undefined) return this;
    const word = wordOf(this);
    return inspection().showWord('Mutex', word, binding.inspect(word, Ask.Mutex), fieldsOf, depth, options);
  }

  [NEW_GUARD](lock, word) {
    return createGuard(lock, word);
  }
}

exports.Mutex = Mutex;
