// The holds of an RwLock: the guard, and what is asked for to get one.

const { threadId } = require('node:worker_threads');
const { lazily } = require('../load/lazily.js');
const { binding, thread } = require('../engine/thread.js');
const { slotFor } = require('../engine/register.js');
const { repair } = require('../engine/abandonment.js');
const { corrupt } = require('../engine/corrupt.js');
const { notOwner } = require('../errors.js');
const { GUARD_KEY, LockGuard, endHold, eraOf, refusal, renew, unlockGuard } = require('./guard.js');

const diagnosis = lazily(() => require('../engine/diagnosis.js'));
const inspection = lazily(() => require('../engine/inspection.js'));

const { ABANDONED, Ask, Change, GUARDED, OWNER, READERS, SHARED } = binding;
const { compareExchange, load } = Atomics;
const MINE = thread.id | GUARDED;
/** The word with one reader, and nothing else. */
const ONE_READER = SHARED | 1;
/** The word with as many readers as there can be, and nothing else. Beyond it somebody waits, or it is marked. */
const ALL_READERS = SHARED | READERS;

let isReader;

/** One hold of an RwLock: to write it is the guard of a mutex. */
class RwLockGuard extends LockGuard {
  static {
    thread.addClass('RwLockGuard', RwLockGuard, (guard) => guard.#words);
    isReader = (guard) => guard.#isShared && guard.#slot !== null;
  }

  #rwlock;
  #words;
  /** The counts of this thread's read holds (see register.js), while this is one of them. */
  #slot;
  #isShared;

  constructor(key, rwlock, words, slot, isShared) {
    super(key, null, words);
    this.#rwlock = rwlock;
    this.#words = words;
    this.#slot = slot;
    this.#isShared = isShared;
  }

  get lock() {
    return this.#isShared ? this.#rwlock.read : this.#rwlock.write;
  }

  get mode() {
    return this.#isShared ? 'shared' : 'exclusive';
  }

  get locked() {
    return this.#isShared ? this.#slot !== null : super.locked;
  }

  get abandoned() {
    if (!this.#isShared) return super.abandoned;
    return this.#slot !== null && (load(this.#words, 0) & ABANDONED) !== 0;
  }

  unlock() {
    if (!this.#isShared) return unlockGuard.call(this);
    const words = this.#words;
    const slot = this.#slot;
    if (slot === null) return false;
    const was = words[0];
    if (was > SHARED && was <= ALL_READERS) {
      const now = was === ONE_READER ? 0 : was - 1;
      // One expression: see register.js.
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, was, now) === was && (slot[1] -= 1) !== undefined) {
        this.#slot = null;
        return true;
      }
    }
    const error = releaseRead(words, slot, 1, this);
    if (error !== undefined) throw error;
    // Users' code that has run in that may have unlocked it, or upgraded.
    if (!this.#isShared || this.#slot === null) return this.unlock();
    this.#slot = null;
    return true;
  }

  downgrade() {
    const words = this.#words;
    if (!this.locked || this.#isShared) throw notInMode(words, 'downgrade', 'write');
    const slot = slotFor(words, Ask.Read);
    this.#slot = slot;
    if (!thread.hasAway) {
      // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
      if (compareExchange(words, 0, MINE, ONE_READER) === MINE && (slot[1] += 1) !== undefined) {
        this.#isShared = true;
        return;
      }
    }
    thread.drainSoon(words);
    if (!this.locked || this.#isShared) throw notInMode(words, 'downgrade', 'write');
    const status = binding.change(words, Ask.WriteGuarded, Change.Downgrade, 0, 0, eraOf(this));
    if (status === binding.RELEASED) this.#isShared = true;
    thread.hasAway = thread.record[binding.Field.HasAway] === 1;
    if (status !== binding.RELEASED) throw refused(words, status, true, false, 'downgrade');
  }

  tryUpgrade() {
    const words = this.#words;
    if (!this.#isShared || this.#slot === null) throw notInMode(words, 'upgrade', 'read');
    renew(this);
    if (!upgrade(words, this.#slot, 1, this)) return false;
    this.#isShared = false;
    repairAfterUpgrade(this.#rwlock, words, this);
    return true;
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
    if (!(#slot in this)) return this;
    const { mode, locked, abandoned } = this;
    return inspection().show('RwLockGuard', null, { mode, locked, abandoned, rwlock: this.#rwlock }, depth, options);
  }
}

/**
 * Enters beside the readers who are in. `index` says which count of the slot. False: whoever writes, waits, or has left a mark
 * is the core's.
 */
function tryRead(words, slot, index) {
  for (;;) {
    // A plain load, since the compare-exchange confirms it, or the core looks itself.
    const was = words[0];
    if (was !== 0 && (was <= SHARED || was >= ALL_READERS)) return false;
    const now = was === 0 ? ONE_READER : was + 1;
    // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
    if (compareExchange(words, 0, was, now) === was && (slot[index] += 1) !== undefined) return true;
  }
}

/** Gives back a read hold of the thread, or of `guard`. Returns the error if the memory does not know of it any more. */
function releaseRead(words, slot, index, guard) {
  for (;;) {
    const was = words[0];
    if (was <= SHARED || was > ALL_READERS) break;
    const now = was === ONE_READER ? 0 : was - 1;
    // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
    if (compareExchange(words, 0, was, now) === was && (slot[index] -= 1) !== undefined) return undefined;
  }
  // At the end of the stack no function of JS may be able to begin. Those of the binding always are.
  try {
    thread.drainSoon(words);
    // Users' code that has run in that may have unlocked it: see `drainSoon`.
    if (guard !== undefined && !isReader(guard)) return undefined;
  } catch {
    binding.wake();
  }
  // As for a guard: what is left is a guard's.
  if (index === 0 && slot[0] === 0) return refused(words, binding.NOT_OWNER, false, true);
  const status = binding.release(words, index === 0 ? Ask.Read : Ask.ReadGuarded, 1, 0);
  return status === binding.RELEASED ? undefined : refused(words, status, false, index === 0);
}

/**
 * Turns the read hold of the thread, or of `guard`, into one that writes; false if others read, or somebody waits; undefined if the
 * thread has none any more.
 */
function upgrade(words, slot, index, guard) {
  const mine = index === 0 ? thread.id : MINE;
  // biome-ignore lint/suspicious/noAssignInExpressions: so that word and slot change together.
  if (compareExchange(words, 0, ONE_READER, mine) === ONE_READER && (slot[index] -= 1) !== undefined) return true;
  const word = load(words, 0);
  if (word > ONE_READER && word <= ALL_READERS) return false;
  thread.drainSoon(words);
  if (guard !== undefined && !isReader(guard)) throw notInMode(words, 'upgrade', 'read');
  if (index === 0 && slot[0] === 0) return undefined;
  const status = binding.change(words, index === 0 ? Ask.Read : Ask.ReadGuarded, Change.Upgrade, 0, 0);
  if (status === binding.CORRUPT) throw corrupt(words);
  return status === binding.RELEASED;
}

/** As every verb that comes to write. If `onAbandoned` throws, the hold is shared again; `hold` has `downgrade()`. */
function repairAfterUpgrade(rwlock, words, hold) {
  if (words.onAbandoned === undefined || (load(words, 0) & ABANDONED) === 0) return;
  // An agent that ended before the upgrade is not reported.
  thread.record[binding.Field.EndedThread] = -1;
  try {
    repair(rwlock, words);
  } catch (error) {
    try {
      hold.downgrade();
    } catch {
      // It has unlocked it: what it threw, or what became of that, says more.
    }
    throw error;
  }
}

/** Whether this thread reads beside a wait: what a pending lockAllAsync() has got so far is in no slot, and the core knows it. */
function readsBeside(words) {
  if (thread.pending === 0) return false;
  const holders = binding.holders(words, Ask.Read) ?? [];
  return holders.some((holder) => holder.threadId === threadId && holder.mode === 'shared');
}

/** The error for a release that was refused. */
const refused = (words, status, isWrite, isRaw, verb) =>
  refusal(words, status, () => adviceFor(words, isWrite, isRaw), verb);

function adviceFor(words, isWrite, isRaw) {
  const lock = isWrite ? 'write' : 'read';
  const isOfGuard = isWrite
    ? (load(words, 0) & (OWNER | GUARDED | SHARED)) === MINE
    : slotFor(words, Ask.Read)[1] > 0 || readsBeside(words);
  if (isRaw && isOfGuard) {
    return "this hold belongs to a guard, to executeLocked() or to a pending lockAllAsync(). Only that guard's unlock(), or the end of that function or of that wait, frees it.";
  }
  const holders = diagnosis().describeHolder(words);
  return `this thread does not hold it to ${lock}. ${holders} Call ${lock}.unlock() once for each lock of ${lock} by this thread.`;
}

function notInMode(words, verb, needed) {
  return notOwner(words, verb, `this guard does not hold it to ${needed}. Nothing was changed.`);
}

const newGuard = (rwlock, words, slot, isShared) => new RwLockGuard(GUARD_KEY, rwlock, words, slot, isShared);

// The requests; see wait.js.
const READ = {
  ask: Ask.Read,
  count: 1,
  of: 0,
  isCounted: false,
  isGuarded: false,
  isExclusive: false,
  isShared: true,
  prefix: 'read.',
  take: () => true,
};
const READ_GUARDED = {
  ...READ,
  ask: Ask.ReadGuarded,
  isGuarded: true,
  take: (rwlock, words) => newGuard(rwlock, words, slotFor(words, Ask.Read), true),
};
const WRITE = {
  ...READ,
  ask: Ask.Write,
  isExclusive: true,
  isShared: false,
  prefix: 'write.',
  tryFree: (words) => compareExchange(words, 0, 0, thread.id) === 0,
  notHeld: (words, status) => refused(words, status, true, true),
};
const WRITE_GUARDED = {
  ...WRITE,
  ask: Ask.WriteGuarded,
  isGuarded: true,
  tryFree: (words) => compareExchange(words, 0, 0, MINE) === 0,
  take: (rwlock, words) => newGuard(rwlock, words, null, false),
  endHold,
  notHeld: (words, status) => refused(words, status, true, false),
};

exports.RwLockGuard = RwLockGuard;
exports.newGuard = newGuard;
exports.tryRead = tryRead;
exports.releaseRead = releaseRead;
exports.readsBeside = readsBeside;
exports.upgrade = upgrade;
exports.repairAfterUpgrade = repairAfterUpgrade;
exports.refused = refused;
exports.ONE_READER = ONE_READER;
exports.ALL_READERS = ALL_READERS;
exports.READ = READ;
exports.READ_GUARDED = READ_GUARDED;
/** For the function that `executeLocked` runs, which nobody sees a guard of. */
exports.READ_INSIDE = { ...READ_GUARDED, take: () => true };
/** As those of a mutex, in guard.js. */
exports.WRITE_WAYS = { raw: WRITE, guarded: WRITE_GUARDED, inside: { ...WRITE_GUARDED, take: () => thread.era } };
