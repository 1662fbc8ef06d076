// Abandonment: each hold whose thread died inside is followed by the mark, until it is taken off, and by one message on the
// channel (of the warnings, some are left out when there are many).
// One too many is allowed where a thread died in the instant of the grant or of the unlock; one too few never.
// (The message comes in a microtask: a thread that dies in the turn in which it takes the mutex takes it with it.)

const { PHASES } = require('../log.js');
const { describe } = require('../history.js');

exports.checkAbandonment = (history, report, count) => {
  for (const mutex of history.mutexes) {
    const doubts = mutex.waits.filter((wait) => wait.thread.died && wait.phase === PHASES.BEGUN);
    checkMarks(mutex, doubts, report, count);
    checkWarnings(mutex, doubts, history, report, count);
  }
};

function checkMarks({ index, holds }, doubts, report, count) {
  // 'no', 'yes', or 'maybe': the last holder died while it unlocked.
  let marked = 'no';
  const spent = new Set();
  for (const hold of holds) {
    if (marked === 'yes' && !hold.abandoned) report('unmarked', `mutex ${index}: ${describe(hold)} saw no mark`);
    if (marked === 'yes') count('marks seen');
    if (marked === 'no' && hold.abandoned) {
      const mayHave = (wait) => wait.beginTick < hold.heldTick && wait.thread.lastTick < hold.heldTick;
      const doubt = doubts.find((wait) => mayHave(wait) && !spent.has(wait));
      if (doubt === undefined)
        report('marked', `mutex ${index}: ${describe(hold)} saw a mark, and nobody had died inside`);
      spent.add(doubt);
      count(`marks in doubt: ${doubt?.isBlocking ? 'the dead was blocked' : 'other'}`);
    }
    marked = hold.abandoned && !hold.cleared ? 'yes' : 'no';
    if (hold.thread.died && hold.phase === PHASES.HELD) marked = 'yes';
    if (hold.thread.died && hold.phase === PHASES.LEAVING && marked === 'no') marked = 'maybe';
  }
}

function checkWarnings({ index, waits, holds }, doubts, { threads, warnings }, report, count) {
  for (const thread of threads) {
    const ours = warnings.filter((warning) => warning.mutex === index && warning.about === thread.id);
    const own = waits.filter((wait) => wait.thread === thread);
    if (!thread.died) {
      if (ours.length > 0) report('warning', `mutex ${index}: thread ${thread.id} is said to have died, and lives`);
      continue;
    }
    const inside = own.filter((wait) => wait.phase === PHASES.HELD);
    const unsure = own.filter((wait) => wait.phase === PHASES.LEAVING || wait.phase === PHASES.BEGUN);
    if (ours.length > 0 && inside.length === 0 && unsure.length === 0) {
      report('warning', `mutex ${index}: thread ${thread.id} is said to have died inside, and did not`);
    }
    // The thread that was to warn may have died in the instant of the grant.
    const others = doubts.filter((wait) => wait.thread !== thread);
    const isSilent = inside.length > 0 && ours.length === 0;
    if (isSilent && diedInTurn(holds[holds.indexOf(inside[0]) + 1])) count('warnings that died with their thread');
    else if (isSilent && !others.some((wait) => tookUnseen(wait, inside[0], holds))) {
      const next = holds.slice(holds.indexOf(inside[0]) + 1, holds.indexOf(inside[0]) + 4);
      const later = warnings.filter(({ mutex, beginTick }) => mutex === index && beginTick > inside[0].heldTick);
      const since = later.map(({ about, thread: by, beginTick }) => `of ${about} by ${by.id} at ${beginTick}`);
      const after = `then ${next.map(describe).join('; then ')}; warnings: ${since.slice(0, 4).join(', ') || 'none'}`;
      report('warning', `mutex ${index}: no warning of the end of ${describe(inside[0])}; ${after}`);
    }
    const tolerated = ours.filter((warning) => others.some((wait) => wait.thread === warning.thread)).length;
    if (ours.length > 1 + tolerated) {
      report('warning', `mutex ${index}: the end of thread ${thread.id} was in ${ours.length} warnings`);
    }
    for (const { beginTick } of ours) {
      if (beginTick < thread.lastTick)
        report('warning', `mutex ${index}: thread ${thread.id} was called dead while it ran`);
    }
  }
}

/** Whether the thread of `hold` died in the turn of its loop in which it came to hold. */
function diedInTurn(hold) {
  return hold?.thread.died && hold.thread.waits.every((wait) => wait.about <= hold.about);
}

/** Whether the thread of `doubt` may have taken the mutex after `dead`, and died before its code knew. */
function tookUnseen(doubt, dead, holds) {
  const next = holds[holds.indexOf(dead) + 1];
  const died = doubt.thread.deathTime >= dead.heldTime;
  return died && (next === undefined || (doubt.beginTick < next.heldTick && doubt.thread.lastTick < next.heldTick));
}
