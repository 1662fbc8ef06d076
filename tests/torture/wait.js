// One wait for a mutex and the hold that comes of it, as its thread logs them.

const { KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { passCycle } = require('./sabotage.js');

const VERBS = [
  'lock',
  'lockAsync',
  'tryLock',
  'acquire',
  'acquireAsync',
  'tryAcquire',
  'executeLocked',
  'executeLockedSync',
  'enter',
  // Locking the mutex again, from the call to the hold.
  'Condition.wait',
  'Condition.waitAsync',
  // One of several.
  'lockAll',
  'lockAllAsync',
];
/** Their holds are freed by `mutex.unlock()`; those of the others by what owns them. */
const PLAIN = new Set(['lock', 'lockAsync', 'tryLock']);
const RELOCKS = new Set(['Condition.wait', 'Condition.waitAsync']);
/** Others are held while it is waited for; when it comes to its turn the log cannot say. */
const SEVERAL = new Set(['lockAll', 'lockAllAsync']);
const BLOCKING = new Set(['lock', 'acquire', 'executeLockedSync', 'Condition.wait', 'lockAll']);
const ASYNC = new Set(['lockAsync', 'acquireAsync', 'executeLocked', 'enter', 'Condition.waitAsync', 'lockAllAsync']);

class Wait {
  #index;

  /** `timeout` in milliseconds, as the verb will understand it. */
  constructor(actor, verb, mutex, timeout) {
    const { arena, log } = actor;
    Object.assign(this, { actor, verb, mutex, timeout });
    this.guarded = !PLAIN.has(verb);
    this.isBlocking = BLOCKING.has(verb);
    this.isAsync = ASYNC.has(verb);
    /** Whether the mutex could not be locked again. */
    this.isLost = false;
    this.#index = log.open(PHASES.BEGUN, {
      kind: KINDS.WAIT,
      mutex,
      verb: VERBS.indexOf(verb),
      timeout,
      beginTick: arena.tick(),
      beginTime: arena.now(),
      order: this.isAsync && !RELOCKS.has(verb) && !SEVERAL.has(verb) ? actor.order[mutex]++ : -1,
      about: actor.turn,
    });
    if (this.isBlocking) {
      log.state[STATE.BLOCKED_SINCE] = arena.now();
      Atomics.store(log.state, STATE.BLOCKED, timeout === Infinity ? 1 : 2);
    } else {
      Atomics.add(log.state, STATE.PENDING, 1);
    }
  }

  get index() {
    return this.#index;
  }

  /** The hold that it has become, if its thread has waited for notifications with the mutex meanwhile. */
  get last() {
    return this.next?.last ?? this;
  }

  #isOver() {
    const { state } = this.actor.log;
    if (this.isBlocking) Atomics.store(state, STATE.BLOCKED, 0);
    else Atomics.sub(state, STATE.PENDING, 1);
  }

  /** The thread has it; `guard` if one owns the hold. */
  held(guard) {
    const { actor, mutex } = this;
    const { arena, log } = actor;
    if (actor.strikes('slow-grant')) actor.sleep(2000);
    if (this.isBlocking && actor.strikes('late-wake')) actor.sleep(12.5);
    if (log.phase(this.#index) === PHASES.ENDED) actor.complain('aborted', `${this} holds although it had ended`);
    else this.#isOver();
    const face = actor.mutexes[mutex];
    let abandoned = face.abandoned;
    if (guard !== undefined && guard.abandoned !== abandoned) {
      actor.complain('marked', `the guard of ${this} says abandoned: ${guard.abandoned}, its mutex ${abandoned}`);
    }
    if (!face.isHeldByThisThread || !face.isLocked) actor.complain('overlap', `${this} holds what is not held here`);
    if (actor.strikes('unmark')) abandoned = false;
    if (actor.strikes('mark-falsely')) abandoned = true;
    this.sequence = arena.counters[mutex] + 1;
    this.abandoned = abandoned;
    log.write(this.#index, {
      heldTick: arena.tick(),
      heldTime: arena.now(),
      sequence: this.sequence,
      outcome: OUTCOMES.HELD,
      abandoned: Number(abandoned),
    });
    if (this.isAsync && actor.strikes('swap-order')) log.write(this.#index, { order: actor.order[mutex] + 10 });
    log.advance(this.#index, PHASES.HELD);
    Atomics.add(log.state, STATE.HOLDING, 1);
    const before = arena.inside[mutex];
    if (before !== 0 && !abandoned) {
      actor.complain('unmarked', `${this} finds hold ${before.toString(16)} inside, and no mark of abandonment`);
    }
    arena.inside[mutex] = this.#name;
    arena.counters[mutex] = this.sequence;
  }

  get #name() {
    return (this.actor.slot + 1) * 2 ** 16 + this.#index;
  }

  /** Before the mark of abandonment is taken off. */
  clearing() {
    this.actor.log.write(this.#index, { cleared: 1 });
  }

  /** Before the unlock. */
  leaving() {
    const { actor, mutex } = this;
    const { arena, log } = actor;
    if (arena.inside[mutex] !== this.#name || arena.counters[mutex] !== this.sequence) {
      const [inside, counter] = [arena.inside[mutex].toString(16), arena.counters[mutex]];
      actor.complain(
        'overlap',
        `during ${this} (${this.#name.toString(16)}) hold ${inside}, number ${counter}, came in`,
      );
    }
    log.write(this.#index, { leftTick: arena.tick(), leftTime: arena.now() });
    log.advance(this.#index, PHASES.LEAVING);
    Atomics.sub(log.state, STATE.HOLDING, 1);
    arena.inside[mutex] = 0;
  }

  /** After the unlock. */
  freed() {
    const { arena, log, strikes } = this.actor;
    log.write(this.#index, { freedTick: arena.tick() });
    log.advance(this.#index, strikes('drop-record') ? PHASES.EMPTY : PHASES.FREED);
  }

  /** The wait ended without a hold. */
  ended(outcome) {
    const { arena, log } = this.actor;
    this.#isOver();
    log.write(this.#index, { endTick: arena.tick(), endTime: arena.now(), outcome });
    log.advance(this.#index, PHASES.ENDED);
  }

  /** The verb threw `error`. */
  failed(error) {
    const { actor } = this;
    if (this.reason !== undefined && error === this.reason()) return this.ended(OUTCOMES.ABORTED);
    if (error?.code === 'ERR_LOCK_TIMEOUT' && this.guarded) return this.ended(OUTCOMES.TIMED_OUT);
    if (error?.code === 'ERR_LOCK_DEADLOCK') {
      this.deadlocked(error.cycle);
      return;
    }
    // Only where that is so: see checks/endings.js.
    if (error?.code === 'ERR_LOCK_THREAD_ENDING') return this.ended(OUTCOMES.THREAD_ENDING);
    actor.complain('error', `${this} threw ${error?.stack ?? error}`.replaceAll('\n', ' | '));
    this.ended(OUTCOMES.ERROR);
  }

  /** A DeadlockError with this cycle. */
  deadlocked(cycle) {
    const { arena, log, strikes } = this.actor;
    if (cycle.length === 2 && strikes('report-twice')) passCycle(arena, cycle);
    for (const { threadId, byteOffset } of cycle) {
      const hop = { kind: KINDS.HOP, mutex: arena.mutexAt(byteOffset), about: threadId, order: this.#index };
      log.open(PHASES.ENDED, hop);
    }
    this.ended(OUTCOMES.DEADLOCK);
  }

  toString() {
    const { verb, timeout, mutex, actor } = this;
    return `${verb}(${timeout}) number ${this.#index} of thread ${actor.threadId} on mutex ${mutex}`;
  }
}

exports.Wait = Wait;
exports.VERBS = VERBS;
exports.BLOCKING = BLOCKING;
exports.ASYNC = ASYNC;
exports.RELOCKS = RELOCKS;
exports.SEVERAL = SEVERAL;
