// Members of a barrier, whose end breaks it, and parties of another, which wait for a moment.

const { CELLS, COLUMNS } = require('../memory.js');
const { countEnds, lookAt } = require('../checks.js');

exports.name = 'barrier';

/** A round of two; it breaks when the other does not come in time, or ends. */
function pass(actor, index) {
  const { cells } = actor.places;
  if (index !== 0 && index !== 1) actor.complain(`the barrier returned ${index}`);
  const passes = Atomics.add(cells, CELLS.PASSES, 1) + 1;
  const arrivals = Atomics.load(cells, CELLS.ARRIVALS);
  if (passes > arrivals) actor.complain(`${passes} have passed the barrier, and ${arrivals} have come`);
}

function meet(actor, error) {
  if (error.code !== 'ERR_LOCK_BROKEN' && error.code !== 'ERR_LOCK_TIMEOUT') throw error;
  if (actor.below(2) === 0) actor.places.rounds.reset();
}

exports.turns = (actor) => {
  const { cells, members, rounds } = actor.places;
  const hold = (body) =>
    actor.hold(
      COLUMNS.MEMBER,
      () => members.join(),
      body,
      (member) => member.leave(),
    );
  const body = () => {
    for (let time = actor.below(4); time >= 0; time--) actor.linger();
    if (actor.strikes('mend-barrier')) members.reset();
  };
  return [
    () => hold(body),
    () => hold(() => hold(body)),
    () => {
      Atomics.add(cells, CELLS.ARRIVALS, 1);
      try {
        pass(actor, rounds.wait(actor.below(2)));
      } catch (error) {
        meet(actor, error);
      }
    },
  ];
};

exports.awaited = (actor) => {
  const { cells, rounds } = actor.places;
  return [
    async () => {
      Atomics.add(cells, CELLS.ARRIVALS, 1);
      try {
        pass(actor, await rounds.waitAsync(1));
      } catch (error) {
        meet(actor, error);
      }
    },
  ];
};

exports.survives = 2;

exports.survive = async ({ members }) => {
  const member = members.join();
  return { primitive: members, release: () => member.leave() };
};

exports.check = (view) => {
  const { members, rounds } = view.places;
  lookAt(view, members, 'member');
  const { certain, possible } = countEnds(view, COLUMNS.MEMBER);
  view.expect(!(certain > 0 && !members.broken), 'barrier: a member ended, and it is not broken');
  view.expect(!(possible === 0 && members.broken), 'barrier: no member ended, and it is broken');
  lookAt(view, rounds, 'exclusive');
  view.expect(rounds.waiting === 0, `barrier: ${rounds.waiting} wait`);
};

exports.finish = async ({ expect, places: { members, rounds }, limit }) => {
  for (const barrier of [members, rounds]) {
    barrier.reset();
    const indices = await Promise.all([barrier.waitAsync(limit), barrier.waitAsync(limit)]);
    expect(indices.join() === '1,0', `barrier: ${indices} after its reset`);
    expect(!barrier.broken && barrier.waiting === 0, 'barrier: broken at the end');
  }
};
