// Locks that a server keeps for a session as long as that lives. The kinds of servers are a table each: what they are called, their
// sessions (session.js), how they are connected, the key of a name, and what to say where two connections do not exclude each other.
//
// One session, the home, tries each name and never blocks. What it does not get at once, another session waits for in the server;
// one that is granted keeps its lock. See waits.js.

const { checkExclusion } = require('./probe.js');
const { Waits } = require('./waits.js');
const { Keeper } = require('../keeper.js');
const { asStoreError, elsewhere, Releases, within } = require('../retry.js');

class SessionKeeper extends Keeper {
  #kind;
  #description;
  #waits;
  /** By key, those of sessions other than the home, in which they come in order, and requests that may come to hold what nobody wants. */
  #releases = new Releases();

  constructor(kind, description, desk) {
    super(kind.store, description, desk);
    this.#kind = kind;
    this.#description = description;
    const { connections, heartbeat } = description.settings;
    this.#waits = new Waits({
      limit: connections - 1,
      open: () => this.#openSession(),
      home: () => this.connection.current,
      connect: () => this.connection.get(),
      releases: this.#releases,
      heartbeat,
    });
  }

  async lockOnce(ticket) {
    const key = this.#keyOf(ticket);
    const home = await this.connection.get();
    // It would wait for itself.
    if (ticket.isCancelled) return null;
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
      if (!ticket.isCancelled) {
        this.counts.grants += 1;
        return { lease: session.lease, fence };
      }
    } catch (error) {
      await this.release(ticket);
      throw error;
    }
    await this.release(ticket);
    return null;
  }

  cancel(ticket) {
    this.#waits.cancel(ticket);
    // It may be granted until then, and unlocks what it was.
    this.#releases.add(this.#keyOf(ticket), ticket.asked);
  }

  /** A promise of its end, if it has to be waited for. */
  release(ticket) {
    if (ticket.place === null) return undefined;
    const { session, key } = ticket.place;
    ticket.place = null;
    if (session.isOver) return undefined;
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
    if (session !== this.connection.current) this.#releases.add(key, released);
    return released;
  }

  /** No lock of a session is ever marked. */
  markConsistent() {}

  async ping() {
    const home = await this.connection.get();
    await home.query('select 1');
  }

  get connections() {
    return (this.connection.current === null ? 0 : 1) + this.#waits.size;
  }

  stats() {
    return { ...super.stats(), roundTripMs: this.connection.current?.roundTrip ?? null };
  }

  /** The holders of these names in other sessions. */
  async query({ names }) {
    const home = await this.connection.get();
    const byKey = new Map(names.map((name) => [this.#keyOf({ name }), name]));
    const holders = await home.holders([...byKey.keys()], [home.id, ...this.#waits.ids]);
    return holders.flatMap(({ key, isShared, id, pid }) => {
      const name = byKey.get(key);
      return name === undefined ? [] : [elsewhere(name, isShared, `${this.#kind.kind}-${id}`, pid)];
    });
  }

  /** Fulfilled once the home has unlocked all that it was asked to before. */
  async flush(home = this.connection.current) {
    if (home !== null) await within(this.settings.connectTimeout, home.query('select 1'));
  }

  close() {
    this.#waits.close();
    const home = this.connection.close();
    const flushed = this.flush(home);
    home?.end(undefined, 0);
    return flushed;
  }

  #keyOf({ name }) {
    return this.#kind.keyOf(this.settings.namespace, name);
  }

  endConnection(session) {
    session.end(undefined, 0);
  }

  async begin() {
    const home = await this.#openSession();
    try {
      await this.#probe(home);
    } catch (error) {
      this.endConnection(home);
      throw asStoreError(this.#kind.store, error);
    }
    return home;
  }

  /** Once for each connection: a failover may lead elsewhere. */
  async #probe(home) {
    const other = await this.#openSession();
    try {
      await within(this.settings.connectTimeout, checkExclusion(this.#kind, home, other));
    } finally {
      this.endConnection(other);
    }
  }

  async #openSession() {
    const { store, Session, connect } = this.#kind;
    const { heartbeat, connectTimeout } = this.settings;
    const session = new Session(store, await connect(this.#description), this.desk, heartbeat, {
      onRenewed: () => {
        this.counts.renewals += 1;
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
    this.counts.losses += session.held.size;
    this.connection.lose(session, error);
    this.#waits.ended(session);
  }
}

exports.SessionKeeper = SessionKeeper;
