// A latch lets nobody pass while somebody surely has an entry; nobody waits in vain through a time in which surely nobody had one;
// and when all is over the count is zero.

const { describe, hasPassed, inVainUntil } = require('./describe.js');

const isCounted = ({ verbName }) => verbName === 'latch.enter' || verbName === 'latch.add';

exports.check = ({ uses, leftOver }, report) => {
  if (leftOver !== 0) report('entries', `the count is ${leftOver} at the end`);
  checkPassed(uses, report);
  checkMissed(uses, report);
};

function checkPassed(uses, report) {
  const entries = uses.filter((use) => isCounted(use) && use.held).sort((one, other) => one.heldTick - other.heldTick);
  let next = 0;
  let longest;
  // In the order of their beginnings.
  for (const wait of uses.filter(hasPassed)) {
    for (; next < entries.length && entries[next].heldTick < wait.beginTick; next++) {
      if (longest === undefined || entries[next].heldUntil > longest.heldUntil) longest = entries[next];
    }
    if (longest?.heldUntil > wait.overTick) report('passed', `${describe(wait)}, all during ${describe(longest)}`);
  }
}

/** From when to when an entry may have been counted: `{ fromTick, fromTime, untilTick, untilTime }`. */
function possible(use) {
  const { thread, freedTick, endTime, held, beginTick, beginTime } = use;
  const isFreed = freedTick > 0;
  const end = isFreed ? freedTick : thread.died ? thread.deathTick : Infinity;
  const time = isFreed ? endTime : thread.died ? thread.deathTime : Infinity;
  return { fromTick: beginTick, fromTime: beginTime, untilTick: held || !isFreed ? end : 0, untilTime: time };
}

function checkMissed(uses, report) {
  const missed = uses.filter((use) => inVainUntil(use) > -Infinity);
  if (missed.length === 0) return;
  // The times without any entry.
  let last = { untilTick: 0, untilTime: 0 };
  const gaps = [];
  for (const span of uses.filter(isCounted).map(possible)) {
    if (span.fromTick > last.untilTick) gaps.push({ from: last, to: span });
    if (span.untilTick > last.untilTick) last = span;
  }
  for (const wait of missed) {
    const deadline = inVainUntil(wait);
    const gap = gaps.find(({ from, to }) => {
      // It stood there at some time of the gap, before its own was over.
      return to.fromTick > wait.queuedTick && from.untilTime < deadline && to.fromTime < deadline;
    });
    if (gap !== undefined) report('missed', `${describe(wait)}: nobody had an entry from ${gap.from.untilTick}`);
  }
}
