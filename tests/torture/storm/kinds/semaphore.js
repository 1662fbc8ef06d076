// A permit comes with a seat, of as many as there are permits: of the semaphore that is barged, and of the fair one.

const { COLUMNS, PERMITS } = require('../memory.js');
const { lookAt } = require('../checks.js');

/** The kind of this name, for the semaphore of this name in the memory, whose seats are in `seatsOf`. */
/** For a millisecond; null if there were none. */
function acquireFor(semaphore, count) {
  try {
    return semaphore.acquire(count, 1);
  } catch (error) {
    if (error.code !== 'ERR_LOCK_TIMEOUT') throw error;
    return null;
  }
}

const kindOf = (name, column, seatsOf) => {
  const kind = { name };

  /** Takes a free seat, or that of a worker that is being terminated: if that still runs, it will miss it. */
  function sit(actor) {
    const { doomed } = actor.places;
    const seats = actor.places[seatsOf];
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
    const seats = actor.places[seatsOf];
    if (index >= 0 && Atomics.compareExchange(seats, index, actor.name, 0) !== actor.name) {
      actor.complain(`worker ${seats[index]} has taken its seat`);
    }
  }

  /** With `count` permits. */
  function inside(actor, count, nests) {
    const taken = Array.from({ length: count }, () => sit(actor));
    actor.linger();
    if (nests) actor.nest(kind);
    for (const index of taken) rise(actor, index);
    if (actor.strikes('give-back-twice')) actor.places[name].release();
  }

  function release(actor, permits) {
    if (actor.strikes(name === 'fair' ? 'lose-fair-permits' : 'lose-permits')) permits.forget();
    // In parts, now and then.
    if (permits.count > 1 && actor.below(2) === 0) permits.release(1);
    permits.release();
  }

  kind.turns = (actor) => {
    const semaphore = actor.places[name];
    const some = () => 1 + actor.below(PERMITS);
    const hold = (acquire) =>
      actor.hold(
        column,
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
          column,
          (body) => semaphore.executeSync(body),
          () => inside(actor, 1, true),
        ),
    ];
  };

  kind.awaited = (actor) => {
    const semaphore = actor.places[name];
    const count = 1 + actor.below(PERMITS);
    return [
      () =>
        actor.holdAsync(
          column,
          () => semaphore.acquireAsync(count),
          () => inside(actor, count, false),
          (permits) => release(actor, permits),
        ),
      () =>
        actor.run(
          column,
          (body) => semaphore.execute(body, { permits: count }),
          () => inside(actor, count, false),
        ),
    ];
  };

  /** Seldom: whoever wants all permits waits then, and all behind it. */
  kind.survives = 8;

  kind.survive = async ({ [name]: semaphore }) => {
    const permits = await semaphore.acquireAsync();
    return { primitive: semaphore, release: () => permits.release() };
  };

  kind.check = (view) => {
    const semaphore = view.places[name];
    const { word, held } = lookAt(view, semaphore, 'permits');
    view.expect(word === held, `${name}: not ${held} of ${PERMITS} permits are taken`, () => semaphore.inspect());
    view.expect(semaphore.available === PERMITS - held, `${name}: ${semaphore.available} are available`);
  };

  kind.finish = async ({ expect, places: { [name]: semaphore }, limit }) => {
    const all = await semaphore.acquireAsync(PERMITS, limit);
    expect(semaphore.tryAcquire() === null, `${name}: one permit more than there are`);
    all.release();
    expect(semaphore.available === PERMITS, `${name}: ${semaphore.available} permits at the end`);
  };

  return kind;
};

exports.semaphore = kindOf('semaphore', COLUMNS.PERMITS, 'seats');
exports.fair = kindOf('fair', COLUMNS.FAIR, 'fairSeats');
