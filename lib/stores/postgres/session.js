// One connection to PostgreSQL: a session of the server, which holds advisory locks as long as it lives.
//
// It is asked often enough whether it still answers. The server ends a session whose client it cannot reach, and may then give its
// locks away; no keepalive tells a client of that in time. So all that a session holds is lost once its last answered query was
// sent three heartbeats ago, and the server is set to end it after five.

const clock = require('../../load/clock.js');
const { binding } = require('../../engine/thread.js');
const { storeError } = require('../errors.js');
const { FAREWELL_MS } = require('../retry.js');
const { TAKEN, UNREACHABLE } = require('../verbs.js');

/** Heartbeats for which a session is surely there, and after which the server frees it. */
const SURE = 3;
const FREED = 5;

class Session {
  /** By key, how often. */
  held = new Map();
  /** The process of the server that serves it. */
  pid = 0;
  /** A request that blocks in it. */
  waiting = null;
  isOver = false;
  lease;
  /** The time of the last round trip, in milliseconds. */
  roundTrip = 0;
  #client;
  #desk;
  #heartbeat;
  #timer = null;
  #answeredAt;
  #sentAt = Infinity;
  /** The queries that wait for the one that runs. */
  #queue = [];
  #isRunning = false;
  /** Whether the query that runs may take for ever. */
  #isBlocked = false;
  #whenDone = null;
  #on;

