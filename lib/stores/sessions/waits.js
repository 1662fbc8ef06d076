// Waits in the server's own queue. A session that blocks there can do nothing else: unlock nothing, answer no heartbeat. So those
// that wait hold nothing, and are few; further names take turns.

const clock = require('../../load/clock.js');

/** The number of sessions that block at the same time. */
const MOST = 4;
/** The time for which one blocks while others queue here, the time between tries of others, in milliseconds, and their number. */
const TURN = 1000;
const TRY_EVERY = 200;
const TRIES = 32;
/** The time for which a session without use stays. */
const IDLE = 10_000;

class Waits {
  #limit;
  #open;
  #home;
  #connect;
  #releases;
  #heartbeat;
  #sessions = new Set();
  #opening = 0;
  /** `{ ticket, key, resolve, reject }`, in order. */
  #queue = [];
  #turns = null;
  /** The place in the queue of those that are tried next. */
  #nextTry = 0;
  #looks = null;
  #isClosed = false;

  /**
   * At most `limit` sessions; `open()` makes one; `home()` is the session that never blocks, and `connect()` a promise of it. Tries
   * that are under way are among the `releases`: what one gets, and nobody wants any more, is unlocked.
   */
  constructor({ limit, open, home, connect, releases, heartbeat }) {
    this.#connect = connect;
    this.#releases = releases;
    this.#heartbeat = heartbeat;
    this.#limit = limit;
    this.#open = open;
    this.#home = home;
  }

  get size() {
    return this.#sessions.size;
  }

