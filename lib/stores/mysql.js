// sablock/mysql: locks that a MySQL or MariaDB server keeps.

const { connectionOf } = require('./mysql/options.js');
const { describeStore, SESSIONS } = require('./store.js');

exports.mysql = (connection, options) =>
  describeStore('mysql', connectionOf(connection), options, SESSIONS, { canShare: false });
