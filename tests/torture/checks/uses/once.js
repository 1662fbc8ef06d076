// One runs at a time; one comes to its end, and none runs afterwards; nobody learns that it is done before.

const { OUTCOMES, PHASES } = require('../../log.js');
const { checkAlone, checkMarks } = require('./alone.js');
const { describe } = require('./describe.js');

exports.check = ({ uses }, report) => {
  checkAlone(uses, () => true, report);
  checkMarks(uses, () => true, report);
  // One that died behind its end may not have been done.
  const last = uses.filter(({ cleared, phase }) => cleared && phase >= PHASES.LEAVING);
  const done = last.find(({ thread }) => !thread.died);
  if (done !== undefined) {
    const again = uses.find(({ held, heldTick }) => held && heldTick > done.leftTick);
    if (again !== undefined) report('again', `${describe(again)}, after ${describe(done)}`);
  }
  const first = Math.min(...last.map(({ leftTick }) => leftTick));
  const early = uses.find(({ outcome, phase, endTick }) => {
    return phase === PHASES.ENDED && outcome === OUTCOMES.REFUSED && endTick < first;
  });
  if (early !== undefined) report('again', `${describe(early)} learned that it is done, and nobody had been`);
};
