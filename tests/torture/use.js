// One use of something in things.js, as its thread logs it: a wait and the hold that comes of it, a wait that leaves nothing to
// hold, or a signal.

const { FORGOTTEN, KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');

const LOCK_VERBS = [
  'lock',
  'tryLock',
  'acquire',
  'tryAcquire',
  'executeLockedSync',
  'lockAsync',
  'acquireAsync',
  'executeLocked',
];

const VERBS = [
  ...LOCK_VERBS.map((verb) => `read.${verb}`),
  ...LOCK_VERBS.map((verb) => `write.${verb}`),
  'downgrade',
  'tryUpgrade',
  'semaphore.acquire',
  'semaphore.tryAcquire',
  'semaphore.executeSync',
  'semaphore.acquireAsync',
  'semaphore.execute',
  'latch.add',
  'latch.enter',
  'latch.wait',
  'latch.waitAsync',
  'barrier.join',
  'barrier.reset',
  'barrier.wait',
  'barrier.waitAsync',
  'exchanger.exchange',
  'exchanger.exchangeAsync',
  'set',
  'reset',
  'event.wait',
  'event.waitAsync',
  'once.runSync',
  'once.run',
  ...['shared', 'exclusive'].flatMap((mode) =>
    ['acquire', 'requestSync', 'acquireAsync', 'request'].map((verb) => `name.${mode}.${verb}`),
  ),
];

const ASYNC = /(Async|\.executeLocked|\.execute|once\.run|\.request)$/;
const BLOCKING = /(\.lock|\.acquire|Sync|\.wait|\.exchange)$/;

class Use {
  #actor;
  #index;
  #order;

  /** `timeout` as the verb will understand it; `count` permits. */
  constructor(actor, thing, verb, { timeout = Infinity, count = 0, order = -1 } = {}) {
    const { arena, log } = actor;
    this.#actor = actor;
    this.#order = order;
    this.thing = thing;
    this.verb = verb;
    this.isAsync = ASYNC.test(verb);
    this.isBlocking = BLOCKING.test(verb);
    this.#index = log.open(PHASES.BEGUN, {
      kind: KINDS.USE,
      mutex: thing,
      verb: VERBS.indexOf(verb),
      timeout,
      count,
      order,
      beginTick: arena.tick(),
      beginTime: arena.now(),
      about: actor.turn,
    });
    if (this.isBlocking) {
      log.state[STATE.BLOCKED_SINCE] = arena.now();
      Atomics.store(log.state, STATE.BLOCKED, timeout === Infinity ? 1 : 2);
    } else if (this.isAsync) {
      Atomics.add(log.state, STATE.PENDING, 1);
    }
  }

  get #name() {
    return (this.#actor.slot + 1) * 2 ** 16 + this.#index;
  }

  #isOver() {
    const { state } = this.#actor.log;
    if (this.isBlocking) Atomics.store(state, STATE.BLOCKED, 0);
    else if (this.isAsync) Atomics.sub(state, STATE.PENDING, 1);
  }

  /** From now on it surely stands in the queue, unless it is over. */
  queued() {
    this.#actor.log.write(this.#index, { queuedTick: this.#actor.arena.tick() });
  }

  /** The thread has it. */
  held(fields) {
    const { arena, log } = this.#actor;
    this.#isOver();
    if (this.#order >= 0 && this.#actor.strikes('swap-uses')) log.write(this.#index, { order: this.#order + 10 });
    log.write(this.#index, { ...fields, heldTick: arena.tick(), heldTime: arena.now(), outcome: OUTCOMES.HELD });
    log.advance(this.#index, PHASES.HELD);
    Atomics.add(log.state, STATE.HOLDING, 1);
  }

  /** Notes that nobody may be beside it; `isMarked`: an earlier one ended inside. */
  alone(isMarked) {
    const { inside } = this.#actor.things;
    const before = inside[this.thing];
    if (before !== 0 && !isMarked) this.#actor.complain('unmarked', `${this} finds ${before.toString(16)} inside`);
    inside[this.thing] = this.#name;
  }

  /** No writer may be beside it. */
  beside(isMarked) {
    const before = this.#actor.things.inside[this.thing];
    if (before !== 0 && !isMarked) this.#actor.complain('overlap', `${this} finds ${before.toString(16)} inside`);
  }

  /** Checks that what `alone` has written is still there. */
  aloneNoMore() {
    const { inside } = this.#actor.things;
    const now = inside[this.thing];
    if (now !== this.#name) this.#actor.complain('overlap', `during ${this} came ${now.toString(16)}`);
    inside[this.thing] = 0;
  }

  /** Before a mark is taken off. */
  clearing() {
    this.#actor.log.write(this.#index, { cleared: 1 });
  }

  /**
   * Before so many permits are forgotten and added again. Returns `{ fields, at }`, where the thread writes which of these it has
   * done, without a call.
   */
  forgetting(count) {
    const { log } = this.#actor;
    log.write(this.#index, { cleared: FORGOTTEN.NOT_YET, woken: count });
    return { fields: log.fields, at: log.placeOf(this.#index, 'cleared') };
  }

  /** Before it is given back. */
  leaving() {
    const { arena, log } = this.#actor;
    log.write(this.#index, { leftTick: arena.tick(), leftTime: arena.now() });
    log.advance(this.#index, PHASES.LEAVING);
    Atomics.sub(log.state, STATE.HOLDING, 1);
  }

  /** It was not given back after all. */
  staying() {
    this.#actor.log.advance(this.#index, PHASES.HELD);
    Atomics.add(this.#actor.log.state, STATE.HOLDING, 1);
  }

  freed() {
    const { arena, log } = this.#actor;
    log.write(this.#index, { freedTick: arena.tick(), endTime: arena.now() });
    log.advance(this.#index, PHASES.FREED);
  }

  /** It ended without a hold. */
  ended(outcome, fields) {
    const { arena, log } = this.#actor;
    this.#isOver();
    log.write(this.#index, { ...fields, endTick: arena.tick(), endTime: arena.now(), outcome });
    log.advance(this.#index, PHASES.ENDED);
  }

  /** The verb threw `error`. */
  failed(error) {
    const actor = this.#actor;
    if (this.reason !== undefined && error === this.reason()) return this.ended(OUTCOMES.ABORTED);
    if (error?.code === 'ERR_LOCK_TIMEOUT') return this.ended(OUTCOMES.TIMED_OUT);
    if (error?.code === 'ERR_LOCK_BROKEN') return this.ended(OUTCOMES.BROKEN);
    // Only where that is so: see checks/endings.js.
    if (error?.code === 'ERR_LOCK_THREAD_ENDING') return this.ended(OUTCOMES.THREAD_ENDING);
    actor.complain('error', `${this} threw ${error?.stack ?? error}`.replaceAll('\n', ' | '));
    return this.ended(OUTCOMES.ERROR);
  }

  toString() {
    return `${this.verb} number ${this.#index} of thread ${this.#actor.threadId} on thing ${this.thing}`;
  }
}

exports.Use = Use;
exports.USE_VERBS = VERBS;
exports.ASYNC_USES = ASYNC;
exports.BLOCKING_USES = BLOCKING;
