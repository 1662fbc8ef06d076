const { OUTCOMES, PHASES } = require('../../log.js');

/** A use in words. */
exports.describe = (use) => {
  if (use === undefined) return 'nothing';
  const { thread, held, left, phase } = use;
  const who = `thread ${thread.id}${thread.died ? ' (died)' : ''}`;
  const span = held ? `held ${use.heldTick}-${left ? use.leftTick : '(not given back)'}` : `over ${use.overTick}`;
  const count = use.count > 0 ? ` of ${use.count}` : '';
  return `${use.verbName}(${use.timeout})${count} #${use.index} of ${who}, begun ${use.beginTick}, ${span}, phase ${phase}`;
};

/** It was let pass. */
exports.hasPassed = ({ phase, outcome }) => phase === PHASES.ENDED && outcome === OUTCOMES.NOTIFIED;

/** Whether its thread has ended before its code knew whether it was let pass. */
exports.mayHavePassed = ({ phase, outcome, thread }) =>
  thread.died && (phase === PHASES.BEGUN || outcome === OUTCOMES.THREAD_ENDING);

/** The time until which it surely stood in the queue in vain; before all times where that is not known. */
exports.inVainUntil = ({ phase, outcome, timeout, beginTime, queuedTick }) =>
  phase === PHASES.ENDED && outcome === OUTCOMES.TIMED_OUT && queuedTick < Infinity ? beginTime + timeout : -Infinity;
