// The history of a round: the logs of all threads, put together by mutex and by thread.

const { FATES, KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { VERBS: QUEUED_VERBS } = require('./conditions.js');
const { THINGS } = require('./things.js');
const { ASYNC_USES, BLOCKING_USES, USE_VERBS } = require('./use.js');
const { ASYNC, BLOCKING, RELOCKS, SEVERAL, VERBS } = require('./wait.js');

/** The logged waits, read back. A wait that came to hold has `held`; one whose unlock was begun has `left`. */
function readWait(record, thread) {
  const verb = VERBS[record.verb];
  const held = record.phase !== PHASES.ENDED && record.phase >= PHASES.HELD;
  return Object.assign(record, {
    thread,
    verbName: verb,
    held,
    left: held && record.phase >= PHASES.LEAVING,
    isAsync: ASYNC.has(verb),
    isBlocking: BLOCKING.has(verb),
    isRelock: RELOCKS.has(verb),
    isSeveral: SEVERAL.has(verb),
    /** Its place in the queue says nothing of when it is served. */
    isUnordered: RELOCKS.has(verb) || SEVERAL.has(verb),
    /** When the wait was over, as its thread saw it; Infinity: not known to be. */
    overTick: held ? record.heldTick : record.phase === PHASES.ENDED ? record.endTick : Infinity,
    overTime: held ? record.heldTime : record.phase === PHASES.ENDED ? record.endTime : Infinity,
  });
}

/** The logged waits for notifications. */
function readQueued(record, thread) {
  const verb = QUEUED_VERBS[record.verb];
  const isOver = record.phase === PHASES.ENDED;
  return Object.assign(record, {
    thread,
    verbName: verb,
    isAsync: verb.endsWith('Async'),
    /** Whether a Condition waits, with a mutex that it locks again. */
    isRelock: record.hold >= 0,
    overTick: isOver ? record.endTick : Infinity,
    overTime: isOver ? record.endTime : Infinity,
    /** From this tick on it surely stood in the queue, unless it was over. */
    queuedTick: record.queuedTick || Infinity,
  });
}

/** The logged uses of something in things.js. */
function readUse(record, thread) {
  const verb = USE_VERBS[record.verb];
  const { phase } = record;
  const held = phase !== PHASES.ENDED && phase >= PHASES.HELD;
  const left = held && phase >= PHASES.LEAVING;
  const isOver = phase === PHASES.ENDED;
  return Object.assign(record, {
    thread,
    verbName: verb,
    held,
    left,
    isAsync: ASYNC_USES.test(verb),
    isBlocking: BLOCKING_USES.test(verb),
    overTick: held ? record.heldTick : isOver ? record.endTick : Infinity,
    overTime: held ? record.heldTime : isOver ? record.endTime : Infinity,
    queuedTick: record.queuedTick || Infinity,
    /** Until then it surely held. */
    heldUntil: left ? record.leftTick : thread.died ? 0 : Infinity,
  });
}

/** Ends after which nothing of the thread's code runs. */
const STOPS = new Set([FATES.EXITS, FATES.OVERFLOWS]);

function readThread(thread, history) {
  const { log } = thread;
  const read = {
    id: log.state[STATE.THREAD],
    /** Its code did not come to its end: what it held is abandoned. */
    died: thread.died,
    fate: thread.fate,
    deathTime: thread.deathTime,
    /** When its end had been seen; Infinity: it lives. */
    deathTick: thread.deathTick ?? Infinity,
    /** When its end had begun: by itself, as a tick, or since it was asked to, as a time; Infinity: not so. */
    endingTick: thread.died && log.state[STATE.ENDING_TICK] > 0 ? log.state[STATE.ENDING_TICK] : Infinity,
    askedToEnd: thread.askedToEnd ?? Infinity,
    /** When its code stopped by itself; Infinity: it did not. */
    stopTick: STOPS.has(thread.fate) ? log.state[STATE.FATE_TICK] : Infinity,
    isMain: thread.slot === 0,
    lastTick: 0,
    busy: [],
    waits: [],
    /** Its waits for notifications. */
    queued: [],
    /** Its uses of other things. */
    uses: [],
    complaints: log.complaints,
  };
  for (const record of log.records()) {
    const { beginTick, heldTick, leftTick, freedTick, endTick, queuedTick } = record;
    read.lastTick = Math.max(read.lastTick, beginTick, heldTick, leftTick, freedTick, endTick, queuedTick);
    if (record.kind === KINDS.BUSY) read.busy.push(record);
    if (record.kind === KINDS.WARNING) history.warnings.push({ ...record, thread: read });
    if (record.kind === KINDS.WAIT) {
      const wait = readWait(record, read);
      read.waits.push(wait);
      history.byIndex.set(`${read.id}/${record.index}`, wait);
      history.mutexes[record.mutex].waits.push(wait);
      if (wait.held) history.mutexes[record.mutex].holds.push(wait);
    }
    if (record.kind === KINDS.QUEUED) {
      const queued = readQueued(record, read);
      read.queued.push(queued);
      history.conditions[record.mutex].waits.push(queued);
    }
    if (record.kind === KINDS.USE) {
      const use = readUse(record, read);
      read.uses.push(use);
      history.things[record.mutex].uses.push(use);
    }
    if (record.kind === KINDS.NOTIFY) history.conditions[record.mutex].notifications.push({ ...record, thread: read });
    if (record.kind === KINDS.HOP) history.hops.push({ ...record, thread: read });
  }
  // Nothing is held beyond the last that a dead thread has logged, as far as is known.
  for (const use of read.uses) if (read.died && !use.left) use.heldUntil = read.lastTick;
  return read;
}

/**
 * `{ threads, mutexes: [{ waits, holds }], conditions: [{ waits, notifications }], things: [{ kind, name, of, fair, leftOver,
 * uses }], warnings, deadlocks }`, everything in the order of its ticks. `leftOver`: what the things have come to.
 */
exports.readHistory = (threads, { mutexes, conditions }, leftOver) => {
  const history = {
    mutexes: Array.from({ length: mutexes }, (_, index) => ({ index, waits: [], holds: [] })),
    conditions: Array.from({ length: conditions }, (_, index) => ({ index, waits: [], notifications: [] })),
    things: THINGS.map((thing, index) => ({ ...thing, leftOver: leftOver[index], uses: [] })),
    warnings: [],
    hops: [],
    byIndex: new Map(),
  };
  history.threads = threads.map((thread) => readThread(thread, history));
  for (const { waits, holds } of history.mutexes) {
    waits.sort((one, other) => one.beginTick - other.beginTick);
    holds.sort((one, other) => one.heldTick - other.heldTick);
  }
  for (const { waits, notifications } of history.conditions) {
    for (const wait of waits)
      if (wait.isRelock) wait.queuedTick = Math.min(wait.queuedTick, nextHoldTick(wait, history));
    waits.sort((one, other) => one.beginTick - other.beginTick);
    notifications.sort((one, other) => one.beginTick - other.beginTick);
  }
  for (const { uses } of history.things) uses.sort((one, other) => one.beginTick - other.beginTick);
  for (const hop of history.hops) {
    const failed = history.byIndex.get(`${hop.thread.id}/${hop.order}`);
    if (failed?.outcome !== OUTCOMES.DEADLOCK && !hop.thread.died) throw new Error('a hop without its wait');
    failed.cycle ??= [];
    failed.cycle.push({ threadId: hop.about, mutex: hop.mutex });
  }
  history.deadlocks = [...history.byIndex.values()].filter((wait) => wait.outcome === OUTCOMES.DEADLOCK);
  return history;
};

/** When the next hold began of the mutex that `wait` gave away: it stood in the queue by then. */
function nextHoldTick({ thread, hold }, { byIndex, mutexes }) {
  const { mutex, leftTick } = byIndex.get(`${thread.id}/${hold}`) ?? {};
  if (mutex === undefined) return Infinity;
  const { holds } = mutexes[mutex];
  let low = 0;
  for (let high = holds.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (holds[middle].heldTick > leftTick) high = middle;
    else low = middle + 1;
  }
  return holds[low]?.heldTick ?? Infinity;
}

/** A wait in words. */
exports.describe = (wait) => {
  if (wait === undefined) return 'nothing';
  const limit = wait.timeout === Infinity ? '' : `${wait.timeout} ms`;
  const span = wait.held ? `held ${wait.heldTick}-${wait.left ? wait.leftTick : '(died)'}` : `over ${wait.overTick}`;
  const thread = `thread ${wait.thread.id}${wait.thread.died ? ' (died)' : ''}`;
  const call = `${wait.verbName}(${limit}) #${wait.index} of ${thread}`;
  return `${call}, begun ${wait.beginTick}, ${span}, number ${wait.sequence}`;
};

/** Returns how long the thread of `wait` kept its own loop from turning while it waited: by blocking, or by being busy. */
exports.ownBusy = (wait) => {
  wait.thread.spans ??= spansOf(wait.thread);
  const { spans } = wait.thread;
  // The first span that ends after the wait began.
  let low = 0;
  for (let high = spans.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (spans[middle].to <= wait.beginTime) low = middle + 1;
    else high = middle;
  }
  let sum = 0;
  for (; low < spans.length && spans[low].from < wait.overTime; low++) {
    sum += Math.min(spans[low].to, wait.overTime) - Math.max(spans[low].from, wait.beginTime);
  }
  return sum;
};

/** One after the other: where they are nested, the outer one. */
function spansOf(thread) {
  const queued = thread.queued.filter(({ isAsync, isRelock }) => !isAsync && !isRelock);
  const locking = thread.waits.filter(({ isBlocking }) => isBlocking);
  const using = thread.uses.filter(({ isBlocking }) => isBlocking);
  const blocked = [...locking, ...queued, ...using].filter(({ overTime }) => overTime < Infinity);
  const spans = [
    ...blocked.map(({ beginTime, overTime }) => ({ from: beginTime, to: overTime })),
    ...thread.busy
      .filter(({ endTime }) => endTime > 0)
      .map(({ beginTime, endTime }) => ({ from: beginTime, to: endTime })),
  ].sort((one, other) => one.from - other.from);
  let last = -1;
  return spans.filter(({ to }) => {
    const isOuter = to > last;
    last = Math.max(last, to);
    return isOuter;
  });
}
