// A session of MySQL or MariaDB and its locks: what it does of ../sessions/session.js.

const { storeError } = require('../errors.js');
const { Session } = require('../sessions/session.js');

class MysqlSession extends Session {
  async send(text, values) {
    const [rows] = await this.client.query(text, values);
    return rows;
  }

  /** The settings of every session: the server ends it in time, and nothing else does. */
  async begin() {
    const seconds = Math.max(Math.ceil(this.freedAfter / 1000), 1);
    // MariaDB has one of the last two, and MySQL the other.
    const settings = { wait_timeout: seconds, autocommit: 1, max_statement_time: 0, max_execution_time: 0 };
    for (const [name, value] of Object.entries(settings)) {
      await this.query(`set session ${name} = ${value}`).catch((error) => {
        if (error.errno !== UNKNOWN_VARIABLE) throw error;
      });
    }
    const [{ id, isReadOnly }] = await this.query('select connection_id() as id, @@global.read_only as isReadOnly');
    this.id = Number(id);
    // Younger versions of MariaDB have a word there.
    if (!['0', 'OFF'].includes(String(isReadOnly))) throw replica();
    const { threadId = this.id } = this.client;
    this.isPooled = threadId !== this.id;
  }

  /** A session that has a key gets it again, and counts. */
  tryLock(key) {
    return this.#ask('if(is_used_lock(?) = connection_id(), 0, get_lock(?, 0))', [key, key]);
  }

  async lock(key) {
    const isDone = await this.#ask('get_lock(?, ?)', [key, FOR_EVER], { blocks: true });
    // It says so where others say that it was interrupted.
    if (!isDone) throw Object.assign(new Error('MySQL has ended a wait.'), { errno: INTERRUPTED, sqlState: '70100' });
  }

  unlock(key) {
    return this.#ask('release_lock(?)', [key]);
  }

  /** A session that waits has nothing else. */
  unlockAll(key) {
    return this.unlock(key);
  }

  interrupt({ id }) {
    return this.query('kill query ?', [id]);
  }

  async blockedAmong(ids) {
    const rows = await this.query(BLOCKED, [ids]);
    return rows.map(({ id }) => Number(id));
  }

  /** Made of the server's number, of the second in which it began, and of a count. */
  async fence() {
    const [{ fence }] = await this.query('select cast(uuid_short() as char) as fence');
    return BigInt(fence);
  }

  async holders(keys, own) {
    const found = [];
    for (let from = 0; from < keys.length; from += COLUMNS) {
      const some = keys.slice(from, from + COLUMNS);
      const [row] = await this.query(`select ${some.map((_, at) => `is_used_lock(?) as k${at}`)}`, some);
      for (const [at, key] of some.entries()) {
        const id = row[`k${at}`];
        if (id !== null && !own.includes(Number(id))) found.push({ key, isShared: false, id: Number(id), pid: -1 });
      }
    }
    return found;
  }

  async probe(key, isLock) {
    const verb = isLock ? 'get_lock(?, 0)' : 'release_lock(?)';
    const [{ done, id }] = await this.query(`select ${verb} as done, connection_id() as id`, [key]);
    return { isDone: Number(done) === 1, id: Number(id) };
  }

  /** The server's errors have a state of SQL. With some of them it ends the connection. */
  isAnswer({ errno, sqlState, fatal }) {
    return typeof sqlState === 'string' && fatal !== true && !ENDS.has(errno);
  }

  isInterruption({ errno }) {
    return errno === INTERRUPTED;
  }

  refusalOf(cause) {
    if (!FINAL.has(cause.errno)) return null;
    return storeError(`MySQL refuses: ${cause.message.replace(/\.$/, '')}.`, { cause, isFinal: true });
  }

  /** The client's own `destroy()` would forget the query that runs. */
  cut() {
    const { stream } = this.client.connection ?? this.client;
    if (typeof stream?.destroy === 'function') stream.destroy();
    else Promise.resolve(this.client.end()).catch(() => {});
  }

  async #ask(expression, values, options) {
    const [{ done }] = await this.query(`select ${expression} as done`, values, options);
    return Number(done) === 1;
  }
}

/** In seconds. A negative one is no time at all for MariaDB. */
const FOR_EVER = 31_536_000;
/** The columns of one row; a server takes 4096. */
const COLUMNS = 1000;

const BLOCKED = `select id from information_schema.processlist where id in (?) and state = 'User lock'`;

/** Numbers of the server's errors. */
const UNKNOWN_VARIABLE = 1193;
const INTERRUPTED = 1317;
/** It shuts down; the session was killed, as MariaDB says it, and as MySQL does; it was idle for too long. */
const ENDS = new Set([1053, 1927, 3169, 4031]);
/** No right to that database, user, table or routine; no such database; not understood; no such function; not supported. */
const FINAL = new Set([1044, 1045, 1049, 1064, 1142, 1227, 1235, 1305, 1370]);

const replica = () =>
  storeError('This MySQL cannot keep locks: it is read-only, as a replica is, which has no lock of its primary.', {
    isFinal: true,
  });

exports.MysqlSession = MysqlSession;
