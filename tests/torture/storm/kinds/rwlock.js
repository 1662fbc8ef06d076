// Readers see the pair as a writer left it, unless the lock is marked.

const { COLUMNS } = require('../memory.js');
const { expectMark, lookAt } = require('../checks.js');

const SHARED = 1 << 30;
const LOW = (1 << 26) - 1;
const ABANDONED = 1 << 27;

exports.name = 'rwlock';

/** The bodies of workers inside. */
function bodies(actor) {
  const { inside, pair, rw } = actor.places;
  const read = (nests = true) => {
    const [first] = pair;
    const before = inside[COLUMNS.WRITE];
    actor.linger();
    if (nests) actor.nest(exports);
    if (!rw.abandoned && (before !== 0 || inside[COLUMNS.WRITE] !== 0 || pair[0] !== first || pair[1] !== first)) {
      actor.complain(`read beside a writer: ${before}, ${inside[COLUMNS.WRITE]}, ${first}, ${pair.join()}`);
    }
  };
  const change = () => {
    const value = pair[0] + 1;
    pair[0] = value;
    actor.linger();
    if (pair[0] !== value) actor.complain(`${value} was written, and another came: ${pair[0]}`);
    pair[1] = value;
  };
  const write = (nests = true) => {
    actor.alone(
      COLUMNS.WRITE,
      () => rw.abandoned,
      () => rw.markConsistent(),
      () => {
        change();
        if (nests) actor.nest(exports);
      },
    );
  };
  return { read, write };
}

/** Turns a read hold into one that writes, and back; `upgrade` and `downgrade` belong to the hold. */
function upgraded(actor, write, hold) {
  actor.note(COLUMNS.WRITE, 0, 1);
  actor.note(COLUMNS.READ, -1, 0);
  if (hold.tryUpgrade()) {
    actor.note(COLUMNS.WRITE, 1, 0);
    write(false);
    actor.note(COLUMNS.WRITE, -1, 0);
    hold.downgrade();
  }
  actor.note(COLUMNS.READ, 1, 0);
  actor.note(COLUMNS.WRITE, 0, -1);
}

exports.bodies = bodies;

exports.turns = (actor) => {
  const { rw } = actor.places;
  const { read, write } = bodies(actor);
  const reads = (acquire, body, release) => actor.hold(COLUMNS.READ, acquire, body, release);
  const writes = (acquire, release) => actor.hold(COLUMNS.WRITE, acquire, () => write(), release);
  const unlock = () => rw.read.unlock();
  const release = (guard) => guard.unlock();
  return [
    () =>
      reads(
        () => rw.read.lock(),
        () => read(),
        unlock,
      ),
    () =>
      reads(
        () => rw.read.lock(1),
        () => read(),
        unlock,
      ),
    () =>
      reads(
        () => rw.read.lock(),
        () =>
          reads(
            () => rw.read.tryLock(),
            () => read(),
            unlock,
          ),
        unlock,
      ),
    () =>
      reads(
        () => rw.read.acquire(),
        () => read(),
        release,
      ),
    () =>
      reads(
        () => rw.read.tryAcquire(),
        () => read(),
        release,
      ),
    () =>
      reads(
        () => rw.read.acquire(),
        (guard) => upgraded(actor, write, guard),
        release,
      ),
    () =>
      reads(
        () => rw.read.lock(),
        () => upgraded(actor, write, rw),
        unlock,
      ),
    () =>
      actor.run(
        COLUMNS.READ,
        (body) => rw.read.executeLockedSync(body),
        () => read(),
      ),
    () =>
      writes(
        () => rw.write.lock(),
        () => rw.write.unlock(),
      ),
    () =>
      writes(
        () => rw.write.lock(1),
        () => rw.write.unlock(),
      ),
    () => writes(() => rw.write.acquire(), release),
    () => writes(() => rw.write.tryAcquire(), release),
    () =>
      actor.run(
        COLUMNS.WRITE,
        (body) => rw.write.executeLockedSync(body),
        () => write(),
      ),
    () => actor.strikes('write-unlocked') && write(false),
    () => downgraded(actor, () => rw.write.lock(), rw, write, read, unlock),
    () => downgraded(actor, () => rw.write.acquire(), undefined, write, read, release),
  ];
};

/** Writes, then reads under what it is turned into. */
function downgraded(actor, acquire, raw, write, read, release) {
  actor.note(COLUMNS.READ, 0, 1);
  actor.note(COLUMNS.WRITE, 0, 1);
  const got = acquire();
  actor.note(COLUMNS.WRITE, 1, 0);
  write(false);
  actor.note(COLUMNS.WRITE, -1, 0);
  (raw ?? got).downgrade();
  actor.note(COLUMNS.WRITE, 0, -1);
  actor.note(COLUMNS.READ, 1, 0);
  read();
  actor.note(COLUMNS.READ, -1, 0);
  release(got);
  actor.note(COLUMNS.READ, 0, -1);
}

exports.awaited = (actor) => {
  const { rw } = actor.places;
  const look = () => {
    if (actor.places.inside[COLUMNS.WRITE] !== 0 && !rw.abandoned) actor.complain('read beside a writer');
  };
  const { write } = bodies(actor);
  const change = () => write(false);
  const release = (guard) => guard.unlock();
  return [
    () => actor.run(COLUMNS.READ, (body) => rw.read.executeLocked(body), look),
    () => actor.run(COLUMNS.WRITE, (body) => rw.write.executeLocked(body), change),
    () => actor.holdAsync(COLUMNS.READ, () => rw.read.acquireAsync(), look, release),
    () =>
      actor.holdAsync(
        COLUMNS.READ,
        () => rw.read.lockAsync(1),
        look,
        () => rw.read.unlock(),
      ),
    () => actor.holdAsync(COLUMNS.WRITE, () => rw.write.acquireAsync(), change, release),
    () =>
      actor.holdAsync(
        COLUMNS.WRITE,
        () => rw.write.lockAsync(1),
        change,
        () => rw.write.unlock(),
      ),
  ];
};

/** Seldom: no writer gets in then, and no reader behind one. */
exports.survives = 8;

exports.survive = async ({ rw }) => {
  const guard = await rw.read.acquireAsync();
  return { primitive: rw, release: () => guard.unlock() };
};

exports.check = (view) => {
  const { rw } = view.places;
  const { word, held } = lookAt(view, rw, 'shared');
  const readers = (word & SHARED) === 0 ? 0 : word & LOW;
  const writer = (word & SHARED) === 0 ? word & LOW : 0;
  view.expect(readers === held && rw.readers === held, `rwlock: not ${held} readers`, () => rw.inspect());
  expectMark(view, 'rwlock', COLUMNS.WRITE, writer !== 0 || (word & ABANDONED) !== 0);
};

exports.finish = async ({ expect, places: { inside, rw }, limit }) => {
  const writer = await rw.write.acquireAsync(limit);
  expect(inside[COLUMNS.WRITE] === 0 || writer.abandoned, 'rwlock: a writer ended inside, and there is no mark');
  if (writer.abandoned) rw.markConsistent();
  writer.downgrade();
  expect(writer.tryUpgrade(), 'rwlock: the only reader could not come to write');
  writer.unlock();
  const word = new Int32Array(rw.buffer, rw.byteOffset, 1)[0];
  expect(word === 0, `rwlock: not free at the end: 0x${(word >>> 0).toString(16)}`);
};
