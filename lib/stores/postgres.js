// sablock/postgres: locks that a PostgreSQL server keeps.

const { connectionOf } = require('./postgres/options.js');
const { describeStore, SESSIONS } = require('./store.js');

exports.postgres = (connection, options) => describeStore('postgres', connectionOf(connection), options, SESSIONS);
