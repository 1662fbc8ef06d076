// Locks in MySQL and MariaDB: those of GET_LOCK(), which the server grants in the order in which it was asked.

const { createHash } = require('node:crypto');
const { SessionKeeper } = require('../sessions/keeper.js');
const { connect } = require('./connect.js');
const { MysqlSession } = require('./session.js');

const MYSQL = {
  kind: 'mysql',
  store: 'MySQL',
  Session: MysqlSession,
  connect,
  /** Names have up to 64 characters there, and case does not count. */
  keyOf(namespace, name) {
    const space = Buffer.from(namespace, 'utf16le');
    const hash = createHash('sha256').update(`${space.length} `).update(space).update(Buffer.from(name, 'utf16le'));
    return `sablock:${hash.digest('hex').slice(0, 56)}`;
  },
  pooler:
    'two connections do not exclude each other there: a proxy that shares connections among clients stands in between (ProxySQL), or ' +
    'they lead to two servers (Galera, group replication). Connect to one server itself.',
};

exports.MysqlKeeper = class MysqlKeeper extends SessionKeeper {
  constructor(description, desk) {
    super(MYSQL, description, desk);
  }
};
