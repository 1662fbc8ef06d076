// Deadlocks: a DeadlockError names a circle that was there, and one thread only of each circle is told.
// (That none is missed shows otherwise: a circle that nobody is told of stands still for ever.)

const { OUTCOMES } = require('../log.js');
const { tell } = require('../history.js');

exports.checkDeadlocks = ({ threads, deadlocks }, report, count) => {
  const byId = new Map(threads.map((thread) => [thread.id, thread]));
  for (const told of deadlocks) {
    const { cycle = [] } = told;
    const complain = (why) => report('deadlock', `${tell(told)}: ${why} (${JSON.stringify(cycle)})`);
    count(cycle.length === 1 ? 'of a thread with itself' : `of ${Math.min(cycle.length, 4)} threads`);
    const [first] = cycle;
    if (first === undefined || first.threadId !== told.thread.id || first.mutex !== told.mutex) {
      complain('the circle does not begin with the wait that was told');
      continue;
    }
    if (!told.isBlocking || told.timeout !== Infinity) complain('the wait had a time limit');
    for (const [index, hop] of cycle.entries()) {
      const next = byId.get(cycle[(index + 1) % cycle.length].threadId);
      const thread = byId.get(hop.threadId);
      if (thread === undefined || next === undefined) {
        complain('it names a thread that was not there');
        break;
      }
      if (!mayHold(next, hop.mutex, told)) complain(`thread ${next.id} did not hold mutex ${hop.mutex}`);
      if (thread === told.thread) continue;
      const wait = thread.waits.find((wait) => isIn(wait, hop.mutex, told));
      if (wait === undefined) complain(`thread ${thread.id} did not wait for mutex ${hop.mutex}`);
      else if (wait.outcome === OUTCOMES.DEADLOCK && names(wait, told)) complain(`${tell(wait)} was told too`);
    }
  }
};

/** Whether `wait` blocked for `mutex` without a limit when `told` was told. */
function isIn(wait, mutex, told) {
  const isEndless = wait.isBlocking && wait.timeout === Infinity && wait.mutex === mutex;
  return isEndless && wait.beginTick < told.endTick && wait.overTick > told.beginTick;
}

function names(wait, told) {
  return (wait.cycle ?? []).some(({ threadId, mutex }) => threadId === told.thread.id && mutex === told.mutex);
}

/** Whether `thread` held `mutex` at some time between the call and the answer, as far as its log can say. */
function mayHold(thread, mutex, told) {
  return thread.waits.some(
    (wait) =>
      wait.mutex === mutex &&
      wait.beginTick < told.endTick &&
      (wait.held
        ? !wait.left || (wait.freedTick || Infinity) > told.beginTick
        : thread.died && wait.overTick === Infinity),
  );
}
