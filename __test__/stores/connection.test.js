// Connections that mysql(), postgres(), redis() and etcd() refuse, and that a server refuses. None has to be installed.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { test } = require('node:test');
const { default: Redis } = require('ioredis');
const { Client, Pool } = require('pg');
const { createClient, createCluster } = require('redis');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { readConnection } = require('../../lib/stores/etcd/connection.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { connect } = require('../../lib/stores/redis/client.js');
const { clientsFor } = require('../../lib/stores/redis/options.js');
const { descriptionOf } = require('../../lib/stores/store.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');

const refused = (message) => ({ code: 'ERR_INVALID_ARG_TYPE', message });

/** Returns what the lock worker is told to connect to. */
const connectionOf = (store) => JSON.parse(descriptionOf(store)).connection;

test('an object of a class that is no client is refused', () => {
  class Client {
    connect() {}
  }
  for (const create of [mysql, postgres, redis]) {
    assert.throws(() => create(new Client()), refused(/must be what names a server.*instance of Client/));
  }
  assert.throws(() => etcd(new Client()), refused(/copied to another thread.*instance of Client/));
});

test('what names no server is refused: nothing falls back to a default one', () => {
  const nowhere = [
    '',
    {},
    { port: 7001 },
    { user: 'a', username: 'a', database: 1 },
    { socket: {} },
    { host: '' },
    { url: '' },
  ];
  const { PGHOST } = process.env;
  delete process.env.PGHOST;
  try {
    for (const connection of [...nowhere, 'redis://', 'redis:///2']) {
      assert.throws(() => redis(connection), refused(/^The "connection" argument must be what names a server/));
    }
    for (const connection of [...nowhere, 'postgres://', 'postgres:///a']) {
      assert.throws(() => postgres(connection), refused(/^The "connection" argument must be what names a server/));
    }
    for (const connection of [...nowhere, 'mysql://', 'mysql:///a']) {
      assert.throws(() => mysql(connection), refused(/^The "connection" argument must be what names a server/));
    }
    for (const name of ['sentinels', 'rootNodes', 'nodes']) {
      assert.throws(() => redis({ [name]: [{ host: 'a' }] }), refused(/for Cluster and Sentinel \{ module/));
    }
    process.env.PGHOST = 'elsewhere';
    assert.deepEqual(connectionOf(postgres({ user: 'a' })), { user: 'a' });
  } finally {
    if (PGHOST === undefined) delete process.env.PGHOST;
    else process.env.PGHOST = PGHOST;
  }
});

test('the form of the options chooses the client', () => {
  assert.deepEqual(clientsFor('redis://host'), ['redis', 'ioredis']);
  for (const connection of [
    { url: 'redis://host' },
    { socket: { host: 'a' } },
    { socket: { path: '/a' }, database: 2 },
  ]) {
    assert.deepEqual(clientsFor(connectionOf(redis(connection))), ['redis']);
  }
  for (const connection of [{ host: 'a' }, { path: '/a' }, { host: 'a', port: 1, db: 2 }]) {
    assert.deepEqual(clientsFor(connectionOf(redis(connection))), ['ioredis']);
  }
});

test('of a client or a pool that the program has the options are taken', () => {
  const of = (create, client) => connectionOf(create(client));
  const account = { username: 'a', password: 'b' };
  const client = createClient({ url: 'redis://a:b@host:7000/3', socket: { reconnectStrategy: () => 1 } });
  const { socket, ...rest } = of(redis, client);
  assert.deepEqual([socket.host, socket.port, 'reconnectStrategy' in socket], ['host', 7000, false]);
  assert.deepEqual(rest, { ...account, database: 3 });
  const other = new Redis({ host: 'host', port: 7000, db: 3, ...account, lazyConnect: true, retryStrategy: () => 1 });
  const { family, ...options } = of(redis, other);
  assert.deepEqual(options, { host: 'host', port: 7000, db: 3, ...account });
  const cluster = new Redis.Cluster([{ host: 'host' }], { lazyConnect: true });
  const sentinel = new Redis({ sentinels: [{ host: 'host' }], name: 'a', lazyConnect: true });
  for (const many of [cluster, sentinel, createCluster({ rootNodes: [{ url: 'redis://host' }] })]) {
    assert.throws(() => redis(many), refused(/for Cluster and Sentinel \{ module/));
  }
  const server = { host: 'host', port: 1, user: 'a', database: 'd', password: 'b' };
  for (const made of [new Pool({ ...server, max: 3 }), new Client(server)]) {
    const { ssl, ...taken } = of(postgres, made);
    assert.deepEqual([taken, Boolean(ssl)], [server, false]);
  }
  const connectionString = 'postgres://a:b@host/d';
  assert.deepEqual(of(postgres, new Pool({ connectionString })), { connectionString });
  const secure = new Pool({ ...server, ssl: { ca: 'c', key: 'k' } });
  assert.deepEqual(of(postgres, secure).ssl, { ca: 'c', key: 'k' });
  assert.throws(() => postgres(new Pool({ ...server, password: () => 'b' })), refused(/connection\.password/));
});

test('a module whose path is not absolute is refused', () => {
  for (const [kind, create] of Object.entries({ mysql, postgres, redis })) {
    for (const module of ['./client.js', 'client', 5, null]) {
      assert.throws(() => create({ module }), refused(/^The "connection.module" argument must be the absolute path/));
    }
    assert.equal(create({ module: path.resolve('client.js') }).kind, kind);
  }
});

test('options that contain themselves are refused; the same twice is not', () => {
  const list = [1];
  list.push([list]);
  const object = { port: 1 };
  object.all = [object];
  const named = { host: 'host', url: 'http://host' };
  const both = { list: [1], object: { port: 1 } };
  for (const create of [mysql, postgres, redis, etcd]) {
    for (const within of [list, object]) {
      const path = within === list ? /"connection\.tls\[1\]\[0\]"/ : /"connection\.tls\.all\[0\]"/;
      assert.throws(() => create({ ...named, tls: within }), refused(path));
    }
    assert.deepEqual(connectionOf(create({ ...named, one: both, other: both })), { ...named, one: both, other: both });
  }
});

test('what names no server, or is the URL of another store, is shown without its password', () => {
  const shown = (text) => (error) =>
    error.code === 'ERR_INVALID_ARG_TYPE' && error.message.endsWith(`Received '${text}'.`);
  for (const [create, url] of [
    [redis, 'postgres://u:secret@host/a'],
    [postgres, 'mysql://u:sec@ret@host/a'],
    [mysql, 'redis://u:sec\nret@host'],
    [mysql, 'http://u:secret@host'],
    [etcd, 'ftp://u:secret@host'],
  ]) {
    assert.throws(() => create(url), shown(url.replace(/u:.*@/s, '...@')), url);
  }
  assert.throws(() => mysql('redis://host:1/2?password=secret'), shown('redis://host:1/2...'));
  assert.throws(() => mysql('host=a password=secret'), shown('...'));
  assert.throws(() => mysql('redis://root:secret'), shown('redis://root...'));
  assert.throws(() => etcd('ftp://host:1,http://other:2'), shown('ftp://host:1,http://other:2'));
});

test('what is no URL of etcd is refused, and shown without its password', () => {
  assert.throws(
    () => etcd('localhost:2379'),
    refused(/"http:" or "https:", or several\. Received 'localhost:2379'\.$/),
  );
  assert.throws(() => etcd('user:secret@localhost'), refused(/Received '\.\.\.@localhost'\.$/));
  assert.throws(() => etcd({ module: path.resolve('client.js') }), refused(/URL of etcd/));
});

test('a URL of another kind of store is refused before anything is asked', () => {
  const urls = {
    redis: ['redis://host', 'rediss://host'],
    postgres: ['postgres://host/a', 'POSTGRESQL://host/a'],
    mysql: ['mysql://host/a', 'mariadb://host/a'],
    etcd: ['http://host:2379', 'https://host:2379'],
  };
  for (const [kind, create] of Object.entries({ redis, postgres, mysql, etcd })) {
    for (const [other, all] of Object.entries(urls)) {
      for (const url of all) {
        if (kind === other) assert.equal(descriptionOf(create(url)).includes(url), true);
        else assert.throws(() => create(url), refused(/^The "connection" argument must be .*\bURL/), `${kind}: ${url}`);
      }
    }
  }
});

for (const [client, connectionTo] of Object.entries({
  redis: (port) => ({ url: `redis://127.0.0.1:${port}` }),
  ioredis: (port) => ({ host: '127.0.0.1', port }),
})) {
  test(`${client}: a server that has too many clients: the first request says so`, {
    timeout: limit(30_000),
  }, async (t) => {
    // As Redis does, before it is asked anything; what comes then is refused by the system.
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.end('-ERR max number of clients reached\r\n', () => socket.destroy());
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const manager = new LockManager({ store: redis(connectionTo(server.address().port)) });
    t.after(() => manager.close());
    for (let round = 0; round < 10; round++) {
      const error = await manager.acquireAsync('one').catch((reason) => reason);
      assert.deepEqual(
        [error.code, /max number of clients/.test(error.message)],
        ['ERR_LOCK_STORE', true],
        error.message,
      );
      assert.ok(error.cause instanceof Error);
    }
  });
}

/** Errors without a message, as Node.js and clients have them, and what they say all the same. */
const SILENT = {
  'several errors': [
    "new AggregateError([new Error('refused by ::1'), new Error('refused by 127.0.0.1')], '')",
    /refused by ::1/,
  ],
  'a code': ["Object.assign(new Error(''), { code: 'EREFUSED' })", /EREFUSED/],
};
const VERBS = {
  acquireAsync: (manager) => manager.acquireAsync('one'),
  acquire: async (manager) => manager.acquire('one'),
  check: (manager) => manager.check(),
};

for (const [what, [source, says]] of Object.entries(SILENT)) {
  test(`of a client that fails with ${what} and no message each verb says what there is`, {
    timeout: limit(30_000),
  }, async (t) => {
    const module = path.join(createFolder(t), 'client.js');
    fs.writeFileSync(module, `exports.connect = async () => { throw ${source}; };`);
    for (const create of [mysql, postgres, redis]) {
      const manager = new LockManager({ store: create({ module }), allowMainThread: true });
      t.after(() => manager.close());
      for (const [verb, call] of Object.entries(VERBS)) {
        const { code, message, cause } = await call(manager).catch((error) => error);
        assert.equal(code, 'ERR_LOCK_STORE');
        assert.match(message, says, verb);
        assert.match(cause.message, says, verb);
      }
    }
  });
}

test('of each client the options that lead to its server are taken, and no others', () => {
  const of = (create, client) => connectionOf(create(client));
  const tls = { ca: 'c' };
  const io = { host: 'host', port: 7, db: 3, family: 6, tls, username: 'a', password: 'b' };
  assert.deepEqual(of(redis, new Redis({ ...io, lazyConnect: true, keyPrefix: 'p', commandTimeout: 5 })), io);
  const { host, port, ...local } = of(redis, new Redis({ path: '/socket', lazyConnect: true }));
  assert.equal(local.path, '/socket');
  const socket = { host: 'host', port: 7, tls: true, ca: 'c' };
  const account = { username: 'a', password: 'b', database: 3 };
  const taken = of(redis, createClient({ socket: { ...socket, reconnectStrategy: false }, ...account, name: 'n' }));
  assert.deepEqual(taken, { socket, ...account });
  // By what they have, of whatever class.
  const like = (options, more) => ({ sendCommand() {}, options, ...more });
  for (const more of [{ isCluster: true }, { slots: [] }]) {
    assert.throws(() => redis(like({ host: 'a', socket: { host: 'a' } }, more)), refused(/for Cluster and Sentinel/));
  }
  const url = 'redis://host';
  assert.deepEqual(of(redis, like({ url, socket: { tls: true }, password: null, database: 0 })), {
    url,
    socket: { tls: true },
    database: 0,
  });
  const made = { user: 'a', password: 'b', database: 'd', host: 'host', port: 7, ssl: tls };
  const connection = { query() {}, connectionParameters: { ...made, options: '-c a=b', statement_timeout: 5 } };
  assert.deepEqual(of(postgres, connection), { ...made, options: '-c a=b' });
  assert.deepEqual(of(postgres, { query() {}, options: { ...made, max: 3 } }), made);
  for (const wrap of [
    (config) => ({ config }),
    (config) => ({ config: { connectionConfig: config, connectionLimit: 3 } }),
    (config) => ({ pool: { config: { connectionConfig: config } } }),
    (config) => ({ connection: { config } }),
  ]) {
    assert.deepEqual(of(mysql, { query() {}, ...wrap({ ...made, charset: 'x', flags: 3 }) }), made);
    const on = { socketPath: '/socket', user: 'a' };
    assert.deepEqual(of(mysql, { query() {}, ...wrap({ ...on, host: undefined, ssl: false }) }), on);
    assert.throws(() => mysql({ query() {}, ...wrap({ user: 'a' }) }), refused(/must be what names a server/));
  }
  const { PGHOST } = process.env;
  delete process.env.PGHOST;
  try {
    for (const create of [mysql, postgres]) assert.throws(() => create({ query() {} }), refused(/what names a server/));
    assert.throws(() => postgres({ query() {}, options: { host: '', user: 'a' } }), refused(/what names a server/));
    assert.throws(() => redis({ sendCommand() {}, options: { socket: {} } }), refused(/what names a server/));
    assert.equal(connectionOf(postgres('postgres:///a?host=/socket')), 'postgres:///a?host=/socket');
    assert.equal(connectionOf(redis('unix:///socket')), 'unix:///socket');
  } finally {
    if (PGHOST !== undefined) process.env.PGHOST = PGHOST;
  }
});

test('a URL of etcd names several members, and its user; what is said beside it counts', () => {
  const read = (connection) => {
    const { urls, ...rest } = readConnection(connection);
    return { hosts: urls.map(({ host }) => host), ...rest };
  };
  const none = { tls: {}, username: '', password: '' };
  assert.deepEqual(read('http://a:1,https://b:2'), { hosts: ['a:1', 'b:2'], ...none });
  assert.deepEqual(read({ url: 'http://a:1' }), { hosts: ['a:1'], ...none });
  assert.deepEqual(read({ endpoints: ['http://a:1', 'http://b:2'], url: 'http://c' }).hosts, ['a:1', 'b:2']);
  const of = { hosts: ['a', 'b'], tls: {}, username: 'é@', password: 'p:' };
  assert.deepEqual(read('http://%C3%A9%40:p%3A@a,http://other:one@b'), of);
  const said = { username: 'u', password: '%41' };
  assert.deepEqual(read({ url: 'https://x:y@a', ...said, ca: 'c' }), { hosts: ['a'], tls: { ca: 'c' }, ...said });
});

for (const [what, answer, connectionTo, message, more] of [
  [
    'speaks another protocol to "ioredis"',
    'HTTP/1.1 400 Bad Request\r\n\r\n',
    (port) => ({ host: '127.0.0.1', port }),
    /^Redis cannot be reached: .*\. What answers there does not speak the protocol of Redis\.$/s,
  ],
  ...Object.entries({
    'a URL': (port) => `rediss://127.0.0.1:${port}`,
    'options of "redis"': (port) => ({ socket: { host: '127.0.0.1', port, tls: true } }),
    'options of "ioredis"': (port) => ({ host: '127.0.0.1', port, tls: {} }),
  }).map(([how, to]) => [
    `answers nothing to ${how} with TLS`,
    null,
    to,
    /^Redis cannot be reached: .*\. Does that port expect TLS\?$/,
    { connectTimeout: 300 },
  ]),
  [
    'answers nothing, without TLS',
    null,
    (port) => `redis://127.0.0.1:${port}`,
    /^Redis cannot be reached: [^?]*300 ms\.$/,
    { connectTimeout: 300 },
  ],
]) {
  test(`redis: of a server that ${what} the error says so`, { timeout: limit(30_000) }, async (t) => {
    const sockets = new Set();
    const server = net.createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => answer !== null && socket.end(answer));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const manager = new LockManager({ store: redis(connectionTo(server.address().port), more) });
    t.after(() => manager.close());
    await assert.rejects(manager.acquireAsync('one'), { code: 'ERR_LOCK_STORE', message });
  });
}

for (const [what, says, message] of [
  [
    'says why, at a path',
    '-ERR max number of clients reached\r\n',
    'Connection is closed (ERR max number of clients reached)',
  ],
  [
    'says so in two parts',
    ['-ERR max number', ' of clients reached\r\n'],
    'Connection is closed (ERR max number of clients reached)',
  ],
  ['says nothing', [], 'Connection is closed'],
  ['says something else', '+OK\r\n', 'Connection is closed'],
]) {
  test(`ioredis: of a server that ends the connection at once, and ${what}, the error says that`, {
    timeout: limit(30_000),
  }, async (t) => {
    const server = net.createServer(async (socket) => {
      socket.on('error', () => {});
      socket.resume();
      for (const part of [says].flat()) {
        socket.write(part);
        // Else both come as one.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      socket.end();
    });
    const at = path.join(createFolder(t), 'socket');
    await new Promise((resolve) => server.listen(at, resolve));
    t.after(() => server.close());
    const connection = { path: at };
    const settings = { connectTimeout: 20_000 };
    await assert.rejects(
      connect({ connection, settings }, () => {}),
      {
        code: 'ERR_LOCK_STORE',
        isFinal: false,
        message: `Redis cannot be reached: ${message}.`,
      },
    );
  });
}

test('redis: of a port that nobody listens at nothing is said of TLS', { timeout: limit(30_000) }, async (t) => {
  for (const connection of ['rediss://127.0.0.1:1', { host: '127.0.0.1', port: 1, tls: {} }]) {
    const manager = new LockManager({ store: redis(connection) });
    t.after(() => manager.close());
    await assert.rejects(manager.acquireAsync('one'), { message: /^Redis cannot be reached: [^?]*ECONNREFUSED[^?]*$/ });
  }
});

const packet = (errno) => {
  const body = Buffer.concat([Buffer.from([0xff, errno & 0xff, errno >> 8]), Buffer.from('a reason')]);
  return Buffer.concat([Buffer.from([body.length, 0, 0, 0]), body]);
};
const report = (code) => {
  const body = Buffer.from(`SFATAL\0C${code}\0Ma reason\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
/** By the store: how its server refuses a connection, with codes of refusals for good, and of others. */
const REFUSALS = {
  mysql: {
    answer: (socket, errno) => socket.end(packet(errno)),
    connect: require('../../lib/stores/mysql/connect.js').connect,
    forGood: [1044, 1045, 1049, 1130, 1251, 1524, 1698],
    others: [1040, 1053, 1129, 1203],
  },
  postgres: {
    answer: (socket, code) => socket.once('data', () => socket.end(report(code))),
    connect: require('../../lib/stores/postgres/connect.js').connect,
    forGood: ['28000', '28P01', '3D000'],
    others: ['53300', '57P03', '08004'],
  },
};

for (const [kind, { answer, connect, forGood, others }] of Object.entries(REFUSALS)) {
  test(`${kind}: a refusal for good is told from one of a moment by its code`, {
    timeout: limit(60_000),
  }, async (t) => {
    for (const code of [...forGood, ...others]) {
      const server = net.createServer((socket) =>
        answer(
          socket.on('error', () => {}),
          code,
        ),
      );
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      t.after(() => server.close());
      const connection = { host: '127.0.0.1', port: server.address().port, user: 'u', password: 'p', database: 'd' };
      await assert.rejects(connect({ connection, settings: { connectTimeout: 20_000, heartbeat: 5000 } }), {
        code: 'ERR_LOCK_STORE',
        message: /cannot be reached: .*a reason/,
        isFinal: forGood.includes(code),
      });
    }
  });
}
