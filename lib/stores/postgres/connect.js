// Opens connections to PostgreSQL.

const { findClient } = require('../client.js');
const { notConnected } = require('../errors.js');
const { within } = require('../retry.js');

/** A connected client, by the description of a store. Rejects with a store's error. */
exports.connect = async ({ connection, settings }) => {
  const { connectTimeout, heartbeat } = settings;
  if (typeof connection === 'object' && typeof connection.module === 'string') {
    return within(connectTimeout, require(connection.module).connect(), (client) => client.end());
  }
  const { Client } = findClient(['pg']).client;
  const own = typeof connection === 'string' ? { connectionString: connection } : connection;
  const client = new Client({
    ...own,
    connectionTimeoutMillis: connectTimeout,
    // Rows are read as text, whatever the options ask for.
    binary: false,
    keepAlive: true,
    // No answer is expected from a blocked session, so nothing else shows that its cable is cut. In whole seconds.
    keepAliveInitialDelayMillis: Math.max(heartbeat, 1000),
  });
  // It gives a query up and leaves the server to it: who waits in line would begin again behind everybody.
  if (client.connectionParameters !== undefined) client.connectionParameters.query_timeout = 0;
  // Until a session listens: an error without a listener would end the lock worker.
  const ignore = () => {};
  client.on('error', ignore);
  try {
    await within(connectTimeout, client.connect());
  } catch (error) {
    client.connection?.stream?.destroy();
    throw notConnected('PostgreSQL', error, FINAL.test(error.code ?? ''));
  }
  return client;
};

/** Codes of refusals for good: a password, a role, a database that is not there. */
const FINAL = /^(28|3D)/;
