// Every wait of a thread that lived ended, and in the way that it may: no waiter was lost, no hold was kept,
// no timeout came early, none came very late.

const { BLOCKED_LATE, ownBusy } = require('./times.js');
const { OUTCOMES, PHASES } = require('../log.js');
const { tell } = require('../history.js');

exports.checkEnds = ({ threads }, report, measure) => {
  for (const thread of threads) {
    for (const wait of thread.waits) {
      if (!thread.died && wait.phase === PHASES.BEGUN) report('lost', tell(wait));
      if (!thread.died && (wait.phase === PHASES.HELD || wait.phase === PHASES.LEAVING)) report('kept', tell(wait));
      if (wait.phase === PHASES.ENDED && wait.outcome === OUTCOMES.TIMED_OUT) checkTimeout(wait, report, measure);
    }
  }
};

function checkTimeout(wait, report, measure) {
  const waited = wait.endTime - wait.beginTime;
  if (wait.timeout === Infinity) report('early', `${tell(wait)}: it had no time limit`);
  else if (waited < wait.timeout - 0.001) report('early', `${tell(wait)}: it waited ${waited} ms`);
  const late = waited - wait.timeout - (wait.isAsync ? ownBusy(wait) : 0);
  if (wait.timeout > 0) measure(wait.isAsync ? 'asynchronous timeout, late' : 'blocking timeout, late', late);
  if (wait.isBlocking && late > BLOCKED_LATE) report('late', `${tell(wait)}: it waited ${waited} ms`);
}
