// Waits in sessions that block. The sessions are the test: what they answer, that they end, and that none can be had.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const clock = require('../../lib/load/clock.js');
const { Releases } = require('../../lib/stores/retry.js');
const { Waits } = require('../../lib/stores/sessions/waits.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const KEY = 'a key';
const ticketOf = () => ({ isShared: false, isCancelled: false });

/** A session that waits until the test says what comes of that. */
class Blocking {
  isOver = false;
  isFresh = true;
  waiting = null;
  held = new Map();
  /** What the server was asked for, and how the session ended. */
  log = [];
  /** What `unlockAll()` fails with, one after the other. */
  failures = [];
  #waits;
  #locking = null;

  constructor(waits) {
    this.#waits = waits;
  }

  get isIdle() {
    return this.held.size === 0 && this.waiting === null;
  }

  lock(key) {
    this.log.push(`lock ${key}`);
    this.#locking = deferred();
    return this.#locking.promise;
  }

  /** The server has granted what it waits for, or answers with an error. */
  answer(error) {
    if (error === undefined) this.#locking.resolve();
    else this.#locking.reject(error);
  }

  hold(key) {
    this.held.set(key, 1);
  }

  async unlockAll(key) {
    this.log.push(`unlock all of ${key}`);
    if (this.failures.length > 0) throw this.failures.shift();
  }

  isInterruption(error) {
    return error === INTERRUPTED;
  }

  ended() {
    return new Error('It has ended.');
  }

  end(error, loss) {
    if (this.isOver) return;
    this.isOver = true;
    this.log.push(loss === 0 ? 'closed' : `ended: ${error?.message}`);
    this.#locking?.reject(this.ended());
    this.#waits().ended(this);
  }
}

const INTERRUPTED = new Error('The server has ended a wait.');
const REFUSED = new Error('The server refuses.');

/** Waits with so many sessions, each of which opens when `opening` is settled, or at once. */
function create(t, limit = 1, isOpen = true) {
  const it = { sessions: [], opening: [], interrupted: [] };
  it.home = {
    take: async () => false,
    interrupt: async (session) => {
      it.interrupted.push(session);
    },
  };
  const open = async () => {
    const opened = deferred();
    it.opening.push(opened);
    if (isOpen) opened.resolve();
    await opened.promise;
    const session = new Blocking(() => it.waits);
    it.sessions.push(session);
    return session;
  };
  it.connect = async () => it.home;
  it.releases = new Releases();
  it.waits = new Waits({
    limit,
    open,
    home: () => it.home,
    connect: () => it.connect(),
    releases: it.releases,
    heartbeat: 60_000,
  });
  t.after(() => it.waits.close());
  return it;
}

/** The outcome of a promise: what it is fulfilled with, or the error. */
const outcomeOf = (promise) =>
  promise.then(
    (value) => value,
    (error) => error,
  );

/** One that waits in a session. */
async function createBlocked(t) {
  const it = create(t);
  const ticket = ticketOf();
  const over = outcomeOf(it.waits.wait(ticket, KEY));
  await turns();
  const [session] = it.sessions;
  assert.deepEqual(session.log, [`lock ${KEY}`]);
  session.log.length = 0;
  const cancel = () => {
    ticket.isCancelled = true;
    it.waits.cancel(ticket);
  };
  return { ...it, it, session, over, cancel };
}

test(
  'no more sessions are opened than there may be, nor than wait, nor than may block at a time',
  watched(async (t) => {
    for (const isOpen of [true, false]) {
      for (const [limit, count, expected] of [
        [9, 1, 1],
        [1, 3, 1],
        [2, 3, 2],
        [9, 3, 3],
        [9, 7, 4],
      ]) {
        const { waits, opening } = create(t, limit, isOpen);
        for (let index = 0; index < count; index++) waits.wait(ticketOf(), `key ${index}`);
        await turns();
        assert.equal(opening.length, expected, `${count} wait, with ${limit} sessions`);
      }
    }
  }),
);

test(
  'where no session can be opened all that wait are told why, and the next to wait tries again',
  watched(async (t) => {
    const { waits, opening, sessions } = create(t, 1, false);
    for (let round = 0; round < 2; round++) {
      const both = ['one', 'other'].map((key) => outcomeOf(waits.wait(ticketOf(), key)));
      await turns();
      assert.equal(opening.length, 1);
      opening.pop().reject(REFUSED);
      assert.deepEqual(await Promise.all(both), [REFUSED, REFUSED]);
    }
    const over = waits.wait(ticketOf(), KEY);
    await turns();
    opening.pop().resolve();
    await turns();
    sessions[0].answer();
    assert.equal(await over, sessions[0]);
  }),
);

test(
  'where one session can be opened, and a second cannot, all that wait take turns in the first',
  watched(async (t) => {
    const { waits, opening, sessions } = create(t, 2, false);
    const [one, other] = ['one', 'other'].map((key) => waits.wait(ticketOf(), key));
    await turns();
    opening[0].resolve();
    await turns();
    opening[1].reject(REFUSED);
    await turns();
    const [session] = sessions;
    session.answer();
    assert.equal(await one, session);
    session.held.clear();
    waits.freed(session);
    await turns();
    session.answer();
    assert.equal(await other, session);
  }),
);

test(
  'a session that opens after its store was closed is closed as well',
  watched(async (t) => {
    const { waits, opening, sessions } = create(t, 1, false);
    const over = waits.wait(ticketOf(), KEY);
    await turns();
    waits.close();
    assert.equal(await over, null);
    opening[0].resolve();
    await turns();
    assert.deepEqual(sessions[0].log, ['closed']);
  }),
);

test(
  'a wait that the server refuses fails with that, holds nothing, and leaves its session to the next',
  watched(async (t) => {
    const { waits, session, over } = await createBlocked(t);
    session.answer(REFUSED);
    assert.equal(await over, REFUSED);
    assert.deepEqual(session.log, [`unlock all of ${KEY}`]);
    const next = waits.wait(ticketOf(), 'next');
    await turns();
    session.answer();
    assert.equal(await next, session);
  }),
);

test(
  'a wait that is interrupted, though it is wanted, goes on',
  watched(async (t) => {
    const { session, over } = await createBlocked(t);
    session.answer(INTERRUPTED);
    await turns();
    assert.deepEqual(session.log, [`unlock all of ${KEY}`, `lock ${KEY}`]);
    session.answer();
    assert.equal(await over, session);
  }),
);

for (const [what, failures, tries, isLost] of [
  ['an interruption', [INTERRUPTED], 2, false],
  ['two interruptions', [INTERRUPTED, INTERRUPTED], 3, false],
  ['interruptions only', Array(9).fill(INTERRUPTED), 3, true],
  ['a refusal', [REFUSED], 1, true],
]) {
  test(
    `a wait that is cancelled, of which the server's release fails by ${what}: ${isLost ? 'its session is ended' : 'it is released then'}`,
    watched(async (t) => {
      const { session, over, cancel, interrupted } = await createBlocked(t);
      session.failures = failures;
      cancel();
      assert.deepEqual(interrupted, [session]);
      session.answer(INTERRUPTED);
      assert.equal(await over, null);
      assert.equal(session.log.filter((each) => each === `unlock all of ${KEY}`).length, tries);
      assert.equal(session.isOver, isLost);
    }),
  );
}

test(
  'an interruption that came too early is said again, and one that came too late takes nothing',
  watched(async (t, threads) => {
    const { session, over, cancel, interrupted } = await createBlocked(t);
    cancel();
    await threads.until('it was said again', () => interrupted.length > 2);
    // Granted all the same.
    session.answer();
    assert.equal(await over, null);
    assert.deepEqual(session.log, [`unlock all of ${KEY}`]);
    assert.deepEqual([session.isIdle, session.isOver], [true, false]);
  }),
);

test(
  'a wait that was interrupted, and is cancelled while what it may hold is unlocked, is over',
  watched(async (t) => {
    const { session, over, cancel } = await createBlocked(t);
    session.unlockAll = async () => cancel();
    session.answer(INTERRUPTED);
    await turns();
    assert.deepEqual([session.log, session.isIdle], [[], true]);
    assert.equal(await over, null);
  }),
);

test(
  'a wait that made room, and goes on in the same session, is not interrupted again for that',
  watched(async (t) => {
    const timers = new Set();
    t.mock.method(clock, 'setTimeout', (act) => {
      const timer = { act, unref: () => timer };
      timers.add(timer);
      return timer;
    });
    t.mock.method(clock, 'clearTimeout', (timer) => timers.delete(timer));
    let takeTurns;
    t.mock.method(clock, 'setInterval', (act, ms) => {
      if (ms < 1000) takeTurns = act;
      return { unref() {} };
    });
    const { waits, session, interrupted } = await createBlocked(t);
    const other = ticketOf();
    const withdrawn = waits.wait(other, 'other');
    const now = clock.now() + 60_000;
    t.mock.method(clock, 'now', () => now);
    takeTurns();
    assert.deepEqual(interrupted, [session]);
    waits.cancel(other);
    assert.equal(await withdrawn, null);
    session.answer(INTERRUPTED);
    await turns();
    assert.deepEqual(session.log, [`unlock all of ${KEY}`, `lock ${KEY}`]);
    for (const { act } of [...timers]) act();
    assert.deepEqual(interrupted, [session]);
  }),
);

for (const [what, spoil] of Object.entries({
  'is not there': (it) => {
    it.home = null;
  },
  'cannot interrupt it': (it) => {
    it.home.interrupt = () => Promise.reject(REFUSED);
  },
})) {
  test(
    `a wait that is cancelled while the session that never blocks ${what} ends with its session`,
    watched(async (t) => {
      const { it, session, over, cancel } = await createBlocked(t);
      spoil(it);
      cancel();
      assert.equal(await over, null);
      assert.equal(session.isOver, true);
    }),
  );
}

test(
  'a release that failed: a session that waits releases all that it may hold, any other is ended, and its locks with it',
  watched(async (t) => {
    const { waits, session, over } = await createBlocked(t);
    session.answer();
    await over;
    await waits.releaseFailed(session, KEY, REFUSED);
    assert.deepEqual([session.log, session.isOver], [[`unlock all of ${KEY}`], false]);
    const home = new Blocking(() => waits);
    await waits.releaseFailed(home, KEY, REFUSED);
    assert.deepEqual(home.log, ['ended: The server refuses.']);
    // What is over has nothing to release.
    await waits.releaseFailed(home, KEY, REFUSED);
    assert.deepEqual(home.log, ['ended: The server refuses.']);
  }),
);

test(
  'a wait that was granted after long is asked about once more, so that what it holds counts from now; a young one is not',
  watched(async (t) => {
    for (const isFresh of [true, false]) {
      const { session, over } = await createBlocked(t);
      const answer = deferred();
      session.isFresh = isFresh;
      session.query = (text) => {
        session.log.push(text);
        return answer.promise;
      };
      session.answer();
      await turns();
      assert.deepEqual([session.log, session.held.size], isFresh ? [[], 1] : [['select 1'], 0]);
      answer.resolve();
      assert.equal(await over, session);
      assert.equal(session.held.size, 1);
    }
    const { session, over } = await createBlocked(t);
    session.isFresh = false;
    session.query = () => Promise.reject(REFUSED);
    session.answer();
    assert.equal(await over, REFUSED);
    assert.deepEqual([session.log, session.isIdle], [[`unlock all of ${KEY}`], true]);
  }),
);

test(
  'those that wait have their turn in the order in which they came, and one that is withdrawn is passed over',
  watched(async (t) => {
    const { waits, sessions } = create(t, 1);
    const tickets = Array.from({ length: 4 }, ticketOf);
    const over = tickets.map((ticket, index) => waits.wait(ticket, `key ${index}`));
    await turns();
    tickets[1].isCancelled = true;
    waits.cancel(tickets[1]);
    assert.equal(await over[1], null);
    const [session] = sessions;
    for (const index of [0, 2, 3]) {
      session.answer();
      assert.equal(await over[index], session);
      session.held.clear();
      waits.freed(session);
      await turns();
    }
    assert.deepEqual(session.log, ['lock key 0', 'lock key 2', 'lock key 3']);
    assert.deepEqual([waits.size, waits.ids], [1, [session.id]]);
  }),
);

test(
  'a session that the server does not know to wait is ended at the second look; one that it knows again stays',
  watched(async (t) => {
    let look;
    t.mock.method(clock, 'setInterval', (act, ms) => {
      if (ms === 60_000) look = act;
      return { unref: () => act };
    });
    // Whole milliseconds, whose sums are exact.
    let now = Math.ceil(clock.now());
    t.mock.method(clock, 'now', () => now);
    const { it, session, over } = await createBlocked(t);
    session.id = 7;
    let known = [];
    const asked = [];
    it.home.blockedAmong = async (ids) => {
      asked.push(ids);
      return known;
    };
    const lookOnce = async (ids) => {
      known = ids;
      look();
      await turns();
      return session.isOver;
    };
    now += 59_999;
    assert.deepEqual([await lookOnce([]), asked], [false, []], 'it has just begun to wait');
    now += 1;
    assert.equal(await lookOnce([8]), false);
    assert.equal(await lookOnce([7]), false);
    assert.equal(await lookOnce([]), false);
    it.home.blockedAmong = () => Promise.reject(REFUSED);
    assert.equal(await lookOnce([]), false, 'nobody knows');
    it.home.blockedAmong = async () => [];
    assert.equal(await lookOnce([]), true);
    assert.deepEqual([asked, session.log], [[[7], [7], [7]], ['ended: The server does not know of a wait.']]);
    assert.match((await over).message, /It has ended/);
    // The next wait has looks of its own.
    const next = await createBlocked(t);
    next.it.home.blockedAmong = async () => [];
    now += 60_000;
    for (const isOver of [false, true]) {
      look();
      await turns();
      assert.equal(next.session.isOver, isOver);
    }
    await next.over;
  }),
);

/**
 * A clock that the test has: `it.takeTurns()` is a round of turns, `it.look()` looks after those that block, `it.now` is the time, and
 * `it.after(ms)` has what is to be done after that.
 */
function ownClock(t) {
  const it = { now: Math.ceil(clock.now()), rounds: 0, cleared: [] };
  const timers = new Set();
  t.mock.method(clock, 'now', () => it.now);
  t.mock.method(clock, 'setTimeout', (act, ms) => {
    const timer = { act, ms, unref: () => timer };
    timers.add(timer);
    return timer;
  });
  t.mock.method(clock, 'clearTimeout', (timer) => timers.delete(timer));
  t.mock.method(clock, 'setInterval', (act, ms) => {
    if (ms === 200) {
      it.takeTurns = act;
      it.rounds += 1;
    } else {
      it.look = act;
    }
    return { unref: () => ms };
  });
  t.mock.method(clock, 'clearInterval', (ms) => it.cleared.push(ms));
  it.after = (ms) => [...timers].filter((timer) => timer.ms === ms).map(({ act }) => act);
  return it;
}

test(
  'a session in which one waits makes room after a second, not before, and goes to those that queue in the order of their coming',
  watched(async (t) => {
    const own = ownClock(t);
    const { waits, session, interrupted } = await createBlocked(t);
    for (const key of ['second', 'third']) waits.wait(ticketOf(), key);
    const makesRoomAfterASecond = () => {
      own.now += 999;
      own.takeTurns();
      assert.deepEqual(interrupted, []);
      own.now += 1;
      own.takeTurns();
      assert.deepEqual(interrupted, [session]);
    };
    makesRoomAfterASecond();
    for (const key of ['second', 'third', KEY]) {
      session.log.length = 0;
      session.answer(INTERRUPTED);
      await turns();
      assert.equal(session.log.at(-1), `lock ${key}`);
      interrupted.length = 0;
      // Each has a second of its own.
      makesRoomAfterASecond();
    }
  }),
);

test(
  'those that queue are tried 32 at a time, in rounds, each once at a time; one that is free is had by that',
  watched(async (t) => {
    const own = ownClock(t);
    const { it, waits } = await createBlocked(t);
    const modes = [];
    let tried = [];
    const first = deferred();
    it.home.take = async (key, isShared) => {
      tried.push(Number(key));
      modes.push(isShared);
      if (key === '0') return first.promise;
      return key === '40';
    };
    const over = Array.from({ length: 65 }, (_, index) =>
      waits.wait({ ...ticketOf(), isShared: index % 2 === 1 }, String(index)),
    );
    const round = async () => {
      tried = [];
      own.takeTurns();
      await turns();
      return tried;
    };
    const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);
    assert.deepEqual(await round(), range(0, 32));
    assert.deepEqual(modes.slice(0, 4), [false, true, false, true]);
    assert.deepEqual(await round(), range(32, 64));
    assert.equal(await over[40], it.home);
    // As many as two rounds have are left: the front is next.
    assert.deepEqual(await round(), range(1, 32));
    first.resolve(false);
    await turns();
    assert.deepEqual(
      await round(),
      range(32, 65).filter((index) => index !== 40),
    );
    assert.deepEqual(await round(), range(0, 32));
  }),
);