  get ids() {
    return Array.from(this.#sessions, ({ id }) => id);
  }

  /** A promise of the session that holds the key; of null once it is cancelled. */
  wait(ticket, key) {
    let entry;
    const over = new Promise((resolve, reject) => {
      entry = { ticket, key, resolve, reject, session: null, isTried: false };
    });
    ticket.place = { entry };
    this.#queue.push(entry);
    this.#pump();
    return over;
  }

  /** Ends its wait, if it does. */
  cancel(ticket) {
    const { entry } = ticket.place ?? {};
    if (entry === undefined) return;
    if (entry.session === null) {
      this.#queue = this.#queue.filter((other) => other !== entry);
      entry.resolve(null);
    } else {
      this.#interrupt(entry.session);
    }
  }

  /** Its last hold was released. */
  freed(session) {
    if (!this.#sessions.has(session) || !session.isIdle) return;
    this.#rest(session);
    this.#pump();
  }

  /** A cancel that came too late for a wait may hit a release: then it is not known whether that was done. */
  async releaseFailed(session, key, error) {
    if (session.isOver) return;
    // One that waits holds nothing else.
    if (this.#sessions.has(session)) await unlockAll(session, key);
    else session.end(error);
  }

  ended(session) {
    if (!this.#sessions.delete(session)) return;
    this.#pump();
  }

  close() {
    this.#isClosed = true;
    clock.clearInterval(this.#turns);
    clock.clearInterval(this.#looks);
    for (const entry of this.#queue.splice(0)) entry.resolve(null);
    for (const session of this.#sessions) session.end(undefined, 0);
  }

  #rest(session) {
    clock.clearTimeout(session.idleTimer);
    session.idleTimer = clock
      .setTimeout(() => {
        if (session.isIdle) session.end(undefined, 0);
      }, IDLE)
      .unref();
  }

  #pump() {
    if (this.#isClosed) return;
    let blocked = this.#opening;
    for (const session of this.#sessions) blocked += session.waiting === null ? 0 : 1;
    while (this.#queue.length > 0 && blocked < MOST) {
      const idle = Array.from(this.#sessions).find((session) => session.isIdle && !session.isOver);
      if (idle !== undefined) {
        blocked += 1;
        this.#block(idle, this.#queue.shift());
      } else if (this.#sessions.size + this.#opening < this.#limit && this.#opening < this.#queue.length) {
        blocked += 1;
        this.#add();
      } else {
        break;
      }
    }
    if (this.#queue.length > 0 && this.#turns === null) {
      this.#turns = clock.setInterval(() => this.#takeTurns(), TRY_EVERY).unref();
    }
  }

  async #add() {
    this.#opening += 1;
    try {
      const session = await this.#open();
      this.#opening -= 1;
      if (this.#isClosed) {
        session.end(undefined, 0);
        return;
      }
      this.#sessions.add(session);
      this.#rest(session);
    } catch (error) {
      this.#opening -= 1;
      // Others may do; without any, those who wait begin again.
      if (this.#sessions.size === 0) for (const entry of this.#queue.splice(0)) entry.reject(error);
      return;
    }
    this.#pump();
  }

  async #block(session, entry) {
    session.waiting = entry;
    session.blockedAt = clock.now();
    session.isInterrupted = false;
    entry.session = session;
    entry.missed = 0;
    this.#looks ??= clock.setInterval(() => this.#lookAfter(), this.#heartbeat).unref();
    let failure = null;
    try {
      await session.lock(entry.key, entry.ticket.isShared);
      // It may have waited for long: what it holds counts from an answer of now.
      if (!session.isFresh) await session.query('select 1');
    } catch (error) {
      failure = error;
    }
    // It may wait for the same again, in this session: that is another wait.
    clock.clearTimeout(session.interruption);
    session.isInterrupted = true;
    if (failure === null && !entry.ticket.isCancelled && !session.isOver) {
      session.waiting = null;
      entry.session = null;
      session.hold(entry.key);
      entry.resolve(session);
      this.#pump();
      return;
    }
    // Whatever the error says: a wait that was cancelled, or ran out of time, may hold the lock.
    if (!session.isOver) await unlockAll(session, entry.key);
    session.waiting = null;
    entry.session = null;
    // Meanwhile, too, it may have been cancelled.
    if (entry.ticket.isCancelled || this.#isClosed) entry.resolve(null);
    else if (session.isOver) entry.reject(failure ?? session.ended());
    else if (session.isInterruption(failure)) this.#queue.push(entry);
    else entry.reject(failure);
    if (!session.isOver) this.#rest(session);
    this.#pump();
  }

  /** Ends the wait in a session. Too late, it does nothing; too early, the server forgets it: so it is said again. */
  #interrupt(session) {
    if (session.isInterrupted || session.waiting === null) return;
    session.isInterrupted = true;
    session.interruption = clock
      .setTimeout(() => {
        if (session.isOver) return;
        session.isInterrupted = false;
        this.#interrupt(session);
      }, TRY_EVERY)
      .unref();
    const home = this.#home();
    if (home === null) session.end(session.ended());
    else home.interrupt(session).catch(() => session.end());
  }

  /**
   * Whether the server knows of those that block. Of a question that has not arrived, and of an answer that does not, the connection
   * tells nothing for a quarter of an hour.
   */
  async #lookAfter() {
    const now = clock.now();
    const blocked = [];
    for (const session of this.#sessions) {
      if (session.waiting !== null && now - session.blockedAt >= this.#heartbeat)
        blocked.push([session, session.waiting]);
    }
    if (blocked.length === 0) return;
    let known;
    try {
      const home = await this.#connect();
      known = new Set(await home.blockedAmong(blocked.map(([{ id }]) => id)));
    } catch {
      return;
    }
    for (const [session, entry] of blocked) {
      if (session.waiting !== entry) continue;
      // The answer may be on its way.
      entry.missed = known.has(session.id) ? 0 : entry.missed + 1;
      if (entry.missed > 1) session.end(new Error('The server does not know of a wait.'));
    }
  }

  /** Serves those that have no session to block in: the home tries for them, and those that block make room. */
  #takeTurns() {
    if (this.#queue.length === 0) {
      clock.clearInterval(this.#turns);
      this.#turns = null;
      return;
    }
    const now = clock.now();
    for (const session of this.#sessions) {
      if (session.waiting !== null && now - session.blockedAt >= TURN) this.#interrupt(session);
    }
    if (this.#nextTry >= this.#queue.length) this.#nextTry = 0;
    const home = this.#home();
    for (const entry of home === null ? [] : this.#queue.slice(this.#nextTry, this.#nextTry + TRIES)) {
      if (!entry.isTried) this.#releases.add(entry.key, this.#try(home, entry));
    }
    this.#nextTry += TRIES;
    this.#pump();
  }

  async #try(home, entry) {
    entry.isTried = true;
    try {
      if (!(await home.take(entry.key, entry.ticket.isShared))) return;
      const index = this.#queue.indexOf(entry);
      if (index >= 0) {
        this.#queue.splice(index, 1);
        entry.resolve(home);
      } else {
        // It got a session meanwhile, or is not wanted any more.
        home.letGo(entry.key);
        await home.unlock(entry.key, entry.ticket.isShared);
      }
    } catch {
      // The home has ended, and its end is reported elsewhere.
    } finally {
      entry.isTried = false;
    }
  }
}

/** A late cancel may hit this too. */
async function unlockAll(session, key) {
  for (let tries = 0; tries < 3; tries += 1) {
    try {
      await session.unlockAll(key);
      return;
    } catch (error) {
      if (!session.isInterruption(error)) break;
    }
  }
  session.end(new Error('The server did not release what a cancelled wait may hold.'));
}

exports.Waits = Waits;
