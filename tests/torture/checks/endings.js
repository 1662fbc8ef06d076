// A call that fails since its thread is ending is of a thread whose end had begun: by an uncaught error, after which Node.js runs
// microtasks for a while, or by terminate(), where a blocked wait ends a moment before the code does. At the end of a round that code
// may even come to its own end by then.

const { OUTCOMES, PHASES } = require('../log.js');

exports.checkEndings = ({ threads }, report) => {
  for (const { id, fate, endingTick, askedToEnd, waits, queued, uses } of threads) {
    for (const { phase, outcome, verbName, index, endTick, endTime } of [...waits, ...queued, ...uses]) {
      if (phase !== PHASES.ENDED || outcome !== OUTCOMES.THREAD_ENDING) continue;
      if (endTick > endingTick || endTime >= askedToEnd) continue;
      const known = `it ended at tick ${endTick} and ${endTime} ms, with fate ${fate}; its end began at tick ${endingTick}, or was asked for at ${askedToEnd} ms`;
      report(
        'error',
        `${verbName} #${index} of thread ${id} failed by ERR_LOCK_THREAD_ENDING before that was ending: ${known}`,
      );
    }
  }
};
