// Clients that a module of the program connects, `{ module }`, in the place of those that are installed.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const mysql = require('../../lib/stores/mysql/connect.js');
const postgres = require('../../lib/stores/postgres/connect.js');
const redis = require('../../lib/stores/redis/client.js');
const { createFolder } = require('../helpers/folder.js');
const { deferred } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const KINDS = { MySQL: mysql, PostgreSQL: postgres, Redis: redis };
const nothing = () => {};

/** A client that any of them takes, and what becomes known once it was ended. */
function createClient() {
  const ended = deferred();
  const end = async () => ended.resolve('ended');
  const client = Object.assign(new EventEmitter(), { query: nothing, end, destroy: end, sendCommand: (args) => args });
  return { client, ended: ended.promise };
}

/** Connects by a module whose `connect()` is this one. */
function connectBy(t, kind, connect, connectTimeout) {
  const module = path.join(createFolder(t), 'client.js');
  fs.writeFileSync(module, '');
  require(module);
  require.cache[module].exports = { connect };
  t.after(() => delete require.cache[module]);
  return KINDS[kind].connect({ connection: { module }, settings: { connectTimeout, heartbeat: 1000 } }, nothing);
}

for (const kind of Object.keys(KINDS)) {
  test(
    `${kind}: what connect() of a module returns is the client`,
    watched(async (t) => {
      const { client } = createClient();
      const connected = await connectBy(t, kind, async () => client, 60_000);
      if (kind === 'Redis') assert.deepEqual(connected.send(['PING']), ['PING']);
      else assert.equal(connected, client);
    }),
  );

  test(
    `${kind}: what connect() of a module fails with is said`,
    watched(async (t) => {
      const fails = async () => {
        throw new Error('not today');
      };
      await assert.rejects(connectBy(t, kind, fails, 60_000), { message: /not today/ });
    }),
  );

  test(
    `${kind}: a client that a module connects after the time for it is ended`,
    watched(async (t) => {
      const { client, ended } = createClient();
      const connects = deferred();
      await assert.rejects(
        connectBy(t, kind, () => connects.promise, 10),
        { code: 'ERR_LOCK_STORE', message: /within 10 ms/ },
      );
      connects.resolve(client);
      assert.equal(await ended, 'ended');
    }),
  );
}

test(
  'Redis: a refusal for good is told from one of a moment by its words, as the server says them to whoever connects',
  watched(async (t) => {
    for (const [message, isFinal] of [
      ['WRONGPASS invalid username-password pair or user is disabled.', true],
      ['NOAUTH Authentication required.', true],
      ['LOADING Redis is loading the dataset in memory', false],
      ['ERR max number of clients reached', false],
    ]) {
      const fails = async () => {
        throw new Error(message);
      };
      const said = `Redis cannot be reached: ${message.replace(/\.$/, '')}.`;
      await assert.rejects(connectBy(t, 'Redis', fails, 60_000), { code: 'ERR_LOCK_STORE', message: said, isFinal });
    }
  }),
);

/** Puts another in the place of an installed package. */
function replace(t, name, client) {
  const file = require.resolve(name, { paths: [require.resolve('redis'), __dirname] });
  require(file);
  const { exports } = require.cache[file];
  require.cache[file].exports = client;
  t.after(() => {
    require.cache[file].exports = exports;
  });
}

test(
  'Redis: an installed client connects by the options of the program, but never again by itself, and keeps no calls',
  watched(async (t) => {
    let given;
    const connect = async () => {};
    const redisClient = (options) => {
      given = options;
      return Object.assign(createClient().client, { connect });
    };
    class Ioredis extends EventEmitter {
      call = nothing;
      connect = connect;

      constructor(...options) {
        super();
        given = options;
      }
    }
    replace(t, '@redis/client', { createClient: redisClient, createCluster: nothing });
    const givenFor = async (connection) => {
      await redis.connect({ connection, settings: { connectTimeout: 777 } }, nothing);
      return given;
    };
    const socket = { connectTimeout: 777, reconnectStrategy: false };
    assert.deepEqual(await givenFor('redis://host'), { url: 'redis://host', socket, disableOfflineQueue: true });
    const own = { host: 'host', tls: true };
    const options = {
      socket: { ...own, connectTimeout: 1, reconnectStrategy: 5 },
      database: 3,
      disableOfflineQueue: false,
    };
    assert.deepEqual(await givenFor(options), {
      socket: { ...own, ...socket },
      database: 3,
      disableOfflineQueue: true,
    });

    // Before version 4 the other one is taken, of a URL too.
    replace(t, '@redis/client', { createClient: redisClient });
    const once = { lazyConnect: true, connectTimeout: 777, maxRetriesPerRequest: 0 };
    for (const client of [Ioredis, { default: Ioredis }]) {
      replace(t, 'ioredis', client);
      const [url, { retryStrategy, ...rest }] = await givenFor('redis://host');
      assert.deepEqual([url, rest, retryStrategy()], ['redis://host', once, null]);
      const [more, ...none] = await givenFor({
        host: 'host',
        db: 3,
        connectTimeout: 1,
        lazyConnect: false,
        retryStrategy,
      });
      assert.deepEqual([{ ...more, retryStrategy: 0 }, none], [{ host: 'host', db: 3, ...once, retryStrategy: 0 }, []]);
      assert.equal(more.retryStrategy(), null);
    }
  }),
);

test('Redis: a client of a cluster is told the first key of each call, and that it writes', async (t) => {
  const { client } = createClient();
  const said = [];
  Object.assign(client, { slots: [], sendCommand: (...call) => said.push(call) });
  const { send } = await connectBy(t, 'Redis', async () => client, 60_000);
  const calls = [['EVALSHA', 'sha', '3', 'line', 'tickets', 'name', 'verb'], ['HVALS', 'tickets'], ['TIME']];
  for (const call of calls) send(call);
  assert.deepEqual(
    said,
    ['line', 'tickets', undefined].map((key, index) => [key, false, calls[index]]),
  );
});

test('Redis: each channel of a client as "ioredis" has its own listener', async (t) => {
  const { client } = createClient();
  const subscribed = [];
  Object.assign(client, { call: (...args) => args, subscribe: async (channel) => subscribed.push(channel) });
  const { subscribe, send } = await connectBy(t, 'Redis', async () => client, 60_000);
  const heard = [];
  for (const channel of ['one', 'other']) await subscribe(channel, (message) => heard.push([channel, message]));
  for (const channel of ['other', 'none', 'one']) client.emit('message', channel, `to ${channel}`);
  assert.deepEqual(
    [subscribed, heard],
    [
      ['one', 'other'],
      [
        ['other', 'to other'],
        ['one', 'to one'],
      ],
    ],
  );
  assert.deepEqual(send(['TIME', 'any']), ['TIME', 'any']);
});