test(
  'what a try gets that nobody wants any more is given back, and who asks for it comes after that',
  watched(async (t) => {
    const own = ownClock(t);
    const { it, waits, releases } = await createBlocked(t);
    const [taken, unlocked] = [deferred(), deferred()];
    const log = [];
    Object.assign(it.home, {
      take: () => taken.promise,
      letGo: (key) => log.push(`let go ${key}`),
      unlock(key, isShared) {
        log.push(`unlock ${key} ${isShared}`);
        return unlocked.promise;
      },
    });
    const ticket = { isShared: true, isCancelled: false };
    const over = waits.wait(ticket, 'other');
    own.takeTurns();
    waits.cancel(ticket);
    assert.equal(await over, null);
    let isOver = false;
    releases.over('other').then(() => {
      isOver = true;
    });
    taken.resolve(true);
    await turns();
    assert.deepEqual([log, isOver], [['let go other', 'unlock other true'], false]);
    unlocked.resolve(true);
    await turns();
    assert.equal(isOver, true);
  }),
);

test(
  'a session that nothing uses for ten seconds is closed, and one that is in use then is not',
  watched(async (t) => {
    const own = ownClock(t);
    const { waits, session, over } = await createBlocked(t);
    const idle = () => {
      const acts = own.after(10_000);
      assert.ok(acts.length < 2, 'it counts from the last use');
      acts[0]();
    };
    idle();
    assert.equal(session.isOver, false, 'one waits in it');
    session.answer();
    await over;
    idle();
    assert.equal(session.isOver, false, 'it holds');
    session.held.clear();
    waits.freed(session);
    idle();
    assert.equal(session.log.at(-1), 'closed');
    assert.equal(waits.size, 0);
    const next = waits.wait(ticketOf(), KEY);
    await turns();
    assert.equal(own.after(10_000).length, 2, 'another session has its own time');
    waits.close();
    assert.equal(await next, null);
  }),
);

