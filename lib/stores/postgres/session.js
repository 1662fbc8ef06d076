// A session of PostgreSQL and its advisory locks: what it does of ../sessions/session.js.

const { storeError } = require('../errors.js');
const { Session } = require('../sessions/session.js');

class PostgresSession extends Session {
  async send(text, values) {
    const { rows } = await this.client.query(text, values);
    return rows;
  }

  /** The settings of every session: the server ends it in time, and nothing else does. */
  async begin(heartbeat) {
    const seconds = Math.max(Math.round(this.freedAfter / 1000), 1);
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
      client_connection_check_interval: Math.max(heartbeat, 100),
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
    const [{ pid, recovers }] = await this.query('select pg_backend_pid() as pid, pg_is_in_recovery() as recovers');
    this.id = Number(pid);
    if (recovers === true) throw standby();
    const { processID = this.id } = this.client;
    this.isPooled = processID !== this.id;
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

  /** A session that has a key gets it again, so it looks first who waits for it. */
  async tryLock(key, isShared) {
    const verb = `pg_try_advisory_lock${suffixOf(isShared)}($1::bigint)`;
    const text = this.held.has(key)
      ? `select case when exists (${WAITERS}) then false else ${verb} end as done`
      : `select ${verb} as done`;
    const [{ done }] = await this.query(text, [key]);
    return done === true;
  }

  lock(key, isShared) {
    return this.query(`select pg_advisory_lock${suffixOf(isShared)}($1)`, [key], { blocks: true });
  }

  async unlock(key, isShared) {
    const [{ done }] = await this.query(`select pg_advisory_unlock${suffixOf(isShared)}($1) as done`, [key]);
    return done === true;
  }

  unlockAll() {
    return this.query('select pg_advisory_unlock_all()');
  }

  interrupt({ id }) {
    return this.query('select pg_cancel_backend($1)', [id]);
  }

  async blockedAmong(ids) {
    const rows = await this.query(BLOCKED, [ids]);
    return rows.map(({ pid }) => Number(pid));
  }

  /** That of a transaction, on disk when it is known: no crash gives it out again. A failover makes the timeline larger. */
  async fence() {
    const [{ xid, timeline }] = await this.query(FENCE);
    return (BigInt(`0x${timeline}`) << 48n) | BigInt(xid);
  }

  async holders(_keys, own) {
    const rows = await this.query(HOLDERS, [own]);
    return rows.map(({ key, mode, pid }) => ({
      key,
      isShared: mode === 'ShareLock',
      id: Number(pid),
      pid: Number(pid),
    }));
  }

  async probe(key, isLock) {
    const verb = isLock ? 'pg_try_advisory_lock' : 'pg_advisory_unlock';
    const [{ done, pid }] = await this.query(`select ${verb}($1) as done, pg_backend_pid() as pid`, [key]);
    return { isDone: done === true, id: Number(pid) };
  }

  /** The server's codes have five letters and digits; those of the system, as EPIPE, have no digit. */
  isAnswer({ code, severity }) {
    return /^(?=.*\d)[0-9A-Z]{5}$/.test(code ?? '') && severity !== 'FATAL';
  }

  isInterruption({ code }) {
    return code === CANCELED;
  }

  refusalOf(cause) {
    if (!FINAL.test(cause.code)) return null;
    const hint = cause.hint ? ` ${cause.hint}` : '';
    return storeError(`PostgreSQL refuses: ${cause.message.replace(/\.$/, '')}.${hint}`, { cause, isFinal: true });
  }

  cut() {
    const { stream } = this.client.connection ?? {};
    if (typeof stream?.destroy === 'function') stream.destroy();
    else Promise.resolve(this.client.end?.()).catch(() => {});
  }
}

const suffixOf = (isShared) => (isShared ? '_shared' : '');

/** Asks for those who wait for a key, which two numbers of 32 bits stand for. */
const WAITERS = `select from pg_locks where locktype = 'advisory' and objsubid = 1 and not granted
  and classid = (($1::bigint >> 32) & 4294967295)::oid and objid = ($1::bigint & 4294967295)::oid
  and database = (select oid from pg_database where datname = current_database())`;

const BLOCKED = `select pid from pg_locks where locktype = 'advisory' and not granted and pid = any($1::int[])`;

const HOLDERS = `select ((classid::bigint << 32) | objid::bigint)::text as key, mode, pid from pg_locks
  where locktype = 'advisory' and objsubid = 1 and granted and not pid = any($1::int[])
    and database = (select oid from pg_database where datname = current_database())`;

const FENCE = `select txid_current()::text as xid, pg_logical_emit_message(true, 'sablock', ''),
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline`;

/** `query_canceled`. */
const CANCELED = '57014';

/** The classes of codes by which the server refuses for good: it cannot do that, is not asked right, or has no room for more. */
const FINAL = /^(0A|22|42|53[12]|54|58|XX)/;

const standby = () =>
  storeError(
    'This PostgreSQL cannot keep locks: it is a standby, which has none of its primary. Connect to the primary.',
    { isFinal: true },
  );

exports.PostgresSession = PostgresSession;
