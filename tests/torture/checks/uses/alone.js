// Checks who may not be beside whom, and who sees the mark of one that ended inside.

const { PHASES } = require('../../log.js');
const { describe } = require('./describe.js');

const byHeldTick = (one, other) => one.heldTick - other.heldTick;

/** No exclusive hold overlaps another hold. */
exports.checkAlone = (uses, isExclusive, report) => {
  let lastAlone;
  let last;
  for (const hold of uses.filter(({ held }) => held).sort(byHeldTick)) {
    const before = isExclusive(hold) ? last : lastAlone;
    if (before !== undefined && before.heldUntil > hold.heldTick) {
      report('overlap', `${describe(before)}; then ${describe(hold)}`);
    }
    if (last === undefined || hold.heldUntil > last.heldUntil) last = hold;
    if (isExclusive(hold) && (lastAlone === undefined || hold.heldUntil > lastAlone.heldUntil)) lastAlone = hold;
  }
};

/** Promises of one thread, of which one at least is exclusive, are served in the order of their calls. */
exports.checkCallOrder = (uses, isExclusive, report) => {
  const latest = new Map();
  for (const hold of uses.filter(({ held, order }) => held && order >= 0).sort(byHeldTick)) {
    const { all, alone } = latest.get(hold.thread) ?? {};
    const before = isExclusive(hold) ? all : alone;
    if (before?.order > hold.order) {
      report('order', `${describe(before)} was call ${before.order}; then ${describe(hold)}, call ${hold.order}`);
    }
    latest.set(hold.thread, {
      all: all?.order > hold.order ? all : hold,
      alone: isExclusive(hold) && !(alone?.order > hold.order) ? hold : alone,
    });
  }
};

/**
 * A hold after one whose thread died inside sees the mark, until it is taken off; others do not. One mark too many is allowed
 * where a thread died in the instant of the grant, or while it gave back.
 */
exports.checkMarks = (uses, isExclusive, report) => {
  const doubts = uses.filter((use) => isExclusive(use) && use.thread.died && use.phase === PHASES.BEGUN);
  let marked = 'no';
  for (const hold of uses.filter(({ held }) => held).sort(byHeldTick)) {
    if (marked === 'yes' && !hold.abandoned) report('unmarked', `${describe(hold)} saw no mark`);
    if (marked === 'no' && hold.abandoned) {
      const mayHave = (use) => use.beginTick < hold.heldTick && use.thread.lastTick < hold.heldTick;
      if (!doubts.some(mayHave)) report('marked', `${describe(hold)} saw a mark, and nobody had died inside`);
    }
    marked = hold.abandoned && !hold.cleared ? 'yes' : 'no';
    if (!isExclusive(hold) || !hold.thread.died) continue;
    if (hold.phase === PHASES.HELD) marked = 'yes';
    else if (hold.phase === PHASES.LEAVING && marked === 'no') marked = 'maybe';
  }
};
