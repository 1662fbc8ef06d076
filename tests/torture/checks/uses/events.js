// An event that surely was not set lets nobody pass; one that is set leaves nobody standing; and each `set` of an
// AutoResetEvent lets one pass.

const { PHASES } = require('../../log.js');
const { Matching } = require('../matching.js');
const { describe, hasPassed, inVainUntil } = require('./describe.js');

const isWait = ({ verbName }) => verbName.startsWith('event.wait');
const isSet = ({ verbName }) => verbName === 'set';
const isReset = ({ verbName }) => verbName === 'reset';

const endOf = ({ phase, endTick }) => (phase === PHASES.ENDED ? endTick : Infinity);

/** The sets that took place while somebody surely stood in the queue in vain. */
function setsInVain(uses) {
  const sets = uses.filter((use) => isSet(use) && use.phase === PHASES.ENDED);
  const found = new Map();
  for (const wait of uses.filter((use) => isWait(use) && inVainUntil(use) > -Infinity)) {
    const deadline = inVainUntil(wait);
    for (const set of sets) {
      if (set.beginTick > wait.queuedTick && set.endTime < deadline) found.set(set, wait);
    }
  }
  return found;
}

exports.checkManual = ({ uses }, report) => {
  for (const [set, wait] of setsInVain(uses)) report('missed', `${describe(wait)}, in spite of ${describe(set)}`);
  const sets = uses.filter(isSet);
  const resets = uses.filter(isReset);
  for (const wait of uses.filter((use) => isWait(use) && hasPassed(use))) {
    // The last reset that was over before.
    const reset = Math.max(0, ...resets.filter((use) => endOf(use) < wait.beginTick).map((use) => use.beginTick));
    if (!sets.some((set) => set.beginTick < wait.overTick && endOf(set) > reset)) {
      report('passed', `${describe(wait)}: it was not set`);
    }
  }
};

exports.checkAuto = ({ uses }, report) => {
  const passed = uses
    .filter((use) => isWait(use) && hasPassed(use))
    .sort((one, other) => one.overTick - other.overTick);
  const sets = uses.filter(isSet).map(({ beginTick }) => beginTick);
  let begun = 0;
  for (const [index, wait] of passed.entries()) {
    while (begun < sets.length && sets[begun] < wait.overTick) begun += 1;
    if (begun <= index) {
      report('passed', `${describe(wait)} is the pass number ${index + 1} of ${begun} sets`);
      break;
    }
  }
  // A set that somebody surely waited for has let one pass who stood before, or one whose thread died before it knew.
  const matching = new Matching([...setsInVain(uses).keys()], () => 1);
  for (const wait of passed) matching.add(wait);
  for (const wait of uses.filter((use) => isWait(use) && use.thread.died && use.phase === PHASES.BEGUN)) {
    matching.add({ ...wait, overTick: wait.thread.deathTick });
  }
  for (const { notification } of matching.rest()) report('dropped', `${describe(notification)} let nobody pass`);
};
