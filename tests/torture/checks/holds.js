// Holds of one mutex never overlapped: by the stamps, and by the number that each holder drew without atomics.
// And every wait of a thread that lived ended, and in the way that it may: no waiter was lost, no hold was kept, no timeout
// came early, none came very late.

const { ownBusy, describe } = require('../history.js');
const { OUTCOMES, PHASES } = require('../log.js');

/** A blocked thread whose time is over may be this late, in milliseconds, on a machine that others use too. */
const BLOCKED_LATE = 3000;

exports.checkExclusion = ({ mutexes }, report) => {
  for (const { index, holds } of mutexes) {
    let previous;
    for (const hold of holds) {
      if (previous !== undefined) checkPair(index, previous, hold, report);
      else if (hold.sequence !== 1) report('sequence', `mutex ${index}: the first hold is ${describe(hold)}`);
      previous = hold;
    }
  }
};

function checkPair(mutex, first, second, report) {
  const pair = () => `mutex ${mutex}: ${describe(first)}; then ${describe(second)}`;
  const died = !first.left && first.thread.died;
  if (!first.left && !first.thread.died) report('overlap', `${pair()}: the first thread lives and has not unlocked`);
  if (first.left && first.leftTick > second.heldTick) report('overlap', pair());
  if (died && first.thread.lastTick > second.heldTick) {
    report('overlap', `${pair()}: the first thread still ran, at ${first.thread.lastTick}`);
  }
  const step = second.sequence - first.sequence;
  // A thread that dies between drawing its number and storing it leaves the number to the next.
  if (step !== 1 && !(step === 0 && died)) report('sequence', pair());
}

exports.checkEnds = ({ threads }, report, measure) => {
  for (const thread of threads) {
    for (const wait of thread.waits) {
      if (!thread.died && wait.phase === PHASES.BEGUN) report('lost', describe(wait));
      if (!thread.died && (wait.phase === PHASES.HELD || wait.phase === PHASES.LEAVING)) report('kept', describe(wait));
      if (wait.phase === PHASES.ENDED && wait.outcome === OUTCOMES.TIMED_OUT) checkTimeout(wait, report, measure);
    }
  }
};

function checkTimeout(wait, report, measure) {
  const waited = wait.endTime - wait.beginTime;
  if (wait.timeout === Infinity) report('early', `${describe(wait)}: it had no time limit`);
  else if (waited < wait.timeout - 0.001) report('early', `${describe(wait)}: it waited ${waited} ms`);
  const late = waited - wait.timeout - (wait.isAsync ? ownBusy(wait) : 0);
  if (wait.timeout > 0) measure(wait.isAsync ? 'asynchronous timeout, late' : 'blocking timeout, late', late);
  if (wait.isBlocking && late > BLOCKED_LATE) report('late', `${describe(wait)}: it waited ${waited} ms`);
}
