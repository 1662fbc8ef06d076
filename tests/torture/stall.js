// The report of a round that does not get on: every word, who waits for what and since when, and what each thread did last.

const { inspectAll } = require('./package.js');
const { VERBS: QUEUED_VERBS } = require('./conditions.js');
const { CAPACITY, FATES, FORGOTTEN, KINDS, OUTCOMES, PHASES, STATE } = require('./log.js');
const { THINGS } = require('./things.js');
const { USE_VERBS } = require('./use.js');
const { VERBS } = require('./wait.js');

/** The last records of a thread that are shown, beside those that are open. */
const LAST = 5;

const nameIn = (names, value) =>
  Object.keys(names)
    .find((name) => names[name] === value)
    ?.toLowerCase() ?? value;
const hex = (word) => `0x${(word >>> 0).toString(16).padStart(8, '0')}`;
const ago = (now, time) => `${Math.round(now - time)} ms ago`;

/** `threads` and `arena` of the round; `actor` is the main thread's. */
exports.describeRound = ({ threads, arena, profile }, actor) => {
  const now = arena.now();
  const living = threads.filter(({ worker, deathTime }) => worker === undefined || deathTime === undefined);
  const ended = threads.filter((thread) => !living.includes(thread));
  return [
    `  after ${Math.round(now)} of ${Math.round(profile.ms)} ms, tick ${arena.ticks}${arena.isStopping ? ', stopping' : ''}`,
    ...describeMutexes(actor),
    ...describeConditions(actor),
    ...actor.things.faces.flatMap(describeThing),
    ...living.flatMap((thread) => describeThread(thread, now)),
    ...ended.flatMap((thread) => describeEnded(thread, now)),
    ...threads.flatMap(({ log }) => log.complaints).map((text) => `  complaint: ${text}`),
  ].join('\n');
};

function describeMutexes({ arena, mutexes }) {
  return mutexes.map((mutex, index) => {
    return `  ${hex(Atomics.load(arena.word(index), 0))} in mutex ${index}: ${JSON.stringify(mutex.inspect())}`;
  });
}

/** The queues of the conditions at which somebody waits. */
function describeConditions({ arena }) {
  const queued = inspectAll().filter(({ buffer }) => buffer === arena.memory);
  return Array.from({ length: arena.conditions }, (_, condition) => condition).flatMap((condition) => {
    const found = queued.find(({ byteOffset }) => byteOffset === arena.conditionOffset(condition));
    return found === undefined ? [] : [`  condition ${condition}: ${JSON.stringify(found.waiters)}`];
  });
}

/** Nothing is said of one that is as new. */
function describeThing(face, thing) {
  const { name, of } = THINGS[thing];
  const { holders, waiters } = face.inspect();
  const words =
    face.buffer === undefined ? [] : [...new Int32Array(face.buffer, face.byteOffset, face.constructor.BYTES / 4)];
  if (holders.length + waiters.length === 0 && words.every((word) => word === 0)) return [];
  const total = of === undefined ? '' : ` of ${of}`;
  const queue = `${waiters.length} waiters: ${JSON.stringify(waiters)}`;
  return [`  ${words.map(hex).join(' ')} in ${name}${total}: holders: ${JSON.stringify(holders)}, ${queue}`];
}

function describeThread(thread, now) {
  const { slot, threadId, style, plan, log, worker } = thread;
  const { state } = log;
  const load = (field) => Atomics.load(state, field);
  const since = load(STATE.BLOCKED) > 0 ? ` since ${ago(now, load(STATE.BLOCKED_SINCE))}` : '';
  const blocked = `${['not blocked', 'blocked', 'blocked with a limit'][load(STATE.BLOCKED)]}${since}`;
  const counts = `busy ${load(STATE.BUSY)}, holding ${load(STATE.HOLDING)}, pending ${load(STATE.PENDING)}`;
  const asked = thread.askedToEnd === undefined ? '' : `, asked to end ${ago(now, thread.askedToEnd)}`;
  const plans =
    plan === undefined ? '' : `, to end by ${nameIn(FATES, plan.fate)} ${Math.round(plan.after)} ms after its start`;
  const online = worker === undefined || thread.isOnline ? '' : ', not online yet';
  const fate = `fate ${nameIn(FATES, load(STATE.FATE))}${plans}${asked}${online}`;
  const records = [...log.records()];
  const isOpen = ({ phase }) => phase !== PHASES.ENDED && phase !== PHASES.FREED;
  const over = records.filter(
    ({ kind, ...record }) => !isOpen(record) && (worker !== undefined || kind !== KINDS.NOTIFY),
  );
  const shown = [...records.filter(isOpen), ...over.slice(-LAST)];
  return [
    `  slot ${slot}, thread ${threadId}, ${style}: ${blocked}, ${counts}, ${fate}, ${load(STATE.COUNT)} of ${CAPACITY} records`,
    ...shown.map((record) => `    ${describeRecord(record, now)}`),
  ];
}

/** A thread that has ended: what it had not given back, and permits that it had forgotten. */
function describeEnded({ threadId, log, deathTime }, now) {
  const kept = [...log.records()].filter(({ kind, phase, cleared }) => {
    const isMissing = kind === KINDS.USE && cleared === FORGOTTEN.MISSING;
    return isMissing || phase === PHASES.HELD || phase === PHASES.LEAVING;
  });
  if (kept.length === 0) return [];
  const fate = nameIn(FATES, Atomics.load(log.state, STATE.FATE));
  return [
    `  thread ${threadId}, ended ${ago(now, deathTime)}, fate ${fate}, with`,
    ...kept.map((record) => `    ${describeRecord(record, now)}`),
  ];
}

function describeRecord(record, now) {
  const { index, kind, mutex, verb, timeout, phase, outcome, count, cleared, beginTick, beginTime } = record;
  const what =
    {
      [KINDS.QUEUED]: () => `${QUEUED_VERBS[verb]} condition ${mutex}`,
      [KINDS.USE]: () => `${USE_VERBS[verb]} ${THINGS[mutex].name}${count > 0 ? ` count ${count}` : ''}`,
      [KINDS.WAIT]: () => `${VERBS[verb]} mutex ${mutex}`,
      [KINDS.NOTIFY]: () => `notify condition ${mutex} count ${count} woke ${record.woken}`,
    }[kind]?.() ?? nameIn(KINDS, kind);
  const begun = beginTime > 0 ? `begun ${ago(now, beginTime)} at tick ${beginTick}` : `at tick ${beginTick}`;
  const end = outcome === OUTCOMES.NONE ? '' : `, ${nameIn(OUTCOMES, outcome)}`;
  const mark = cleared > 0 ? `, cleared ${cleared}` : '';
  return `#${index} ${what} timeout ${timeout}: ${nameIn(PHASES, phase)}${end}${mark}, ${begun}`;
}
