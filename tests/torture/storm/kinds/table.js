// The locks of a table, one by one and several at once.

const { COLUMNS, LOCKS } = require('../memory.js');
const { expectMark, lookAtLock } = require('../checks.js');

exports.name = 'table';

const columnOf = (index) => COLUMNS.LOCK + index;

function inside(actor, index, nests = false) {
  const lock = actor.places.table.at(index);
  actor.alone(
    columnOf(index),
    () => lock.abandoned,
    () => lock.markConsistent(),
    () => {
      if (nests) actor.nest(exports);
    },
  );
}

/** Some indices, in any order, one twice now and then. */
const drawIndices = (actor) => Array.from({ length: 2 + actor.below(LOCKS) }, () => actor.below(LOCKS));

const noteAll = (actor, indices, sure, possible) => {
  for (const index of new Set(indices)) actor.note(columnOf(index), sure, possible);
};

function insideAll(actor, indices, guard) {
  noteAll(actor, indices, 1, 0);
  for (const index of new Set(indices)) inside(actor, index);
  noteAll(actor, indices, -1, 0);
  guard.unlock();
  noteAll(actor, indices, 0, -1);
}

exports.turns = (actor) => {
  const { table } = actor.places;
  const index = actor.below(LOCKS);
  const column = columnOf(index);
  const body = () => inside(actor, index, true);
  return [
    () =>
      actor.hold(
        column,
        () => table.lock(index),
        body,
        () => table.unlock(index),
      ),
    () =>
      actor.hold(
        column,
        () => table.lock(index, 1),
        body,
        () => table.unlock(index),
      ),
    () =>
      actor.hold(
        column,
        () => table.tryLock(index),
        body,
        () => table.unlock(index),
      ),
    () =>
      actor.hold(
        column,
        () => table.acquire(index),
        body,
        (guard) => guard.unlock(),
      ),
    () => actor.run(column, (call) => table.executeLockedSync(index, call), body),
    () => {
      const indices = drawIndices(actor);
      noteAll(actor, indices, 0, 1);
      insideAll(actor, indices, table.lockAll(indices));
    },
  ];
};

exports.awaited = (actor) => {
  const { table } = actor.places;
  const index = actor.below(LOCKS);
  const column = columnOf(index);
  const body = () => inside(actor, index);
  return [
    () =>
      actor.holdAsync(
        column,
        () => table.acquireAsync(index),
        body,
        (guard) => guard.unlock(),
      ),
    () => actor.run(column, (call) => table.executeLocked(index, call), body),
    async () => {
      const indices = drawIndices(actor);
      noteAll(actor, indices, 0, 1);
      insideAll(actor, indices, await table.lockAllAsync(indices));
    },
  ];
};

exports.check = (view) => {
  for (let index = 0; index < LOCKS; index++) {
    const name = `lock ${index} of the table`;
    const word = lookAtLock(view, name, view.places.table.at(index));
    expectMark(view, name, columnOf(index), word !== 0);
  }
};

exports.finish = async ({ expect, places: { inside: cells, table }, limit }) => {
  const all = await table.lockAllAsync(
    Array.from({ length: LOCKS }, (_, index) => index),
    limit,
  );
  for (let index = 0; index < LOCKS; index++) {
    const lock = table.at(index);
    const isMarked = all.abandoned.some(({ byteOffset }) => byteOffset === lock.byteOffset);
    expect(cells[columnOf(index)] === 0 || isMarked, `lock ${index} of the table: no mark`);
    if (lock.abandoned) lock.markConsistent();
  }
  all.unlock();
  for (let index = 0; index < LOCKS; index++) {
    expect(!table.at(index).isLocked, `lock ${index} of the table: not free at the end`);
  }
};
