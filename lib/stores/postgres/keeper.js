// Locks in PostgreSQL: session advisory locks, whose server's queue gives first come, first served among machines.

const { createHash } = require('node:crypto');
const { SessionKeeper } = require('../sessions/keeper.js');
const { connect } = require('./connect.js');
const { PostgresSession } = require('./session.js');

/** The key of a name, as text: eight bytes of a hash of the namespace and the name, which may be any 16-bit units. */
const keyOf = (namespace, name) => {
  const space = Buffer.from(namespace, 'utf16le');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(space.length);
  const hash = createHash('sha256').update(length).update(space).update(Buffer.from(name, 'utf16le'));
  return hash.digest().readBigInt64BE(0).toString();
};

const POSTGRES = {
  kind: 'postgres',
  store: 'PostgreSQL',
  Session: PostgresSession,
  connect,
  keyOf,
  pooler:
    'two connections do not exclude each other there: a pooler in transaction mode stands in between, or this database accepts ' +
    'advisory locks and ignores them (YugabyteDB before 2025.1, CockroachDB). Connect to PostgreSQL itself, or to a pooler in ' +
    'session mode.',
};

exports.PostgresKeeper = class PostgresKeeper extends SessionKeeper {
  constructor(description, desk) {
    super(POSTGRES, description, desk);
  }
};
