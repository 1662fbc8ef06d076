// Locks in PostgreSQL: session advisory locks, whose server's queue gives first come, first served among machines.
//
// One session, the home, tries each name and never blocks. What it does not get at once, another session waits for in the server;
// one that is granted keeps its lock. See waits.js.

const { createHash } = require('node:crypto');
const clock = require('../../load/clock.js');
const { Session } = require('./session.js');
const { checkExclusion, standby } = require('./probe.js');
const { connect } = require('./connect.js');
const { Waits } = require('./waits.js');
const { asStoreError, Connection, elsewhere, Releases, within } = require('../retry.js');

const STORE = 'PostgreSQL';

/** The key of a name, as text: eight bytes of a hash of the namespace and the name, which may be any 16-bit units. */
exports.keyOf = (namespace, name) => {
  const space = Buffer.from(namespace, 'utf16le');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(space.length);
  const hash = createHash('sha256').update(length).update(space).update(Buffer.from(name, 'utf16le'));
  return hash.digest().readBigInt64BE(0).toString();
};

class PostgresKeeper {
  #description;
  #desk;
  /** The connection, of which the current one is the home. */
  #connection;
  #waits;
  /** By key, those of sessions other than the home, in which they come in order. */
  #releases = new Releases();
  #counts = { grants: 0, renewals: 0, losses: 0 };

  constructor(description, desk) {
    this.#description = description;
    this.#desk = desk;
    const end = (session) => session.end(undefined, 0);
    this.#connection = new Connection(STORE, description, () => this.#begin(), end);
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
    if (await home.tryLock(key, ticket.isShared)) return this.#grant(home, ticket, key);
    if (ticket.isTry || ticket.isCancelled) return null;
    const session = await this.#waits.wait(ticket, key);
    return session === null ? null : this.#grant(session, ticket, key);
  }

  async #grant(session, ticket, key) {
    ticket.place = { session, key };
    try {
      const fence = ticket.wantsFence ? await fenceOf(session) : 0n;
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
    const suffix = ticket.isShared ? '_shared' : '';
    const unlock = session.query(`select pg_advisory_unlock${suffix}($1) as done`, [key]).then(
      ({ rows }) => rows[0].done === true,
      (error) => this.#waits.releaseFailed(session, error).then(() => true),
    );
    const released = unlock.then((done) => {
      session.letGo(key);
      if (session.isOver) return;
      // The session does not hold what it should: nothing that it holds is sure.
      if (!done) session.end(new Error('PostgreSQL did not hold a lock that it had granted.'));
      else this.#waits.freed(session);
    });
    if (session !== this.#connection.current) this.#releases.add(key, released);
  }

  /** A lock of PostgreSQL is never marked. */
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
    const { rows } = await home.query(
      `select ((classid::bigint << 32) | objid::bigint)::text as key, mode, pid from pg_locks
        where locktype = 'advisory' and objsubid = 1 and granted and not pid = any($1::int[])
          and database = (select oid from pg_database where datname = current_database())`,
      [[home.pid, ...this.#waits.pids]],
    );
    return rows.flatMap(({ key, mode, pid }) => {
      const name = byKey.get(key);
      if (name === undefined) return [];
      return [elsewhere(name, mode === 'ShareLock', `postgres-${pid}`, Number(pid))];
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
    return exports.keyOf(this.#description.settings.namespace, name);
  }

  async #begin() {
    const home = await this.#openSession();
    try {
      if (home.recovers) throw standby();
      await this.#probe(home);
    } catch (error) {
      home.end(undefined, 0);
      throw asStoreError(STORE, error);
    }
    return home;
  }

  /** Once for each connection: a failover may lead elsewhere. */
  async #probe(home) {
    const other = await this.#openSession();
    try {
      await within(this.#description.settings.connectTimeout, checkExclusion(home, other));
    } finally {
      other.end(undefined, 0);
    }
  }

  async #openSession() {
    const client = await connect(this.#description);
    const session = new Session(client, this.#desk, this.#description.settings.heartbeat, {
      onRenewed: () => {
        this.#counts.renewals += 1;
      },
      onEnd: (error) => this.#ended(session, error),
    });
    try {
      Object.assign(session, await within(this.#description.settings.connectTimeout, session.begin()));
    } catch (error) {
      session.end(error);
      throw asStoreError(STORE, error);
    }
    return session;
  }

  #ended(session, error) {
    this.#counts.losses += session.held.size;
    this.#connection.lose(session, error);
    this.#waits.ended(session);
  }
}

/** A number of a transaction that is on disk when it is known: no crash gives it out again. A failover makes the timeline larger. */
async function fenceOf(session) {
  const { rows } = await session.query(FENCE);
  const [{ xid, timeline }] = rows;
  return (BigInt(`0x${timeline}`) << 48n) | BigInt(xid);
}

const FENCE = `select txid_current()::text as xid, pg_logical_emit_message(true, 'sablock', ''),
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline`;

exports.PostgresKeeper = PostgresKeeper;
