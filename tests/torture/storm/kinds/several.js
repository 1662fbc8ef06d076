// Locks of several kinds in one call. Never nested in another hold; the locks' own kinds check what is left.

const { COLUMNS, LOCKS } = require('../memory.js');
const { lockAll, lockAllAsync } = require('../../package.js');
const { bodies } = require('./rwlock.js');

exports.name = 'several';
exports.needs = ['rwlock', 'mutex', 'table'];

/** The RwLock in one of its modes, the mutex, and a lock of the table: `[{ column, lock, inside }]`, in any order. */
function draw(actor) {
  const { mutex, rw, table } = actor.places;
  const { read, write } = bodies(actor);
  const lock = table.at(actor.below(LOCKS));
  const alone = (column, lock) => ({
    column,
    lock,
    inside: () =>
      actor.alone(
        column,
        () => lock.abandoned,
        () => lock.markConsistent(),
        () => {},
      ),
  });
  const all = [
    actor.below(2) === 0
      ? { column: COLUMNS.READ, lock: rw.read, inside: () => read(false) }
      : { column: COLUMNS.WRITE, lock: rw.write, inside: () => write(false) },
    alone(COLUMNS.MUTEX, mutex),
    alone(COLUMNS.LOCK + (lock.byteOffset - table.byteOffset) / 4, lock),
  ];
  // One is left out now and then; the order does not matter.
  if (actor.below(3) === 0) all.splice(actor.below(3), 1);
  return actor.below(2) === 0 ? all : all.reverse();
}

function note(actor, parts, sure, possible) {
  for (const { column } of parts) actor.note(column, sure, possible);
}

function inside(actor, parts, guard) {
  note(actor, parts, 1, 0);
  for (const part of parts) part.inside();
  note(actor, parts, -1, 0);
  guard.unlock();
}

/** Expects the error that a call for a millisecond throws when its time is over. */
function expectTimeout(error) {
  if (error.code !== 'ERR_LOCK_TIMEOUT') throw error;
}

exports.turns = (actor) => {
  const turn = (options) => {
    const parts = draw(actor);
    note(actor, parts, 0, 1);
    try {
      inside(
        actor,
        parts,
        lockAll(
          parts.map(({ lock }) => lock),
          options,
        ),
      );
    } catch (error) {
      expectTimeout(error);
    }
    note(actor, parts, 0, -1);
  };
  return [() => turn(), () => turn({ timeout: 1 })];
};

exports.awaited = (actor) => [
  async () => {
    const parts = draw(actor);
    note(actor, parts, 0, 1);
    const locks = parts.map(({ lock }) => lock);
    try {
      inside(actor, parts, await lockAllAsync(locks, { timeout: actor.below(2) === 0 ? undefined : 1 }));
    } catch (error) {
      expectTimeout(error);
    }
    note(actor, parts, 0, -1);
  },
];

exports.check = () => {};
exports.finish = async () => {};