  /** `client` is connected. `on.onRenewed()` is called after each heartbeat, `on.onEnd(error)` once, when it is over. */
  constructor(client, desk, heartbeat, on) {
    this.#client = client;
    this.#desk = desk;
    this.#heartbeat = heartbeat;
    this.#on = on;
    this.#answeredAt = binding.leaseTime();
    this.lease = binding.beginLease(this.#answeredAt + SURE * heartbeat);
    client.on('error', (error) => this.end(error));
    client.on('end', () => this.end());
    this.#timer = clock.setInterval(() => this.#look(), heartbeat / 4).unref();
  }

  /** The settings of every session: the server ends it in time, and nothing else does. */
  async begin() {
    const seconds = Math.max(Math.round((FREED * this.#heartbeat) / 1000), 1);
    const settings = {
      statement_timeout: 0,
      lock_timeout: 0,
      idle_session_timeout: 0,
      idle_in_transaction_session_timeout: 0,
      transaction_timeout: 0,
      synchronous_commit: 'on',
      tcp_keepalives_idle: Math.max(Math.round(seconds / 2.5), 1),
      tcp_keepalives_interval: Math.max(Math.round(seconds / 5), 1),
      tcp_keepalives_count: 3,
      tcp_user_timeout: seconds * 1000,
      client_connection_check_interval: Math.max(this.#heartbeat, 100),
      application_name: 'sablock',
    };
    const all = Object.entries(settings).map(([name, value]) => ({ name, value: String(value) }));
    await this.#set(all).catch(async (error) => {
      // One that a system does not have refuses them all: without it the server frees a lost session later.
      for (const one of all) {
        if (this.isOver) throw error;
        await this.#set([one]).catch(() => {});
      }
    });
    const { rows } = await this.query('select pg_backend_pid() as pid, pg_is_in_recovery() as recovers');
    this.pid = Number(rows[0].pid);
    const { processID = this.pid } = this.#client;
    return { recovers: rows[0].recovers === true, isPooled: processID !== this.pid };
  }

  /** Sets those of the settings that this version has. */
  #set(settings) {
    return this.query(
      `select set_config(wanted.name, wanted.value, false)
         from json_to_recordset($1::json) as wanted(name text, value text)
         join pg_settings known on known.name = wanted.name`,
      [JSON.stringify(settings)],
    );
  }

  get isIdle() {
    return this.held.size === 0 && this.waiting === null;
  }

  /** Whether its last answer is so young that what it grants now lasts. */
  get isFresh() {
    return binding.leaseTime() - this.#answeredAt < this.#heartbeat;
  }

  /** Rejects if it is dead. `blocks`: the answer may take for ever. */
  async query(text, values, { blocks = false } = {}) {
    if (this.isOver) throw ended();
    // One at a time: "pg" sends the next when the one before is answered, and warns of those that it has to keep.
    if (this.#isRunning) await new Promise((resolve) => this.#queue.push(resolve));
    this.#isRunning = true;
    try {
      this.#isBlocked = blocks;
      return await this.#send(text, values);
    } finally {
      this.#isBlocked = false;
      const next = this.#queue.shift();
      if (next !== undefined) {
        next();
      } else {
        this.#isRunning = false;
        this.#whenDone?.();
      }
    }
  }

  async #send(text, values) {
    const sentAt = binding.leaseTime();
    if (this.#sentAt === Infinity) this.#sentAt = sentAt;
    try {
      const result = await this.#client.query(text, values);
      this.#answered(sentAt);
      // The answer was too late, or the end came right behind it.
      if (this.isOver) throw ended();
      return result;
    } catch (error) {
      // The server's own answer is one too. Its codes have five letters and digits; those of the system, as EPIPE, have no digit.
      if (!/^(?=.*\d)[0-9A-Z]{5}$/.test(error.code ?? '') || error.severity === 'FATAL') {
        this.end(error);
        throw error;
      }
      this.#answered(sentAt);
      throw FINAL.test(error.code) ? refused(error) : error;
    }
  }

  /** Whether it holds the key now; never waits. A session that has a key gets it again, so it looks first who waits for it. */
  async tryLock(key, isShared) {
    const verb = `pg_try_advisory_lock${isShared ? '_shared' : ''}($1::bigint)`;
    const text = this.held.has(key)
      ? `select case when exists (${WAITERS}) then false else ${verb} end as done`
      : `select ${verb} as done`;
    const { rows } = await this.query(text, [key]);
    if (rows[0].done === true) this.hold(key);
    return rows[0].done === true;
  }

  hold(key) {
    this.held.set(key, (this.held.get(key) ?? 0) + 1);
  }

  letGo(key) {
    const count = this.held.get(key) ?? 0;
    if (count > 1) this.held.set(key, count - 1);
    else this.held.delete(key);
  }

  /** All that it holds is lost, if it is not at its end anyway. */
  end(error, loss = TAKEN) {
    if (this.isOver) return;
    this.isOver = true;
    clock.clearInterval(this.#timer);
    binding.endLease(this.#desk, this.lease, loss);
    const { stream } = this.#client.connection ?? {};
    // One that is blocked would not end before it is granted.
    if (error === undefined && loss === 0 && this.waiting === null) this.#endWhenDone();
    else if (typeof stream?.destroy === 'function') stream.destroy();
    else Promise.resolve(this.#client.end?.()).catch(() => {});
    this.#on.onEnd(error);
  }

  /** Ends after all that it was asked for before. */
  #endWhenDone() {
    const end = () => Promise.resolve(this.#client.end()).catch(() => {});
    if (!this.#isRunning) end();
    else this.#whenDone = end;
    // The server may be silent.
    clock.setTimeout(() => this.#client.connection?.stream?.destroy?.(), FAREWELL_MS).unref();
  }

  #answered(sentAt) {
    const now = binding.leaseTime();
    this.roundTrip = now - sentAt;
    this.#sentAt = Infinity;
    // A wait that was blocked says nothing of the time in between.
    if (sentAt < this.#answeredAt) return;
    this.#answeredAt = sentAt;
    const until = sentAt + SURE * this.#heartbeat;
    if (this.isOver || binding.extendLease(this.lease, until)) return;
    if (this.held.size > 0) {
      this.end(unanswered(), UNREACHABLE);
    } else {
      // A session that holds nothing begins anew.
      binding.endLease(this.#desk, this.lease, 0);
      this.lease = binding.beginLease(until);
    }
  }

  #look() {
    const now = binding.leaseTime();
    const silence = now - Math.max(this.#answeredAt, 0);
    if (this.#isBlocked) return;
    if (this.held.size > 0 && silence >= SURE * this.#heartbeat) this.end(unanswered(), UNREACHABLE);
    else if (now - this.#sentAt >= SURE * this.#heartbeat) this.end(unanswered(), UNREACHABLE);
    else if (silence >= this.#heartbeat && this.#sentAt === Infinity)
      this.query('select 1').then(this.#on.onRenewed, () => {});
  }
}

/** Asks for those who wait for a key, which two numbers of 32 bits stand for. */
const WAITERS = `select from pg_locks where locktype = 'advisory' and objsubid = 1 and not granted
  and classid = (($1::bigint >> 32) & 4294967295)::oid and objid = ($1::bigint & 4294967295)::oid
  and database = (select oid from pg_database where datname = current_database())`;

/** The classes of codes by which the server refuses for good: it cannot do that, is not asked right, or has no room for more. */
const FINAL = /^(0A|22|42|53[12]|54|58|XX)/;

const refused = (cause) =>
  storeError(`PostgreSQL refuses: ${cause.message.replace(/\.$/, '')}.${cause.hint ? ` ${cause.hint}` : ''}`, {
    cause,
    isFinal: true,
  });

const ended = () => new Error('The connection to PostgreSQL has ended.');
const unanswered = () => new Error('PostgreSQL did not answer in time.');

exports.Session = Session;
