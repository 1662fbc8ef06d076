// A PostgreSQL for the tests of one file, and what it says of its locks.

const { postgres } = require('../../lib/stores/postgres.js');
const { hasPostgres, startPostgres } = require('./servers.js');
const { storeOf } = require('./stores.js');

/** Less than users have, so that what takes long there is short here. Nothing is lost in three seconds in which nothing runs. */
const HEARTBEAT = 1500;

const store = storeOf({
  kind: 'postgres',
  make: postgres,
  skip: hasPostgres ? false : 'PostgreSQL is not installed',
  start: startPostgres,
  settings: { heartbeat: HEARTBEAT },
});

const count = async (which) =>
  Number((await store.server().ask(`select count(*) from pg_locks where locktype = 'advisory' and ${which}`))[0].count);

module.exports = {
  ...store,
  HEARTBEAT,
  /** A manager whose client is made by a module of the programs: `<name>-postgres-client.js`. */
  openBy(t, name, more = {}) {
    process.env.SABLOCK_TEST_POSTGRES = store.server().url;
    return store.open(t, more, { module: require.resolve(`../programs/${name}-postgres-client.js`) });
  },
  /** Returns the number of advisory locks that the server has granted. */
  granted: () => count('granted'),
  waiting: () => count('not granted'),
};
