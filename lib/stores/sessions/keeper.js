// Locks that a server keeps for a session as long as that lives. The kinds of servers are a table each: what they are called, their
// sessions (session.js), how they are connected, the key of a name, and what to say where two connections do not exclude each other.
//
// One session, the home, tries each name and never blocks. What it does not get at once, another session waits for in the server;
// one that is granted keeps its lock. See waits.js.

const clock = require('../../load/clock.js');
const { checkExclusion } = require('./probe.js');
const { Waits } = require('./waits.js');
const { asStoreError, Connection, elsewhere, Releases, within } = require('../retry.js');

class SessionKeeper {
  #kind;
  #description;
  #desk;
  /** The connection, of which the current one is the home. */
  #connection;
  #waits;
  /** By key, those of sessions other than the home, in which they come in order. */
  #releases = new Releases();
  #counts = { grants: 0, renewals: 0, losses: 0 };

  constructor(kind, description, desk) {
    this.#kind = kind;
    this.#description = description;
    this.#desk = desk;
    const end = (session) => session.end(undefined, 0);
    this.#connection = new Connection(kind.store, description, () => this.#begin(), end);
    const { connections, heartbeat } = description.settings;
    this.#waits = new Waits({
      limit: connections - 1,
      open: () => this.#openSession(),
      home: () => this.#connection.current,
      connect: () => this.#connection.get(),
      heartbeat,
    });
  }

  lock(ticket) {
    const key = this.#keyOf(ticket);
    return this.#connection.lock(ticket, () => this.#lockOnce(ticket, key));
  }

  async #lockOnce(ticket, key) {
    const home = await this.#connection.get();
    await this.#releases.over(key);
    if (ticket.isCancelled) return null;
    if (await home.take(key, ticket.isShared)) return this.#grant(home, ticket, key);
    if (ticket.isTry || ticket.isCancelled) return null;
    const session = await this.#waits.wait(ticket, key);
    return session === null ? null : this.#grant(session, ticket, key);
  }

  async #grant(session, ticket, key) {
    ticket.place = { session, key };
    try {
      const fence = ticket.wantsFence ? await session.fence() : 0n;
      this.#counts.grants += 1;
      return { lease: session.lease, fence };
    } catch (error) {
      this.release(ticket);
      throw error;
    }
  }

  cancel(ticket) {
    const over = this.#waits.cancel(ticket);
    // It may be granted until then.
    if (over !== undefined) this.#releases.add(this.#keyOf(ticket), over);
  }

  release(ticket) {
    if (ticket.place === null) return;
    const { session, key } = ticket.place;
    ticket.place = null;
    if (session.isOver) return;
    const unlock = session
      .unlock(key, ticket.isShared)
      .catch((error) => this.#waits.releaseFailed(session, key, error).then(() => true));
    const released = unlock.then((done) => {
      session.letGo(key);
      if (session.isOver) return;
      // The session does not hold what it should: nothing that it holds is sure.
      if (!done) session.end(new Error(`${this.#kind.store} did not hold a lock that it had granted.`));
      else this.#waits.freed(session);
    });
    if (session !== this.#connection.current) this.#releases.add(key, released);
  }

  /** No lock of a session is ever marked. */
  markConsistent() {}

  check() {
    return this.#connection.ask(async () => {
      const home = await this.#connection.get();
      const begun = clock.now();
      await home.query('select 1');
      return { roundTripMs: clock.now() - begun };
    });
  }

  stats() {
    const { count, current } = this.#connection;
    return {
      connects: count,
      ...this.#counts,
      connections: (current === null ? 0 : 1) + this.#waits.size,
      roundTripMs: current?.roundTrip ?? null,
    };
  }

  /** The holders of these names in other sessions. */
  async query({ names }) {
    const home = await this.#connection.get();
    const byKey = new Map(names.map((name) => [this.#keyOf({ name }), name]));
    const holders = await home.holders([...byKey.keys()], [home.id, ...this.#waits.ids]);
    return holders.flatMap(({ key, isShared, id, pid }) => {
      const name = byKey.get(key);
      return name === undefined ? [] : [elsewhere(name, isShared, `${this.#kind.kind}-${id}`, pid)];
    });
  }

  /** Fulfilled once the home has unlocked all that it was asked to before. */
  async flush(home = this.#connection.current) {
    if (home !== null) await within(this.#description.settings.connectTimeout, home.query('select 1'));
  }

  close() {
    this.#waits.close();
    const home = this.#connection.close();
    const flushed = this.flush(home);
    home?.end(undefined, 0);
    return flushed;
  }

  #keyOf({ name }) {
    return this.#kind.keyOf(this.#description.settings.namespace, name);
  }

  async #begin() {
    const home = await this.#openSession();
    try {
      await this.#probe(home);
    } catch (error) {
      home.end(undefined, 0);
      throw asStoreError(this.#kind.store, error);
    }
    return home;
  }

  /** Once for each connection: a failover may lead elsewhere. */
  async #probe(home) {
    const other = await this.#openSession();
    try {
      await within(this.#description.settings.connectTimeout, checkExclusion(this.#kind, home, other));
    } finally {
      other.end(undefined, 0);
    }
  }

  async #openSession() {
    const { store, Session, connect } = this.#kind;
    const { heartbeat, connectTimeout } = this.#description.settings;
    const session = new Session(store, await connect(this.#description), this.#desk, heartbeat, {
      onRenewed: () => {
        this.#counts.renewals += 1;
      },
      onEnd: (error) => this.#ended(session, error),
    });
    try {
      await within(connectTimeout, session.begin(heartbeat));
    } catch (error) {
      session.end(error);
      throw asStoreError(this.#kind.store, error);
    }
    return session;
  }

  #ended(session, error) {
    this.#counts.losses += session.held.size;
    this.#connection.lose(session, error);
    this.#waits.ended(session);
  }
}

exports.SessionKeeper = SessionKeeper;
