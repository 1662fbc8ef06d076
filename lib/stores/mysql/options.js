// The argument of `mysql()`: a URL, the options of a connection of mysql2, or a pool or connection of it, whose options are taken.

const { invalidArgument } = require('../../errors.js');
const { isText, mayBeUrlOf, withoutPassword } = require('../urls.js');

const EXPECTED =
  'what names a server: a URL, { host }, { socketPath } or { uri } as of "mysql2", or a pool or connection of it';

const TAKEN = ['host', 'port', 'socketPath', 'user', 'password', 'database', 'ssl'];

/** A URL without a host leads to wherever the client thinks. */
function namesHost(text) {
  try {
    return mayBeUrlOf('mysql', text) && new URL(text).hostname !== '';
  } catch {
    return false;
  }
}

/** The options of a pool or connection that the program has, by callbacks or promises; what is none is its own options. */
function optionsOf(connection) {
  if (typeof connection?.query !== 'function') return connection;
  const { config } = connection.pool ?? connection.connection ?? connection;
  const options = config?.connectionConfig ?? config;
  if (typeof options !== 'object' || options === null) return null;
  return Object.fromEntries(
    TAKEN.map((name) => [name, options[name]]).filter(([, value]) => value != null && value !== false),
  );
}

/** The same as a URL or plain options. Throws for what names no server: nothing falls back to a default one. */
exports.connectionOf = (connection) => {
  if (connection?.module !== undefined) return connection;
  const options = typeof connection === 'string' ? { uri: connection } : optionsOf(connection);
  const isNamed = ({ uri, host, socketPath }) => namesHost(uri) || isText(host) || isText(socketPath);
  if (typeof options !== 'object' || options === null || !isNamed(options)) {
    throw invalidArgument('connection', EXPECTED, withoutPassword(connection));
  }
  return typeof connection === 'string' ? connection : options;
};
