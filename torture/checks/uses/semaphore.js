// There are never more permits than there are; none is lost and none comes from nowhere; and grants are in the order of the
// queue: while somebody surely stood there in vain, nobody who came later got any.

const { PHASES } = require('../../log.js');
const { describe, inVainUntil } = require('./describe.js');

exports.check = ({ uses, of, leftOver }, report) => {
  checkPeak(uses, of, report);
  checkCallOrder(uses, report);
  checkPlaces(uses, report);
  // Forgotten, and perhaps not added again.
  const lost = uses.filter(({ thread, phase, cleared }) => thread.died && cleared && phase === PHASES.LEAVING);
  const least = of - lost.reduce((sum, { count }) => sum + count, 0);
  if (leftOver > of || leftOver < least) report('permits', `${leftOver} of ${of} permits are left at the end`);
};

function checkPeak(uses, of, report) {
  const changes = uses
    .filter(({ held }) => held)
    .flatMap((use) => [
      { tick: use.heldTick, by: use.count, use },
      { tick: use.heldUntil, by: -use.count, use },
    ])
    .sort((one, other) => one.tick - other.tick);
  let taken = 0;
  for (const { by, use } of changes) {
    taken += by;
    if (taken <= of) continue;
    report('permits', `${taken} of ${of} permits are taken with ${describe(use)}`);
    return;
  }
}

/** As each is granted, its loop settles it: those of one thread in the order of their calls. */
function checkCallOrder(uses, report) {
  const latest = new Map();
  const isSettledAsIs = ({ held, verbName }) => held && verbName === 'semaphore.acquireAsync';
  for (const hold of uses.filter(isSettledAsIs).sort((one, other) => one.heldTick - other.heldTick)) {
    const before = latest.get(hold.thread);
    if (before?.order > hold.order) {
      report('order', `${describe(before)} was call ${before.order}; then ${describe(hold)}, call ${hold.order}`);
    } else latest.set(hold.thread, hold);
  }
}

function checkPlaces(uses, report) {
  const granted = uses.filter(({ held }) => held);
  for (const wait of uses) {
    const deadline = inVainUntil(wait);
    if (deadline === -Infinity) continue;
    const later = granted.find((use) => use.beginTick > wait.queuedTick && use.heldTime < deadline);
    if (later !== undefined) report('overtaken', `${describe(wait)} stood in the queue before ${describe(later)}`);
  }
}
