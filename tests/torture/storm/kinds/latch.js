// Entries of a latch: as long as somebody has one, the count is not zero.

const { COLUMNS } = require('../memory.js');
const { lookAt } = require('../checks.js');

exports.name = 'latch';

function inside(actor) {
  const { latch } = actor.places;
  actor.linger();
  if (latch.count < 1) actor.complain('has an entry, and the count is zero');
  actor.nest(exports);
  if (actor.strikes('lose-entry')) latch.add();
  if (actor.strikes('count-down-twice')) latch.countDown();
}

function leave(actor, entry) {
  if (!entry.leave()) actor.complain('somebody has counted its entry down');
}

exports.turns = (actor) => {
  const { latch } = actor.places;
  const enter = () => latch.enter();
  const hold = (body) => actor.hold(COLUMNS.ENTRY, enter, body, (entry) => leave(actor, entry));
  return [() => hold(() => inside(actor)), () => hold(() => hold(() => inside(actor))), () => latch.wait(0.1)];
};

exports.awaited = (actor) => {
  const { latch } = actor.places;
  return [
    async () => {
      actor.note(COLUMNS.ENTRY, 0, 1);
      const entry = latch.enter();
      actor.note(COLUMNS.ENTRY, 1, 0);
      await new Promise((resolve) => setImmediate(resolve));
      actor.note(COLUMNS.ENTRY, -1, 0);
      leave(actor, entry);
      actor.note(COLUMNS.ENTRY, 0, -1);
    },
    () => latch.waitAsync(1),
  ];
};

exports.survives = 2;

exports.survive = async ({ latch }) => {
  const entry = latch.enter();
  return { primitive: latch, release: () => entry.leave() };
};

exports.check = (view) => {
  const { latch } = view.places;
  const { word, held } = lookAt(view, latch, 'entry');
  view.expect(word === held && latch.count === held, `latch: the count is not ${held}`, () => latch.inspect());
};

exports.finish = async ({ expect, places: { latch }, limit }) => {
  expect(await latch.waitAsync(limit), 'latch: not open at the end');
};
