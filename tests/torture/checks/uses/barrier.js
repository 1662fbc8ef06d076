// As many pass together as there are parties, each with a number of its own; and it stays broken from the end of a party or a
// member until it is reset.

const { PHASES } = require('../../log.js');
const { Matching } = require('../matching.js');
const { describe, hasPassed, mayHavePassed } = require('./describe.js');

const isParty = ({ verbName }) => verbName.startsWith('barrier.wait');

exports.check = ({ uses, of }, report) => {
  const passed = uses.filter((use) => isParty(use) && hasPassed(use));
  for (const use of passed)
    if (!(use.count >= 0 && use.count < of)) report('parties', `${describe(use)}: ${use.count}`);
  checkRounds(uses, passed, of, report);
  checkBroken(uses, passed, report);
};

/** The last to come lets each of the others pass: one of each number. */
function checkRounds(uses, passed, of, report) {
  const doubtful = uses.filter((use) => isParty(use) && mayHavePassed(use));
  const asRound = (use) => ({ ...use, phase: PHASES.ENDED, endTick: Math.min(use.overTick, use.thread.deathTick) });
  const lasts = passed.filter(({ count }) => count === 0);
  for (let number = 1; number < of; number++) {
    const rounds = new Matching([...lasts, ...doubtful].map(asRound), () => 1);
    const own = passed.filter(({ count }) => count === number);
    for (const use of own)
      if (!rounds.add(use)) report('parties', `${describe(use)} passed as ${number} with no last one`);
    const sure = new Matching(lasts.map(asRound), () => 1);
    for (const use of [...own, ...doubtful.map(asRound)])
      sure.add({ ...use, overTick: Math.min(use.overTick, use.thread.deathTick) });
    for (const { notification } of sure.rest())
      report('parties', `${describe(notification)} passed without a ${number}`);
  }
}

function checkBroken(uses, passed, report) {
  const resets = uses.filter(({ verbName }) => verbName === 'barrier.reset');
  for (const member of uses.filter(({ verbName, phase }) => verbName === 'barrier.join' && phase === PHASES.HELD)) {
    const { died, lastTick, deathTick } = member.thread;
    if (!died) continue;
    const after = resets.filter(({ endTick }) => endTick === 0 || endTick > lastTick);
    const mended = Math.min(...after.map(({ beginTick }) => beginTick));
    const use = passed.find(({ beginTick, overTick }) => beginTick > deathTick && overTick < mended);
    if (use !== undefined) report('parties', `${describe(use)} passed, although it was broken by ${describe(member)}`);
  }
}
