// There are never more permits than there are; none is lost and none comes from nowhere; and grants of a fair one are in the order
// of the queue: while somebody surely stood there in vain, nobody who came later got any.

const { describe, inVainUntil } = require('./describe.js');

/** A thread awaits a turn of its loop at least once in so many steps. */
const STEPS_OF_A_TURN = 8;

exports.check = ({ uses, of, fair, leftOver }, report) => {
  checkPeak(uses, of, report);
  if (fair) checkPlaces(uses, report);
  if (leftOver !== of) report('permits', `${leftOver} of ${of} permits are left at the end`);
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
 * granted before waits for the loop to turn. So only who was not granted at all is compared. What a
 * promise was granted goes back at its deadline if its loop has not come by then, so its loop must have turned in between.
 */
function checkPlaces(uses, report) {
  const granted = uses.filter(({ held }) => held);
  for (const wait of uses) {
    const deadline = inVainUntil(wait);
    if (deadline === -Infinity) continue;
    const isBefore = (use) =>
      use.beginTick > wait.queuedTick && use.heldTime < deadline && hasTurned(wait.thread, use.heldTime, deadline);
    const later = granted.find(isBefore);
    if (later !== undefined) report('overtaken', `${describe(wait)} stood in the queue before ${describe(later)}`);
  }
}

/** Whether the loop of a thread surely turned between these times: it began uses in steps that are far apart. */
function hasTurned(thread, from, to) {
  const steps = thread.uses.filter(({ beginTime }) => from < beginTime && beginTime < to).map(({ about }) => about);
  return Math.max(...steps) - Math.min(...steps) > STEPS_OF_A_TURN;
}
