// The clients that users have, "redis" and "ioredis", as one: `send(args)`, `subscribe(channel, act)`, `end()`.

const net = require('node:net');
const { findClient } = require('../client.js');
const { storeError, saidBy } = require('../errors.js');
const { asStoreError, within } = require('../retry.js');
const { clientsFor } = require('./options.js');

/** A server that has something to say by itself says it within this time, in milliseconds. */
const GREETING_MS = 250;

/** A connection for calls and one for messages; `tell(event)` hears of ends. */
exports.connect = async ({ connection, settings }, tell) => {
  const { connectTimeout } = settings;
  const open = openerOf(connection, connectTimeout);
  const ends = [];
  const add = async () => {
    const one = await open(tell);
    ends.push(one.end);
    return one;
  };
  const endAll = () => Promise.all(ends.map((end) => end()));
  try {
    const [calls, messages] = [await add(), await add()];
    return { send: calls.send, subscribe: messages.subscribe, end: endAll };
  } catch (error) {
    endAll();
    if (error.isFinal === true) throw error;
    throw storeError(`Redis cannot be reached: ${saidBy(error)}.${hint(error, connection)}`, {
      cause: error,
      isFinal: isFinal(error),
    });
  }
};

/** The likely cause of an error that does not say it. */
function hint({ message = '', isFinal }, connection) {
  if (/RESP|Protocol error/.test(message)) return ' What answers there does not speak the protocol of Redis.';
  const { tls, socket } = connection;
  const isTls = typeof connection === 'string' ? connection.startsWith('rediss:') : Boolean(tls ?? socket?.tls);
  return isTls && isFinal === false ? ' Does that port expect TLS?' : '';
}

/** For good: a password, right or command that is not there. Scripts do not say NOPERM, and Redis 8 says it otherwise than 7.0. */
const FINAL =
  /NOAUTH|WRONGPASS|NOPERM|The user executing the script can't|ACL failure in script|[Uu]nknown (Redis )?command/;
const isFinal = ({ message = '' }) => FINAL.test(message);

/** All that is asked of the server, by itself or by the script. */
const COMMANDS =
  'EVAL, EVALSHA, EXPIRE, HDEL, HGET, HINCRBY, HSET, HVALS, PERSIST, PING, PUBLISH, SUBSCRIBE, TIME, WAIT, ZADD, ZRANGE, ZRANK and ZREM';

/** Errors of a server that answers, but does not serve now: it is as if it were not reached. */
const REFUSES = /^(BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|MOVED|NOREPLICAS|OOM|READONLY|TRYAGAIN) /;

/** The error of a store for such a reply, or for one that says what would be refused for ever; null if it is none. */
exports.refusalOf = (error) => {
  if (isFinal(error)) {
    return storeError(
      `Redis refuses: ${error.message.replace(/\.$/, '')}. The user needs the rights to run ${COMMANDS}.`,
      {
        cause: error,
        isFinal: true,
      },
    );
  }
  const [, word] = REFUSES.exec(error.message) ?? [];
  if (word !== 'MOVED') return word === undefined ? null : asStoreError('Redis', error);
  return storeError(
    `This Redis is one node of a cluster (${error.message}). Give { module: "/absolute/path" } with a connect() that returns a client ` +
      'of the cluster.',
    { cause: error, isFinal: true },
  );
};

exports.isReadOnly = ({ message }) => /^READONLY /.test(message);

function openerOf(connection, connectTimeout) {
  if (typeof connection === 'object' && typeof connection.module === 'string') {
    return async (tell) => adapt(await within(connectTimeout, require(connection.module).connect(), end), tell);
  }
  const { name, client } = findClient(clientsFor(connection), isUsable);
  return name === 'redis'
    ? openRedis(client, connection, connectTimeout)
    : openIoredis(client, connection, connectTimeout);
}

/** Before version 4 "redis" had callbacks, and another form of options. */
const isUsable = (name, client) => name !== 'redis' || typeof client.createCluster === 'function';

function openRedis({ createClient }, connection, connectTimeout) {
  const own = typeof connection === 'string' ? { url: connection } : connection;
  return async (tell) => {
    // The keeper connects again by itself: a client that does so would send calls whose waiters have given up.
    const socket = { ...own.socket, connectTimeout, reconnectStrategy: false };
    const client = createClient({ ...own, socket, disableOfflineQueue: true });
    await connected(client, tell, connectTimeout);
    return adapt(client, tell);
  };
}

function openIoredis(module, connection, connectTimeout) {
  const Redis = module.default ?? module;
  return async (tell) => {
    const options = { lazyConnect: true, retryStrategy: () => null, connectTimeout, maxRetriesPerRequest: 0 };
    const client =
      typeof connection === 'string' ? new Redis(connection, options) : new Redis({ ...connection, ...options });
    await connected(client, tell, connectTimeout);
    return adapt(client, tell);
  };
}

/** Resolves once it is connected. If it cannot be, the reason may come as an event, before "Connection is closed". */
async function connected(client, tell, connectTimeout) {
  const reasons = [];
  client.on('error', (error) => {
    reasons.push(error);
    tell(error);
  });
  try {
    await within(connectTimeout, client.connect());
  } catch (error) {
    // A server that is only silent would take it later, and nobody would end it.
    end(client);
    if (error.message !== 'Connection is closed.') throw error;
    // The error of "ioredis" hides it.
    const all = new Set(reasons.map(({ message }) => message));
    const greeting = await greetingOf(client.options);
    if (greeting !== null) all.add(greeting);
    if (all.size === 0) throw error;
    throw new Error(`Connection is closed (${[...all].join('; ')})`, { cause: reasons[0] ?? error });
  }
}

/** The error that a server says to whoever connects, before it closes: it has too many clients, for one. Null if it says none. */
function greetingOf({ host, port, path, tls }) {
  if (tls) return null;
  return new Promise((resolve) => {
    const socket = net.connect(path ? { path } : { host, port });
    let said = '';
    const end = () => {
      socket.destroy();
      resolve(/^-(.*)\r\n/.exec(said)?.[1] ?? null);
    };
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      said += text;
    });
    for (const event of ['close', 'error', 'timeout']) socket.on(event, end);
    socket.setTimeout(GREETING_MS);
  });
}

/** One that is over may throw. */
async function end(client) {
  try {
    await (typeof client.destroy === 'function' ? client.destroy() : client.disconnect());
  } catch {
    // It is over.
  }
}

/** By structure: what has `sendCommand` and a `subscribe` with a listener is as "redis", what has `call` as "ioredis". */
function adapt(client, tell) {
  // Not every one that is over says "end".
  for (const event of ['end', 'close', 'error']) client.on(event, tell);
  if (typeof client.call === 'function') {
    const listeners = new Map();
    client.on('message', (channel, message) => listeners.get(channel)?.(message));
    return {
      send: (args) => client.call(...args),
      subscribe(channel, act) {
        listeners.set(channel, act);
        return client.subscribe(channel);
      },
      end: () => end(client),
    };
  }
  return {
    // A cluster of "redis" is told which key says where to; here it is the first, if there is one.
    send: (args) =>
      'slots' in client ? client.sendCommand(args[args[0] === 'HVALS' ? 1 : 3], false, args) : client.sendCommand(args),
    subscribe: (channel, act) => client.subscribe(channel, act),
    end: () => end(client),
  };
}
