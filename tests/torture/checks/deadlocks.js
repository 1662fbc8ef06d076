// Deadlocks: a DeadlockError names a cycle that was there, and one thread only of each cycle gets one.
// (That none is missed shows otherwise: a cycle that no thread breaks stands still for ever.)

const { OUTCOMES } = require('../log.js');
const { describe } = require('../history.js');

exports.checkDeadlocks = ({ threads, deadlocks }, report, count) => {
  const byId = new Map(threads.map((thread) => [thread.id, thread]));
  for (const failed of deadlocks) {
    const { cycle = [] } = failed;
    const complain = (why) => report('deadlock', `${describe(failed)}: ${why} (${JSON.stringify(cycle)})`);
    count(cycle.length === 1 ? 'of a thread with itself' : `of ${Math.min(cycle.length, 4)} threads`);
    const [first] = cycle;
    if (first === undefined || first.threadId !== failed.thread.id || first.mutex !== failed.mutex) {
      complain('the cycle does not begin with the wait that failed');
      continue;
    }
    if (!failed.isBlocking || failed.timeout !== Infinity) complain('the wait had a time limit');
    for (const [index, hop] of cycle.entries()) {
      const next = byId.get(cycle[(index + 1) % cycle.length].threadId);
      const thread = byId.get(hop.threadId);
      if (thread === undefined || next === undefined) {
        complain('it names a thread that was not there');
        break;
      }
      if (!mayHold(next, hop.mutex, failed)) complain(`thread ${next.id} did not hold mutex ${hop.mutex}`);
      if (thread === failed.thread) continue;
      // It may have failed by an earlier cycle of both, and have come back, while this one was on its way to look.
      const waits = thread.waits.filter((wait) => isIn(wait, hop.mutex, failed));
      if (waits.length === 0) complain(`thread ${thread.id} did not wait for mutex ${hop.mutex}`);
      else if (waits.every((wait) => wait.outcome === OUTCOMES.DEADLOCK && names(wait, failed))) {
        complain(`${waits.map(describe).join('; ')} failed too`);
      }
    }
  }
};

/** Whether `wait` blocked for `mutex` without a limit when `failed` failed. */
function isIn(wait, mutex, failed) {
  const isEndless = wait.isBlocking && wait.timeout === Infinity && wait.mutex === mutex;
  return isEndless && wait.beginTick < failed.endTick && wait.overTick > failed.beginTick;
}

function names(wait, failed) {
  return (wait.cycle ?? []).some(({ threadId, mutex }) => threadId === failed.thread.id && mutex === failed.mutex);
}

/** Whether `thread` held `mutex` at some time between the call and the answer, as far as its log can say. */
function mayHold(thread, mutex, failed) {
  return thread.waits.some(
    (wait) =>
      wait.mutex === mutex &&
      wait.beginTick < failed.endTick &&
      (wait.held
        ? !wait.left || (wait.freedTick || Infinity) > failed.beginTick
        : (thread.died && wait.overTick === Infinity) || (wait.isSeveral && wait.overTick > failed.beginTick)),
  );
}
