// Functions that are run once: one runs at a time, and one comes to its end.

const { COLUMNS, ONCES } = require('../memory.js');
const { expectMark, lookAt } = require('../checks.js');

const DONE = 1 << 30;
const LOW = (1 << 26) - 1;
const ABANDONED = 1 << 27;

exports.name = 'once';

const FAILURE = new Error('The storm lets the next one run.');

/** Returns the function that is run: it seldom comes to its end, so that others have their turn. */
function runner(actor, index, nests) {
  const { runs } = actor.places;
  const column = COLUMNS.ONCE + index;
  return ({ abandoned }) => {
    actor.note(column, 1, 0);
    const isLast = actor.below(400) === 0;
    actor.alone(
      column,
      () => abandoned,
      // One that ended behind its last step has counted itself.
      () => {
        runs[index] = 0;
      },
      () => {
        if (nests) actor.nest(exports);
        if (runs[index] !== 0) actor.complain(`once ${index} runs again`);
        if (isLast) runs[index] += 1;
      },
    );
    actor.note(column, -1, 0);
    if (!isLast) throw FAILURE;
  };
}

exports.turns = (actor) => {
  const index = actor.below(ONCES);
  const once = actor.places.onces[index];
  const column = COLUMNS.ONCE + index;
  const run = (timeout) => {
    actor.note(column, 0, 1);
    try {
      once.runSync(runner(actor, index, true), timeout);
      if (!once.isDone) actor.complain(`once ${index} is not done`);
    } catch (error) {
      if (error !== FAILURE && error.code !== 'ERR_LOCK_TIMEOUT') throw error;
    }
    actor.note(column, 0, -1);
  };
  return [() => run(undefined), () => run(1)];
};

exports.awaited = (actor) => {
  const index = actor.below(ONCES);
  const once = actor.places.onces[index];
  return [
    async () => {
      actor.note(COLUMNS.ONCE + index, 0, 1);
      try {
        await once.run(runner(actor, index, false));
      } catch (error) {
        if (error !== FAILURE) throw error;
      }
      actor.note(COLUMNS.ONCE + index, 0, -1);
    },
  ];
};

exports.check = (view) => {
  for (const [index, once] of view.places.onces.entries()) {
    const { word } = lookAt(view, once, 'exclusive');
    const isDone = (word & DONE) !== 0;
    view.expect(!isDone || view.places.runs[index] === 1, `once ${index}: done ${view.places.runs[index]} times`);
    // One that is done was seen to its end, whatever its threads did afterwards.
    if (!isDone) expectMark(view, `once ${index}`, COLUMNS.ONCE + index, (word & (LOW | ABANDONED)) !== 0);
  }
};

exports.finish = async ({ expect, places: { inside, onces }, limit }) => {
  for (const [index, once] of onces.entries()) {
    const wasDone = once.isDone;
    let wasMarked = false;
    const hasRun = await once.run(({ abandoned }) => {
      wasMarked = abandoned;
    }, limit);
    expect(hasRun !== wasDone, `once ${index}: run is ${hasRun}, done before: ${wasDone}`);
    expect(wasDone || inside[COLUMNS.ONCE + index] === 0 || wasMarked, `once ${index}: has not learned of the end`);
    expect(once.isDone, `once ${index}: not done at the end`);
  }
};
