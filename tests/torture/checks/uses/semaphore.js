// There are never more permits than there are; none is lost and none comes from nowhere; and grants of a fair one are in the order
// of the queue: while somebody surely stood there in vain, nobody who came later got any.

const { PHASES } = require('../../log.js');
const { describe, inVainUntil } = require('./describe.js');

exports.check = ({ uses, of, fair, leftOver }, report) => {
  checkPeak(uses, of, report);
  if (fair) checkPlaces(uses, report);
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

/**
 * A later one of one thread may be settled first: it gets what is there at the call, while an earlier one that was
 * granted before waits for the loop to turn. So only who was not granted at all is compared.
 */
function checkPlaces(uses, report) {
  const granted = uses.filter(({ held }) => held);
  for (const wait of uses) {
    const deadline = inVainUntil(wait);
    if (deadline === -Infinity) continue;
    const later = granted.find((use) => use.beginTick > wait.queuedTick && use.heldTime < deadline);
    if (later !== undefined) report('overtaken', `${describe(wait)} stood in the queue before ${describe(later)}`);
  }
}
