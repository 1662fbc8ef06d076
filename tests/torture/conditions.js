// Waiting for a notification, and notifying, as a thread calls them and logs them: a Condition with the mutex that the thread
// holds, and `wait`, `waitAsync` and `notify`. Those of the same condition word share one queue.

const { drawSignal, drawTimeout } = require('./choices.js');
const { KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { notify, wait, waitAsync } = require('./package.js');
const { lockableOf } = require('./table-face.js');
const { Wait } = require('./wait.js');

const VERBS = ['Condition.wait', 'Condition.waitAsync', 'wait', 'waitAsync'];
const OUTCOME = { ok: OUTCOMES.NOTIFIED, 'timed-out': OUTCOMES.TIMED_OUT, 'not-equal': OUTCOMES.NOT_EQUAL };

exports.VERBS = VERBS;

/** One wait for a notification. */
class QueuedWait {
  #actor;
  #index;
  #verb;
  #condition;
  #timeout;

  /** `hold`: of the mutex that a Condition waits with. */
  constructor(actor, verb, condition, timeout, hold) {
    const { arena, log } = actor;
    this.#actor = actor;
    this.#verb = verb;
    this.#condition = condition;
    this.#timeout = timeout;
    this.#index = log.open(PHASES.BEGUN, {
      kind: KINDS.QUEUED,
      mutex: condition,
      verb: VERBS.indexOf(verb),
      timeout,
      hold: hold?.index ?? -1,
      beginTick: arena.tick(),
      beginTime: arena.now(),
      about: actor.turn,
    });
    // With a mutex, the wait for locking it again says so.
    if (verb === 'wait') {
      log.state[STATE.BLOCKED_SINCE] = arena.now();
      Atomics.store(log.state, STATE.BLOCKED, timeout === Infinity ? 1 : 2);
    } else if (verb === 'waitAsync') {
      Atomics.add(log.state, STATE.PENDING, 1);
    }
  }

  get index() {
    return this.#index;
  }

  /** From now on it surely stands in the queue. */
  queued() {
    this.#actor.log.write(this.#index, { queuedTick: this.#actor.arena.tick() });
  }

  ended(outcome) {
    const { arena, log, strikes } = this.#actor;
    if (this.#verb === 'wait') Atomics.store(log.state, STATE.BLOCKED, 0);
    else if (this.#verb === 'waitAsync') Atomics.sub(log.state, STATE.PENDING, 1);
    let written = outcome;
    if (outcome === OUTCOMES.NOTIFIED && this.#timeout < Infinity && strikes('drop-notification')) {
      written = OUTCOMES.TIMED_OUT;
    }
    if (outcome === OUTCOMES.NOTIFIED && strikes('keep-notification')) written = OUTCOMES.ERROR;
    if (outcome === OUTCOMES.TIMED_OUT && strikes('invent-notification')) written = OUTCOMES.NOTIFIED;
    if (outcome === OUTCOMES.TIMED_OUT && strikes('imagine-ending')) written = OUTCOMES.THREAD_ENDING;
    log.write(this.#index, { endTick: arena.tick(), endTime: arena.now(), outcome: written, about: this.#actor.turn });
    log.advance(this.#index, PHASES.ENDED);
  }

  /** The verb threw `error`. */
  failed(error) {
    const actor = this.#actor;
    // Only where that is so: see checks/endings.js.
    if (error?.code === 'ERR_LOCK_THREAD_ENDING') return this.ended(OUTCOMES.THREAD_ENDING);
    actor.complain('error', `${this} threw ${error?.stack ?? error}`.replaceAll('\n', ' | '));
    return this.ended(OUTCOMES.ERROR);
  }

  toString() {
    return `${this.#verb}(${this.#timeout}) number ${this.#index} of thread ${this.#actor.threadId} on condition ${this.#condition}`;
  }
}

/** Draws how long a wait may last. One that holds other locks has a limit, since nobody else may be able to notify it. */
const drawLimit = ({ random, profile }, isNested) =>
  drawTimeout(random, isNested ? { timed: 5, once: 1 } : profile.notifying.waits);

/** A wait that does not wait must leave the hold as it was. */
function expectHeld(actor, mutex, what) {
  if (!mutex.isHeldByThisThread) actor.complain('refused', `${what} gave the mutex away`);
}

/** The records of a wait with the mutex of `hold`, which ends now: it will be another hold. */
function begin(actor, hold, verb, condition, timeout) {
  const queued = new QueuedWait(actor, verb, condition, timeout, hold);
  const again = new Wait(actor, verb, hold.mutex, Infinity);
  again.guarded = hold.guarded;
  hold.next = again;
  hold.leaving();
  return { queued, again };
}

/** The wait ended, by `outcome`, and the mutex is held again. */
function conclude(actor, { queued, again }, outcome) {
  if (!again.guarded && actor.strikes('return-unlocked')) actor.mutexes[again.mutex].unlock();
  again.held();
  queued.ended(outcome);
}

/** The wait threw, and the mutex is not held. */
function lose({ queued, again }, error) {
  again.isLost = true;
  again.failed(error);
  // Whether a notification had reached it nobody can say.
  queued.ended(OUTCOMES.ERROR);
}

/** Blocks in a Condition with the mutex of `hold`. */
exports.waitWithMutex = (actor, { last: hold }, isNested) => {
  const mutex = lockableOf(actor.mutexes[hold.mutex]);
  const condition = actor.random.below(actor.conditions.length);
  const { given, timeout } = drawLimit(actor, isNested);
  if (timeout === 0) {
    if (actor.conditions[condition].wait(mutex, given)) actor.complain('invented', 'Condition.wait(0) was notified');
    return expectHeld(actor, mutex, 'Condition.wait(0)');
  }
  const records = begin(actor, hold, 'Condition.wait', condition, timeout);
  try {
    const isNotified = actor.conditions[condition].wait(mutex, given);
    hold.freed();
    conclude(actor, records, isNotified ? OUTCOMES.NOTIFIED : OUTCOMES.TIMED_OUT);
  } catch (error) {
    hold.freed();
    lose(records, error);
  }
  return undefined;
};

/** Awaits a Condition with the mutex of `hold`. */
exports.waitWithMutexAsync = async (actor, { last: hold }) => {
  const mutex = lockableOf(actor.mutexes[hold.mutex]);
  const condition = actor.random.below(actor.conditions.length);
  const { given, timeout } = drawLimit(actor, false);
  const { signal, reason } = drawSignal(actor);
  const options = { timeout: given, signal, ref: actor.random.chance(0.8) };
  const face = actor.conditions[condition];
  if (timeout === 0 || signal?.aborted) {
    const answer = await face.waitAsync(mutex, options).catch((error) => error !== reason?.());
    if (answer !== false) actor.complain('invented', `Condition.waitAsync(${given}) did not wait, and was notified`);
    return expectHeld(actor, mutex, 'Condition.waitAsync(0)');
  }
  const records = begin(actor, hold, 'Condition.waitAsync', condition, timeout);
  const pending = face.waitAsync(mutex, options);
  records.queued.queued();
  hold.freed();
  if (actor.strikes('lose-condition-wait')) await new Promise(() => {});
  try {
    conclude(actor, records, (await pending) ? OUTCOMES.NOTIFIED : OUTCOMES.TIMED_OUT);
  } catch (error) {
    if (reason !== undefined && error === reason()) conclude(actor, records, OUTCOMES.ABORTED);
    else lose(records, error);
  }
  return undefined;
};

/** Ends a use by what `wait` and `waitAsync` return if they find a value that is not there, and else never. */
function end(actor, queued, expected, outcome) {
  if ((outcome === 'not-equal') !== (expected !== 0)) actor.complain('refused', `${queued} returned ${outcome}`);
  queued.ended(OUTCOME[outcome]);
}

exports.waitForNotification = (actor) => {
  const { arena, random } = actor;
  const condition = random.below(arena.conditions);
  const { given, timeout } = drawLimit(actor, false);
  const expected = random.chance(0.05) ? 1 : 0;
  const queued = new QueuedWait(actor, 'wait', condition, timeout);
  const { phases } = actor.log;
  const { index } = queued;
  const { HELD, LEAVING } = PHASES;
  const word = arena.condition(condition);
  try {
    const outcome = wait(word, 0, expected, given);
    // V8 ends a thread where a function or a loop begins: never between these two lines.
    phases[index] = outcome === 'ok' ? HELD : LEAVING;
    end(actor, queued, expected, outcome);
  } catch (error) {
    queued.failed(error);
  }
};

exports.waitForNotificationAsync = async (actor, options) => {
  const { arena, random } = actor;
  const condition = random.below(arena.conditions);
  const { given, timeout } = options?.ref === false ? { given: undefined, timeout: Infinity } : drawLimit(actor, false);
  const expected = random.chance(0.05) ? 1 : 0;
  const { signal, reason } = drawSignal(actor);
  const queued = new QueuedWait(actor, 'waitAsync', condition, timeout);
  try {
    const isAborted = signal?.aborted;
    const ref = options?.ref ?? random.chance(0.8);
    const result = waitAsync(arena.condition(condition), 0, expected, given, { signal, ref });
    if (result.async && !isAborted) queued.queued();
    const outcome = await result.value;
    if (actor.strikes('swap-queue')) await new Promise((resolve) => setTimeout(resolve, 30));
    end(actor, queued, expected, outcome);
  } catch (error) {
    if (reason !== undefined && error === reason()) queued.ended(OUTCOMES.ABORTED);
    else queued.failed(error);
  }
};

const COUNTS = [0, 1, 1, 1, 2, 3, Infinity, undefined];

/** Wakes some who wait at a condition. */
exports.notifySome = (
  actor,
  condition = actor.random.below(actor.conditions.length),
  count = actor.random.pick(COUNTS),
) => {
  const { arena, log, random } = actor;
  const asked = count ?? Infinity;
  const index = log.open(PHASES.BEGUN, {
    kind: KINDS.NOTIFY,
    mutex: condition,
    count: asked,
    beginTick: arena.tick(),
    beginTime: arena.now(),
  });
  const face = actor.conditions[condition];
  let woken = 0;
  if (actor.strikes('skip-waiters')) woken = 0;
  else if (random.chance(0.4)) woken = notify(arena.condition(condition), 0, count);
  else if (asked === 1) woken = face.notifyOne();
  else if (asked === Infinity) woken = face.notifyAll();
  else woken = face.notify(count);
  if (!(woken >= 0 && woken <= asked)) actor.complain('invented', `notify(${count}) woke ${woken}`);
  if (woken < asked && actor.strikes('overcount')) woken += 1;
  log.write(index, { woken, endTick: arena.tick(), endTime: arena.now() });
  log.advance(index, PHASES.ENDED);
};
