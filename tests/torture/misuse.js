// Calls that must be refused, or change nothing: double unlocks, unlocks of what is not held, stale guards, bad
// arguments.
// And looks at the lock that must tell the truth.

const { Mutex } = require('./package.js');
const { STATE } = require('./log.js');

/** The misuses that are tried; counted in the log's header, in this order. */
const MISUSES = [
  'unlock of what is not held',
  'markConsistent of what is not held',
  'second unlock of a guard',
  'leave of a stale or foreign token',
  'unlock of what a guard holds',
  'bad arguments',
  'inspect, by the holder',
  'inspect, by others',
];

exports.MISUSES = MISUSES;

exports.Misuse = class Misuse {
  #actor;
  #stale = [];

  constructor(actor) {
    this.#actor = actor;
  }

  /** A guard that has unlocked: to be tried again later. */
  remember(guard) {
    if (this.#stale.length < 8) this.#stale.push(guard);
    else this.#stale[this.#actor.random.below(8)] = guard;
  }

  /** One of them, at any time; `wait` is the hold around it, if there is one. */
  try(wait) {
    try {
      this.#tryOne(wait);
    } catch (error) {
      // Node runs microtasks for a while after an uncaught error, and lets the package make no objects there.
      if (error?.code !== 'ERR_LOCK_THREAD_ENDING' || !this.#actor.isEnding) throw error;
    }
  }

  #tryOne(wait) {
    const { random, mutexes } = this.#actor;
    const choice = random.below(wait === undefined ? 6 : 7);
    const mutex = random.pick(mutexes);
    if (choice === 0 && !mutex.isHeldByThisThread) this.#refuse(0, 'ERR_LOCK_NOT_OWNER', () => mutex.unlock());
    if (choice === 1 && !mutex.isHeldByThisThread) this.#refuse(1, 'ERR_LOCK_NOT_OWNER', () => mutex.markConsistent());
    if (choice === 2) this.#staleGuard();
    if (choice === 3) {
      const token = random.chance(0.3) || this.#stale.length === 0 ? undefined : random.pick(this.#stale);
      this.#refuse(3, 'ERR_LOCK_NOT_OWNER', () => mutex.leave(token));
    }
    if (choice === 4) this.#badArguments(mutex);
    if (choice === 5) this.#look(mutex);
    if (choice === 6) this.#inside(wait);
  }

  #count(index) {
    this.#actor.log.state[STATE.MISUSES + index] += 1;
  }

  #refuse(index, code, call) {
    this.#count(index);
    let seen = 'no error';
    try {
      call();
      if (call === undefined) return;
    } catch (error) {
      seen = error.code ?? error.stack;
    }
    if (this.#actor.strikes('silent-misuse')) seen = 'no error';
    if (seen !== code) this.#actor.complain('misuse', `${MISUSES[index]}: expected ${code}, got ${seen}`);
  }

  #staleGuard() {
    if (this.#stale.length === 0) return;
    this.#count(2);
    const guard = this.#actor.random.pick(this.#stale);
    const word = () => guard.mutex.isHeldByThisThread;
    const before = word();
    const answer = guard.unlock();
    if (answer !== false || guard.locked || guard.abandoned || word() !== before) {
      this.#actor.complain('misuse', `${MISUSES[2]}: it returned ${answer}, locked: ${guard.locked}`);
    }
  }

  #badArguments(mutex) {
    this.#refuse(5, 'ERR_OUT_OF_RANGE', () => new Mutex(mutex.buffer, mutex.byteOffset + 2));
    this.#refuse(5, 'ERR_INVALID_ARG_TYPE', () => mutex.lock('5'));
    this.#refuse(5, 'ERR_INVALID_ARG_TYPE', () => mutex.enter(5));
    const expectRejection = (promise) => {
      const unexpected = (seen) => this.#actor.complain('misuse', `lockAsync of bad options: ${seen}`);
      promise.then(unexpected, (error) => error.code === 'ERR_INVALID_ARG_TYPE' || unexpected(error.stack));
    };
    expectRejection(mutex.lockAsync({ signal: 5 }));
    expectRejection(mutex.lockAsync(null));
    expectRejection(mutex.executeLocked(5));
  }

  #look(mutex) {
    this.#count(7);
    const { locked, ownerThreadId, abandoned, waiters } = mutex.inspect();
    const isSound =
      typeof locked === 'boolean' &&
      typeof abandoned === 'boolean' &&
      locked === (ownerThreadId !== null) &&
      waiters.every(
        ({ threadId, kind, waitedMs }) => threadId >= 0 && /^(blocking|async)$/.test(kind) && waitedMs >= 0,
      );
    if (!isSound) this.#actor.complain('misuse', `inspect: ${JSON.stringify(mutex.inspect())}`);
  }

  #inside(wait) {
    const actor = this.#actor;
    const mutex = actor.mutexes[wait.mutex];
    if (wait.guarded) this.#refuse(4, 'ERR_LOCK_NOT_OWNER', () => mutex.unlock());
    this.#count(6);
    const seen = mutex.inspect();
    if (!seen.locked || seen.ownerThreadId !== actor.threadId || seen.abandoned !== mutex.abandoned) {
      actor.complain('misuse', `inspect inside ${wait}: ${JSON.stringify(seen)}`);
    }
    if (mutex.tryLock()) actor.complain('overlap', `tryLock inside ${wait} took it again`);
    if (mutex.tryAcquire() !== null) actor.complain('overlap', `tryAcquire inside ${wait} took it again`);
    if (actor.mayBlock && mutex.lock(0.2) !== false) actor.complain('overlap', `lock inside ${wait} took it again`);
  }
};
