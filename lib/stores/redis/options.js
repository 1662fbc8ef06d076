// The argument of `redis()`: a URL, the options of one of two clients, or such a client, whose options are taken.

const { invalidArgument } = require('../../errors.js');
const { isText, mayBeUrlOf, withoutPassword } = require('../urls.js');

const EXPECTED =
  'what names a server: a URL, { url } or { socket: { host } } as of "redis", { host } or { path } as of "ioredis", or one of their ' +
  'clients; for Cluster and Sentinel { module: "/absolute/path" } with a connect() that returns a client';

/** The options of a client that lead to its server. */
const TAKEN = {
  redis: ['url', 'socket', 'username', 'password', 'database'],
  ioredis: ['host', 'port', 'path', 'family', 'tls', 'username', 'password', 'db'],
};

/** Whose options these are. */
const clientOf = ({ url, socket }) => (url === undefined && socket === undefined ? 'ioredis' : 'redis');

/** A URL without a host leads to wherever the client thinks. What is no URL is the client's affair. */
function leadsSomewhere(url) {
  if (!mayBeUrlOf('redis', url)) return false;
  try {
    const { hostname, protocol } = new URL(url);
    return hostname !== '' || protocol === 'unix:';
  } catch {
    return true;
  }
}

const namesServer = ({ url, socket, host, path }) =>
  leadsSomewhere(url) || [socket?.host, socket?.path, host, path].some(isText);

const isClient = (connection) => typeof connection?.sendCommand === 'function';

/** The options of a client that the program has; what is none is its own options. Ours connects again in its own way. */
function optionsOf(connection) {
  if (!isClient(connection)) return connection;
  const { options } = connection;
  const isOfMany = connection.isCluster === true || 'slots' in connection || options?.sentinels?.length > 0;
  if (isOfMany || typeof options !== 'object' || options === null) return null;
  const names = TAKEN[typeof connection.call === 'function' ? 'ioredis' : 'redis'];
  const given = names.map((name) => [name, options[name]]).filter(([, value]) => value != null);
  const taken = Object.fromEntries(given);
  if (taken.socket !== undefined) {
    const { reconnectStrategy, ...socket } = taken.socket;
    // The address is said once.
    if (namesServer({ socket })) delete taken.url;
    taken.socket = socket;
  }
  return taken;
}

/** The same as a URL or plain options. Throws for what names no server: nothing falls back to a default one. */
exports.connectionOf = (connection) => {
  // "ioredis" has a method of that name.
  if (!isClient(connection) && connection?.module !== undefined) return connection;
  const options = typeof connection === 'string' ? { url: connection } : optionsOf(connection);
  if (typeof options !== 'object' || options === null || !namesServer(options)) {
    throw invalidArgument('connection', EXPECTED, withoutPassword(connection));
  }
  return typeof connection === 'string' ? connection : options;
};

/** The clients that can be used, by the form of what they are given. */
exports.clientsFor = (connection) => (typeof connection === 'string' ? ['redis', 'ioredis'] : [clientOf(connection)]);
