// Helpers that the checks of all kinds have in common. They read the words themselves, the inspection, and the ledgers of the
// dead.

const { SLOTS, entryOf } = require('./memory.js');

/** Returns how many workers surely held a column when they ended, and how many may have. */
exports.countEnds = ({ places }, column) => {
  let certain = 0;
  let possible = 0;
  for (let slot = 0; slot < SLOTS; slot++) {
    const entry = entryOf(places, slot, column);
    if (entry.sure > 0) certain += 1;
    if (entry.possible > 0) possible += 1;
  }
  return { certain, possible };
};

/** The first word of a primitive, and how much the main thread holds, which alone may: nobody waits, nothing is in doubt. */
exports.lookAt = (view, primitive, mode) => {
  const word = Atomics.load(new Int32Array(primitive.buffer, primitive.byteOffset, 1), 0);
  const { holders, waiters } = primitive.inspect();
  const held = view.survivors.has(primitive) ? 1 : 0;
  const say = () => primitive.inspect();
  const kind = primitive.constructor.name;
  const ours = holders.filter((holder) => holder.mode === mode && holder.threadId === 0);
  const registered = holders.filter((holder) => holder.mode !== 'exclusive');
  view.expect(waiters.length === 0, `${kind}: somebody who has ended waits`, say);
  view.expect(!holders.some(({ inDoubt }) => inDoubt), `${kind}: a hold is in doubt`, say);
  if (mode !== 'exclusive') {
    const count = ours.reduce((sum, { count }) => sum + count, 0);
    view.expect(count === held && registered.length === held, `${kind}: not ${held} held, by main`, say);
  }
  return { word, held };
};

/** The word of a mutex, or of a lock of a table: 0, or what one that ended inside has left. */
exports.lookAtLock = (view, name, lock) => {
  const { waiters } = lock.inspect();
  view.expect(waiters.length === 0, `${name}: somebody who has ended waits`, () => lock.inspect());
  return Atomics.load(new Int32Array(lock.buffer, lock.byteOffset, 1), 0);
};

/** An exclusive hold is marked if its holder ended inside, and only if one may have. */
exports.expectMark = (view, name, column, isMarked) => {
  const { possible } = exports.countEnds(view, column);
  const inside = view.places.inside[column];
  view.expect(inside === 0 || isMarked, `${name}: worker ${inside} ended inside, and there is no mark`);
  view.expect(!isMarked || possible > 0, `${name}: nobody ended inside, and there is a mark`);
};
