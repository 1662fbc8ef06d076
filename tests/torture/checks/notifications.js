// Notifications: each that was counted as having woken somebody reached one wait, and one only, that stood in the queue then,
// or a thread that died in its wait; nobody was notified by none; and nobody was passed by in the queue.
//
// Which notification woke which wait no log says. So each wait is matched with a notification whose call overlaps it in time,
// as many waits to a notification as it woke: if no such matching takes in all, something was lost or made up.

const { ownBusy } = require('../history.js');
const { OUTCOMES, PHASES } = require('../log.js');
const { Matching } = require('./matching.js');

/** A blocked thread whose time is over may be this late, in milliseconds. */
const BLOCKED_LATE = 3000;

exports.checkNotifications = (history, report, measure) => {
  for (const condition of history.conditions) {
    if (checkCounts(condition, report) > 0) checkPassedOn(condition, history, report);
    checkPlaces(condition, report);
    checkCallOrder(condition, report);
    for (const wait of condition.waits) checkEnd(condition, wait, report, measure);
  }
};

const isNotified = ({ phase, outcome }) =>
  phase === PHASES.HELD || (phase === PHASES.ENDED && outcome === OUTCOMES.NOTIFIED);

/** It may have been notified, and its code never knew: what reaches such a wait goes to the next in the queue, if there is one. */
const isDoubtful = ({ phase, outcome, thread }) =>
  phase === PHASES.BEGUN ? thread.died : outcome === OUTCOMES.ERROR || outcome === OUTCOMES.THREAD_ENDING;

/** A wait of a thread that died, until that thread had ended. */
const untilDeath = (wait) => ({ ...wait, overTick: Math.min(wait.overTick, wait.thread.deathTick) });

/**
 * From which tick on the loop of a thread that died never turned again: it was blocked, or busy, until its end, or its code had
 * stopped by itself.
 */
function stuckSince({ waits, queued, busy, stopTick }) {
  const blocking = [
    ...waits.filter(({ phase, isBlocking }) => phase === PHASES.BEGUN && isBlocking),
    ...queued.filter(({ phase, isAsync }) => phase === PHASES.BEGUN && !isAsync),
    ...busy.filter(({ phase }) => phase === PHASES.BEGUN),
  ];
  return Math.min(stopTick, ...blocking.map(({ beginTick }) => beginTick));
}

/** Whether the thread of a wait with a mutex may have died after it had locked that again, and before its code knew. */
function mayHaveHeld({ thread, hold }, { byIndex, mutexes }) {
  const { mutex, leftTick } = byIndex.get(`${thread.id}/${hold}`);
  return mutexes[mutex].holds.some(({ heldTick, abandoned }) => abandoned && heldTick > leftTick);
}

/**
 * A wait of a thread that died, as the wait for a notification that its end need not have passed on; undefined if there is none:
 * a thread that blocks in `wait()` logs in its next instruction that it was notified. With a mutex a function of the
 * package comes before that, where the thread may die; then it dies with the mutex. A promise may have been settled, and code
 * that came before what awaits it have ended the thread.
 */
function lostWith(wait, history) {
  if (wait.isAsync) return { ...untilDeath(wait), overTick: Math.min(wait.thread.deathTick, stuckSince(wait.thread)) };
  return wait.isRelock && mayHaveHeld(wait, history) ? untilDeath(wait) : undefined;
}

function describe({ verbName, index, thread, timeout, beginTick, overTick }) {
  const who = `thread ${thread.id}${thread.died ? ' (died)' : ''}`;
  return `${verbName}(${timeout}) #${index} of ${who}, ${beginTick} to ${overTick}`;
}

function describeNotification({ thread, beginTick, endTick, count, woken }) {
  return `notify(${count}) of thread ${thread.id}, ${beginTick} to ${endTick}, which woke ${woken}`;
}

function checkCounts({ index, waits, notifications }, report) {
  const notified = waits.filter(isNotified);
  // A thread that died in notify() has said nothing of whom it woke.
  const known = notifications.filter(({ phase }) => phase === PHASES.ENDED);
  const unknown = notifications.filter(({ phase }) => phase !== PHASES.ENDED);

  const all = new Matching([...known, ...unknown], ({ phase, woken, count }) =>
    phase === PHASES.ENDED ? woken : count,
  );
  for (const wait of notified) {
    if (!all.add(untilDeath(wait))) report('invented', `condition ${index}: nobody notified ${describe(wait)}`);
  }
  const certain = new Matching(known, ({ woken }) => woken);
  for (const wait of notified) certain.add(untilDeath(wait));
  const lost = certain.rest().length;
  for (const wait of waits.filter(isDoubtful)) certain.add(untilDeath(wait));
  for (const { notification, left } of certain.rest()) {
    report('dropped', `condition ${index}: ${describeNotification(notification)}: ${left} of them never knew`);
  }
  return lost;
}

