// Refuses servers and poolers behind which advisory locks do not exclude.

const { randomBytes } = require('node:crypto');
const { storeError } = require('../errors.js');

const TRIES = 3;

const POOLER =
  'two connections do not exclude each other there: a pooler in transaction mode stands in between, or this database accepts ' +
  'advisory locks and ignores them (YugabyteDB before 2025.1, CockroachDB). Connect to PostgreSQL itself, or to a pooler in ' +
  'session mode.';

/** Two sessions of one place: rejects unless a lock of the first keeps the second out, and goes when it is unlocked. */
exports.checkExclusion = async (first, second) => {
  for (let round = 0; round < TRIES; round += 1) {
    const key = [randomBytes(8).readBigInt64BE().toString()];
    const ask = async (session, name) => {
      const { rows } = await session.query(`select ${name}($1) as done, pg_backend_pid() as pid`, key);
      // A pooler may have moved it to another session of the server.
      if (Number(rows[0].pid) !== session.pid) throw refused();
      return rows[0].done === true;
    };
    const got = await ask(first, 'pg_try_advisory_lock');
    const others = await ask(second, 'pg_try_advisory_lock');
    const freed = await ask(first, 'pg_advisory_unlock');
    const next = await ask(second, 'pg_try_advisory_lock');
    const last = await ask(second, 'pg_advisory_unlock');
    if (!got || others || !freed || !next || !last) {
      // A lock that is left there would be left for ever.
      for (const session of [first, second]) await session.query('select pg_advisory_unlock_all()').catch(() => {});
      throw refused();
    }
  }
};

const refused = () => storeError(`This PostgreSQL cannot keep locks: ${POOLER}`, { isFinal: true });

exports.standby = () =>
  storeError(
    'This PostgreSQL cannot keep locks: it is a standby, which has none of its primary. Connect to the primary.',
    {
      isFinal: true,
    },
  );
