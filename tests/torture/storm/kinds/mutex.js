// The mutex, which the core alone remembers the holder of: here it is the witness that nothing of the others got in its way.

const { COLUMNS } = require('../memory.js');
const { expectMark, lookAtLock } = require('../checks.js');

exports.name = 'mutex';

/** As if nobody held it: what is inside then shows. */
function hideEnd(actor, { buffer, byteOffset }) {
  Atomics.store(new Int32Array(buffer, byteOffset, 1), 0, 0);
  for (;;) actor.linger();
}

const inside = (actor, mutex, nests) =>
  actor.alone(
    COLUMNS.MUTEX,
    () => mutex.abandoned,
    () => mutex.markConsistent(),
    () => {
      if (actor.strikes('hide-end')) hideEnd(actor, mutex);
      if (nests) actor.nest(exports);
    },
  );

exports.turns = (actor) => {
  const { mutex } = actor.places;
  const body = () => inside(actor, mutex, true);
  return [
    () =>
      actor.hold(
        COLUMNS.MUTEX,
        () => mutex.lock(),
        body,
        () => mutex.unlock(),
      ),
    () =>
      actor.hold(
        COLUMNS.MUTEX,
        () => mutex.lock(1),
        body,
        () => mutex.unlock(),
      ),
    () =>
      actor.hold(
        COLUMNS.MUTEX,
        () => mutex.acquire(),
        body,
        (guard) => guard.unlock(),
      ),
    () => actor.run(COLUMNS.MUTEX, (call) => mutex.executeLockedSync(call), body),
  ];
};

exports.awaited = (actor) => {
  const { mutex } = actor.places;
  const body = () => inside(actor, mutex, false);
  return [
    () =>
      actor.holdAsync(
        COLUMNS.MUTEX,
        () => mutex.acquireAsync(),
        body,
        (guard) => guard.unlock(),
      ),
    () => actor.run(COLUMNS.MUTEX, (call) => mutex.executeLocked(call), body),
  ];
};

exports.check = (view) => {
  const word = lookAtLock(view, 'mutex', view.places.mutex);
  expectMark(view, 'mutex', COLUMNS.MUTEX, word !== 0);
};

exports.finish = async ({ expect, places: { inside, mutex }, limit }) => {
  const guard = await mutex.acquireAsync(limit);
  expect(inside[COLUMNS.MUTEX] === 0 || guard.abandoned, 'mutex: a holder ended inside, and there is no mark');
  if (guard.abandoned) mutex.markConsistent();
  guard.unlock();
  expect(!mutex.isLocked, 'mutex: not free at the end');
};
