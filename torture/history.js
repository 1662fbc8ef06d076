// What happened in a round: the logs of all threads, put together by mutex and by thread.

const { FATES, KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { ASYNC, BLOCKING, VERBS } = require('./wait.js');

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
    /** When the wait was over, as its thread saw it; Infinity: not known to be. */
    overTick: held ? record.heldTick : record.phase === PHASES.ENDED ? record.endTick : Infinity,
    overTime: held ? record.heldTime : record.phase === PHASES.ENDED ? record.endTime : Infinity,
  });
}

function readThread(thread, history) {
  const { log } = thread;
  const read = {
    id: log.state[STATE.THREAD],
    /** Its code did not come to its end: what it held is abandoned. */
    died: thread.died,
    fate: thread.fate,
    deathTime: thread.deathTime,
    isMain: thread.slot === 0,
    lastTick: 0,
    busy: [],
    waits: [],
    complaints: log.complaints,
  };
  for (const record of log.records()) {
    const { beginTick, heldTick, leftTick, freedTick, endTick } = record;
    read.lastTick = Math.max(read.lastTick, beginTick, heldTick, leftTick, freedTick, endTick);
    if (record.kind === KINDS.BUSY) read.busy.push(record);
    if (record.kind === KINDS.WARNING) history.warnings.push({ ...record, thread: read });
    if (record.kind === KINDS.WAIT) {
      const wait = readWait(record, read);
      read.waits.push(wait);
      history.byIndex.set(`${read.id}/${record.index}`, wait);
      history.mutexes[record.mutex].waits.push(wait);
      if (wait.held) history.mutexes[record.mutex].holds.push(wait);
    }
    if (record.kind === KINDS.HOP) history.hops.push({ ...record, thread: read });
  }
  return read;
}

/** `{ threads, mutexes: [{ waits, holds }], warnings, deadlocks }`, everything in the order of its ticks. */
exports.readHistory = (threads, mutexes) => {
  const history = {
    mutexes: Array.from({ length: mutexes }, (_, index) => ({ index, waits: [], holds: [] })),
    warnings: [],
    hops: [],
    byIndex: new Map(),
  };
  history.threads = threads.map((thread) => readThread(thread, history));
  for (const { waits, holds } of history.mutexes) {
    waits.sort((one, other) => one.beginTick - other.beginTick);
    holds.sort((one, other) => one.heldTick - other.heldTick);
  }
  for (const hop of history.hops) {
    const told = history.byIndex.get(`${hop.thread.id}/${hop.order}`);
    if (told?.outcome !== OUTCOMES.DEADLOCK && !hop.thread.died) throw new Error('a hop without its wait');
    told.cycle ??= [];
    told.cycle.push({ threadId: hop.about, mutex: hop.mutex });
  }
  history.deadlocks = [...history.byIndex.values()].filter((wait) => wait.outcome === OUTCOMES.DEADLOCK);
  return history;
};

/** A wait in words. */
exports.tell = (wait) => {
  if (wait === undefined) return 'nothing';
  const limit = wait.timeout === Infinity ? '' : `${wait.timeout} ms`;
  const span = wait.held ? `held ${wait.heldTick}-${wait.left ? wait.leftTick : '(died)'}` : `over ${wait.overTick}`;
  const thread = `thread ${wait.thread.id}${wait.thread.died ? ' (died)' : ''}`;
  const call = `${wait.verbName}(${limit}) #${wait.index} of ${thread}`;
  return `${call}, begun ${wait.beginTick}, ${span}, number ${wait.sequence}`;
};

exports.FATES = FATES;