test(
  'one that made room and is withdrawn in the queue is over, and the one that waits in its session waits on',
  watched(async (t) => {
    const own = ownClock(t);
    const { waits, session, interrupted, over, cancel } = await createBlocked(t);
    const second = waits.wait({ ...ticketOf(), isShared: true }, 'second');
    const modes = [];
    const { lock } = session;
    session.lock = (key, isShared) => {
      modes.push([key, isShared]);
      return lock.call(session, key);
    };
    own.now += 1000;
    own.takeTurns();
    session.answer(INTERRUPTED);
    await turns();
    assert.deepEqual([modes, interrupted.length], [[['second', true]], 1]);
    cancel();
    assert.equal(await over, null);
    assert.equal(interrupted.length, 1);
    session.answer();
    assert.equal(await second, session);
  }),
);

test(
  'a session that ends right behind the answer that grants grants nothing, and one that has ended says why',
  watched(async (t) => {
    const one = await createBlocked(t);
    one.session.answer();
    one.session.end(REFUSED);
    assert.match((await one.over).message, /It has ended/);
    const other = await createBlocked(t);
    other.session.isOver = true;
    other.session.answer(REFUSED);
    assert.equal(await other.over, REFUSED);
    assert.deepEqual([one.session.held.size, other.session.held.size], [0, 0]);
  }),
);

