// Checks of the uses of things.js: each kind has its own; that each use of a thread that lived ended, and in
// time, is the same for all.

const { ownBusy } = require('../../history.js');
const { OUTCOMES, PHASES } = require('../../log.js');
const { describe } = require('./describe.js');

const CHECKS = {
  rwlock: require('./rwlock.js').check,
  semaphore: require('./semaphore.js').check,
  latch: require('./latch.js').check,
  barrier: require('./barrier.js').check,
  exchanger: require('./exchanger.js').check,
  auto: require('./events.js').checkAuto,
  manual: require('./events.js').checkManual,
  once: require('./once.js').check,
  name: require('./name.js').check,
};

/** A blocked thread whose time is over may be this late, in milliseconds. */
const BLOCKED_LATE = 3000;

exports.checkUses = ({ things }, report, measure) => {
  for (const thing of things) {
    for (const use of thing.uses) checkEnd(thing, use, report, measure);
    CHECKS[thing.kind](thing, (kind, text) => report(kind, `${thing.name}: ${text}`));
  }
};

function checkEnd({ name }, use, report, measure) {
  const { phase, outcome, timeout, thread } = use;
  if (!thread.died && phase === PHASES.BEGUN) report('lost', `${name}: ${describe(use)}`);
  if (!thread.died && (phase === PHASES.HELD || phase === PHASES.LEAVING)) report('kept', `${name}: ${describe(use)}`);
  if (phase !== PHASES.ENDED || outcome !== OUTCOMES.TIMED_OUT || timeout === 0) return;
  const waited = use.endTime - use.beginTime;
  if (waited < timeout - 0.001) report('early', `${name}: ${describe(use)}: it waited ${waited} ms`);
  const late = waited - timeout - (use.isAsync ? ownBusy(use) : 0);
  measure(use.isAsync ? 'asynchronous timeout of a use, late' : 'blocking timeout of a use, late', late);
  if (use.isBlocking && late > BLOCKED_LATE) report('late', `${name}: ${describe(use)}: it waited ${waited} ms`);
}
