// sablock/postgres: locks that a PostgreSQL server keeps.

const { connectionOf } = require('./postgres/options.js');
const { describeStore, whole } = require('./store.js');

/** The options that are numbers: the usual value, and the least. */
const NUMBERS = { connections: whole(10, 2), heartbeat: [5000, 50] };

exports.postgres = (connection, options) => describeStore('postgres', connectionOf(connection), options, NUMBERS);
