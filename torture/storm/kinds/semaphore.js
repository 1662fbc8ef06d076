// Whoever has a permit has a seat, of as many as there are permits.

const { COLUMNS, PERMITS } = require('../memory.js');
const { lookAt } = require('../checks.js');

exports.name = 'semaphore';

/** Takes a free seat, or that of a worker that is being terminated: if that still runs, it will miss it. */
function sit(actor) {
  const { doomed, seats } = actor.places;
  for (const isFree of [(seat) => seat === 0, (seat) => seat !== 0 && Atomics.load(doomed, seat - 1) !== 0]) {
    for (let index = 0; index < seats.length; index++) {
      const seat = Atomics.load(seats, index);
      if (isFree(seat) && Atomics.compareExchange(seats, index, seat, actor.name) === seat) return index;
    }
  }
  actor.complain(`${PERMITS} permits, and no seat is free: ${seats.join()}`);
  return -1;
}

function rise(actor, index) {
  const { seats } = actor.places;
  if (index >= 0 && Atomics.compareExchange(seats, index, actor.name, 0) !== actor.name) {
    actor.complain(`worker ${seats[index]} has taken its seat`);
  }
}

/** With `count` permits. */
function inside(actor, count, nests) {
  const taken = Array.from({ length: count }, () => sit(actor));
  actor.linger();
  if (nests) actor.nest(exports);
  for (const index of taken) rise(actor, index);
  if (actor.strikes('give-back-twice')) actor.places.semaphore.release();
}

function release(actor, permits) {
  if (actor.strikes('lose-permits')) permits.forget();
  // In parts, now and then.
  if (permits.count > 1 && actor.below(2) === 0) permits.release(1);
  permits.release();
}

exports.turns = (actor) => {
  const { semaphore } = actor.places;
  const some = () => 1 + actor.below(PERMITS);
  const hold = (acquire) =>
    actor.hold(
      COLUMNS.PERMITS,
      acquire,
      ({ count }) => inside(actor, count, true),
      (permits) => release(actor, permits),
    );
  return [
    () => hold(() => semaphore.acquire()),
    () => hold(() => semaphore.acquire(some())),
    () => hold(() => semaphore.tryAcquire(some())),
    () => hold(() => acquireFor(semaphore, some())),
    () =>
      actor.run(
        COLUMNS.PERMITS,
        (body) => semaphore.executeSync(body),
        () => inside(actor, 1, true),
      ),
  ];
};

/** For a millisecond; null if there were none. */
function acquireFor(semaphore, count) {
  try {
    return semaphore.acquire(count, 1);
  } catch (error) {
    if (error.code !== 'ERR_LOCK_TIMEOUT') throw error;
    return null;
  }
}

exports.awaited = (actor) => {
  const { semaphore } = actor.places;
  const count = 1 + actor.below(PERMITS);
  return [
    () =>
      actor.holdAsync(
        COLUMNS.PERMITS,
        () => semaphore.acquireAsync(count),
        () => inside(actor, count, false),
        (permits) => release(actor, permits),
      ),
    () =>
      actor.run(
        COLUMNS.PERMITS,
        (body) => semaphore.execute(body, { permits: count }),
        () => inside(actor, count, false),
      ),
  ];
};

/** Seldom: whoever wants all permits waits then, and all behind it. */
exports.survives = 8;

exports.survive = async ({ semaphore }) => {
  const permits = await semaphore.acquireAsync();
  return { primitive: semaphore, release: () => permits.release() };
};

exports.check = (view) => {
  const { semaphore } = view.places;
  const { word, held } = lookAt(view, semaphore, 'permits');
  view.expect(word === held, `semaphore: not ${held} of ${PERMITS} permits are taken`, () => semaphore.inspect());
  view.expect(semaphore.available === PERMITS - held, `semaphore: ${semaphore.available} are available`);
};

exports.finish = async ({ expect, places: { semaphore }, limit }) => {
  const all = await semaphore.acquireAsync(PERMITS, limit);
  expect(semaphore.tryAcquire() === null, 'semaphore: one permit more than there are');
  all.release();
  expect(semaphore.available === PERMITS, `semaphore: ${semaphore.available} permits at the end`);
};