test(
  'of a session that has ended nothing is interrupted any more, and a store that is closed opens none',
  watched(async (t) => {
    const own = ownClock(t);
    const { waits, session, interrupted, over, cancel } = await createBlocked(t);
    cancel();
    assert.equal(interrupted.length, 1);
    const [again] = own.after(200);
    session.end(REFUSED);
    assert.equal(await over, null);
    again();
    assert.equal(interrupted.length, 1);
    const closed = create(t);
    closed.waits.close();
    closed.waits.wait(ticketOf(), KEY);
    assert.deepEqual([closed.opening.length, waits.size], [0, 0]);
  }),
);

test(
  'turns end with the queue, and begin again with the next that queues',
  watched(async (t) => {
    const own = ownClock(t);
    const { waits, session, over } = await createBlocked(t);
    own.cleared.length = 0;
    own.takeTurns();
    assert.deepEqual(own.cleared, [200]);
    const { rounds } = own;
    waits.wait(ticketOf(), 'second');
    assert.equal(own.rounds, rounds + 1);
    own.now += 1000;
    own.takeTurns();
    session.answer(INTERRUPTED);
    await turns();
    assert.equal(session.log.at(-1), 'lock second');
    own.cleared.length = 0;
    waits.close();
    assert.equal(await over, null);
    assert.deepEqual(own.cleared, [200, 60_000]);
  }),
);

test(
  'what the server does not know of a wait says nothing of the next one in that session, nor of a lock that was granted meanwhile',
  watched(async (t) => {
    const own = ownClock(t);
    const { it, session, over } = await createBlocked(t);
    // There need not be a home: one is connected for that.
    const { home } = it;
    it.connect = async () => home;
    it.home = null;
    const answers = [];
    home.blockedAmong = () => {
      answers.push(deferred());
      return answers.at(-1).promise;
    };
    const look = async () => {
      own.now += 60_000;
      own.look();
      await turns();
    };
    const say = async () => {
      answers.pop().resolve([]);
      await turns();
    };
    await look();
    await say();
    // It waits anew.
    session.answer(INTERRUPTED);
    await turns();
    await look();
    await say();
    assert.equal(session.isOver, false);
    await look();
    session.answer();
    assert.equal(await over, session);
    await say();
    assert.equal(session.isOver, false);
  }),
);
