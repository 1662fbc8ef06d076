// Opens connections to MySQL.

const { findClient } = require('../client.js');
const { notConnected } = require('../errors.js');
const { within } = require('../retry.js');

/** A connected client, by the description of a store. Rejects with a store's error. */
exports.connect = async ({ connection, settings }) => {
  const { connectTimeout, heartbeat } = settings;
  if (typeof connection === 'object' && typeof connection.module === 'string') {
    return within(connectTimeout, require(connection.module).connect(), (client) => client.end());
  }
  const { createConnectionPromise } = findClient(['mysql2'], (_, client) => 'createConnectionPromise' in client).client;
  const own = typeof connection === 'string' ? { uri: connection } : connection;
  const options = { ...own, connectTimeout, enableKeepAlive: true, keepAliveInitialDelay: Math.max(heartbeat, 1000) };
  let client;
  try {
    client = await within(connectTimeout, createConnectionPromise(options), (late) => late.destroy());
  } catch (error) {
    throw notConnected('MySQL', error, FINAL.has(error.errno));
  }
  // Rows are read by the names of their columns, whatever a URL or options ask for.
  if (client.config !== undefined) Object.assign(client.config, { rowsAsArray: false, nestTables: false });
  // Until a session listens: an error without a listener would end the lock worker.
  client.on('error', () => {});
  return client;
};

/** Numbers of refusals for good: a password, a database that is not there, a way to log in, this host. */
const FINAL = new Set([1044, 1045, 1049, 1130, 1251, 1524, 1698]);