/**
 * A notification that reached a wait that failed, or whose thread died before its code knew, goes to the next in the queue. So
 * while somebody surely stood there, and was not notified either, no notification may have ended with one of those.
 */
function checkPassedOn({ index, waits, notifications }, history, report) {
  const notified = waits.filter(isNotified);
  const doubtful = waits.filter(isDoubtful);
  const endOf = ({ thread, overTime }) => (thread.died ? thread.deathTime : overTime);
  for (const wait of waits) {
    const deadline = timedOutAt(wait);
    if (!doubtful.some((other) => endOf(other) > wait.beginTime && endOf(other) < deadline)) continue;
    const during = notifications.filter(
      ({ phase, beginTick, endTime }) => phase === PHASES.ENDED && beginTick > wait.queuedTick && endTime < deadline,
    );
    const matching = new Matching(during, ({ woken }) => woken);
    for (const other of notified) matching.add(untilDeath(other));
    for (const other of doubtful) {
      if (endOf(other) >= deadline) {
        matching.add(untilDeath(other));
      } else if (other.thread.died) {
        const lost = lostWith(other, history);
        if (lost !== undefined) matching.add(lost);
      }
    }
    for (const { notification } of matching.rest()) {
      const what = `${describeNotification(notification)}, was not passed on`;
      report('dropped', `condition ${index}: ${what}, while ${describe(wait)} stood in the queue`);
    }
  }
}

/** The time until which a wait stood in the queue that was never notified; before all times for others. */
function timedOutAt({ phase, outcome, beginTime, timeout }) {
  return phase === PHASES.ENDED && outcome === OUTCOMES.TIMED_OUT ? beginTime + timeout : -Infinity;
}

/** A wait whose time was over at last stood in the queue until then: nobody behind it was to be notified. */
function checkPlaces({ index, waits, notifications }, report) {
  const finished = notifications.filter(({ phase, woken, count }) => phase === PHASES.ENDED && woken < count);
  const notified = waits.filter(isNotified);
  for (const wait of waits) {
    const deadline = timedOutAt(wait);
    const stood = `condition ${index}: ${describe(wait)} stood in the queue`;
    const missed = finished.find((call) => call.beginTick > wait.queuedTick && call.endTime < deadline);
    if (missed) report('skipped', `${stood} during ${describeNotification(missed)}`);
    const later = notified.find((other) => other.beginTick > wait.queuedTick && other.overTime < deadline);
    if (later) report('skipped', `${stood} before ${describe(later)}, which was notified`);
  }
}

/** The promises of one thread are settled in the order of the queue, unless they lock a mutex again before. */
function checkCallOrder({ index, waits }, report) {
  const last = new Map();
  for (const wait of waits) {
    if (!isNotified(wait) || !wait.isAsync || wait.isRelock) continue;
    const before = last.get(wait.thread);
    if (before !== undefined && before.queuedTick < wait.beginTick && before.overTick > wait.overTick) {
      report('order', `condition ${index}: ${describe(before)} stood before ${describe(wait)}`);
    }
    if (before === undefined || before.overTick < wait.overTick) last.set(wait.thread, wait);
  }
}

/** No timeout came early; that of a blocked thread came in time; a thread that lived knows how its wait ended. */
function checkEnd({ index }, wait, report, measure) {
  const { phase, outcome, timeout, beginTime, endTime, thread, isAsync, isRelock } = wait;
  if (phase === PHASES.BEGUN && !thread.died) report('lost', `condition ${index}: ${describe(wait)}`);
  if (phase !== PHASES.ENDED || outcome !== OUTCOMES.TIMED_OUT) return;
  const waited = endTime - beginTime;
  if (timeout === Infinity) report('early', `condition ${index}: ${describe(wait)}: it had no time limit`);
  else if (waited < timeout - 0.001) report('early', `condition ${index}: ${describe(wait)}: it waited ${waited} ms`);
  // To lock the mutex again takes as long as it takes.
  if (isRelock || timeout === 0) return;
  const late = waited - timeout - (isAsync ? ownBusy(wait) : 0);
  measure(isAsync ? 'asynchronous timeout of a notification, late' : 'blocking timeout of a notification, late', late);
  if (!isAsync && late > BLOCKED_LATE) report('late', `condition ${index}: ${describe(wait)}: it waited ${waited} ms`);
}
