// A MySQL, or MariaDB, for the tests of one file, and what it says of its locks.

const { mysql } = require('../../lib/stores/mysql.js');
const { hasMysql, startMysql } = require('./servers.js');
const { storeOf } = require('./stores.js');

/** Less than users have, so that what takes long there is short here. Nothing is lost in three seconds in which nothing runs. */
const HEARTBEAT = 1500;

const store = storeOf({
  kind: 'mysql',
  make: mysql,
  skip: hasMysql ? false : 'MariaDB is not installed',
  start: () => startMysql({ 'plugin-load-add': 'metadata_lock_info' }),
  settings: { heartbeat: HEARTBEAT },
});

const count = async (text) => Number((await store.server().query(`select count(*) as count from ${text}`))[0].count);

module.exports = {
  ...store,
  HEARTBEAT,
  /** Returns the number of locks of users that the server has granted. */
  granted: () => count("information_schema.metadata_lock_info where lock_type = 'User lock'"),
  waiting: () => count("information_schema.processlist where state = 'User lock'"),
};
