// A call that fails since its thread is ending is of a thread whose end had begun: by an uncaught error, after which Node.js runs
// microtasks for a while, or by terminate(), where a blocked wait ends a moment before the code does.

const { OUTCOMES, PHASES } = require('../log.js');

exports.checkEndings = ({ threads }, report) => {
  for (const { id, died, fateTick, askedToEnd, waits, queued, uses } of threads) {
    for (const { phase, outcome, verbName, index, endTick, endTime } of [...waits, ...queued, ...uses]) {
      if (phase !== PHASES.ENDED || outcome !== OUTCOMES.THREAD_ENDING) continue;
      if (died && (endTick > fateTick || endTime >= askedToEnd)) continue;
      report('error', `${verbName} #${index} of thread ${id}, which was not ending, failed by ERR_LOCK_THREAD_ENDING`);
    }
  }
};
