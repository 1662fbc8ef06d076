// The argument of `postgres()`: a URL, the options of pg's Client, or a pool or client of pg, whose options are taken.

const { invalidArgument } = require('../../errors.js');
const { isText, mayBeUrlOf, withoutPassword } = require('../urls.js');

const EXPECTED =
  'what names a server: a URL, { host } or { connectionString } as of "pg" (or PGHOST), or a pool or client of it';

const TAKEN = ['connectionString', 'host', 'port', 'user', 'database', 'password', 'ssl', 'options'];

/** A URL without a host leads to wherever the client thinks. What is no URL is the client's affair. */
function namesServer(text) {
  if (!mayBeUrlOf('postgres', text)) return false;
  try {
    const { hostname, searchParams } = new URL(text);
    return hostname !== '' || searchParams.has('host');
  } catch {
    return true;
  }
}

/** The options of a pool or client that the program has; what is none is its own options. */
function optionsOf(connection) {
  if (typeof connection?.query !== 'function') return connection;
  const options = connection.connectionParameters ?? connection.options;
  if (typeof options !== 'object' || options === null) return null;
  const given = TAKEN.map((name) => [name, options[name]]).filter(([, value]) => value != null && value !== '');
  const taken = Object.fromEntries(given);
  // Its key is not enumerable there.
  if (typeof taken.ssl === 'object' && taken.ssl.key !== undefined) taken.ssl = { ...taken.ssl, key: taken.ssl.key };
  return taken;
}

/** The same as a URL or plain options. Throws for what names no server: nothing falls back to a default one. */
exports.connectionOf = (connection) => {
  if (connection?.module !== undefined) return connection;
  const isUrl = typeof connection === 'string';
  const options = isUrl ? { connectionString: connection } : optionsOf(connection);
  const isNamed = (all) => namesServer(all.connectionString) || isText(all.host) || isText(process.env.PGHOST);
  if (typeof options !== 'object' || options === null || connection === '' || !isNamed(options)) {
    throw invalidArgument('connection', EXPECTED, withoutPassword(connection));
  }
  return isUrl ? connection : options;
};
