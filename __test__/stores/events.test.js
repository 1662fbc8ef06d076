// The channel sablock:store: what becomes of connections to real servers.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { on } = require('node:events');
const { after, before, test } = require('node:test');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { collector } = require('../helpers/collect.js');
const { startKeeper } = require('../helpers/keepers.js');
const { startProxy } = require('../helpers/proxy.js');
const { needs } = require('../helpers/runtime.js');
const servers = require('../helpers/servers.js');
const { messagesOf, seen, stop } = require('../helpers/stores.js');

const ofModule = (name) => ({ module: require.resolve(`../programs/${name}.js`) });

const KINDS = {
  mysql: {
    isThere: servers.hasMysql,
    start: servers.startMysql,
    make: mysql,
    settings: { heartbeat: 300 },
    ways: { mysql2: (url) => url },
  },
  postgres: {
    isThere: servers.hasPostgres,
    start: servers.startPostgres,
    make: postgres,
    settings: { heartbeat: 300 },
    ways: { pg: (url) => url, 'pg, of a module': () => ofModule('slow-unlock-postgres-client') },
  },
  redis: {
    isThere: servers.hasRedis,
    start: servers.startRedis,
    make: redis,
    settings: { lease: 1000 },
    ways: {
      redis: (url) => url,
      ioredis: (url) => ({ host: '127.0.0.1', port: Number(new URL(url).port) }),
      'ioredis, of a module': () => ofModule('ioredis-client'),
    },
  },
  etcd: {
    isThere: servers.hasEtcd,
    start: servers.startEtcd,
    make: etcd,
    settings: { lease: 20_000 },
    ways: { etcd: (url) => url },
  },
};

/** The server of each kind: a test that ends it starts it again. */
const running = {};

const eventsOf = (messages) => messages.map(({ event }) => event);

for (const [kind, { isThere, start, make, settings, ways }] of Object.entries(KINDS)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: 60_000 };
  before(async () => {
    if (isThere) running[kind] = await start();
  });
  after(() => running[kind]?.stop());

  test(`${kind}: connected, unreachable and reconnected are published, each change once`, options, async (t) => {
    const server = running[kind];
    const namespace = `events of ${kind}`;
    const messages = messagesOf(t, namespace);
    const manager = new LockManager({ store: make(server.url, { ...settings, namespace }) });
    t.after(() => manager.close());
    await Promise.all([manager.request('one', () => {}), manager.request('two', () => {})]);
    await seen(() => messages.length > 0);
    assert.deepEqual(messages, [{ store: kind, namespace, event: 'connected', error: null }]);
    await server.kill();
    await seen(() => messages.length > 1);
    assert.equal(messages[1].event, 'unreachable');
    assert.equal(messages[1].error.code, 'ERR_LOCK_STORE');
    const wait = manager.request('one', () => 'again');
    await server.start();
    assert.equal(await wait, 'again');
    await seen(() => messages.length > 2);
    await manager.close();
    assert.deepEqual(eventsOf(messages), ['connected', 'unreachable', 'reconnected']);
  });

  test(`${kind}: a store that is reached at last is connected, not reconnected`, options, async (t) => {
    const server = running[kind];
    await server.kill();
    const namespace = `late, of ${kind}`;
    const messages = messagesOf(t, namespace);
    const manager = new LockManager({ store: make(server.url, { ...settings, namespace }) });
    t.after(() => manager.close());
    const unreached = assert.rejects(
      manager.request('one', { timeout: 1 }, () => {}),
      { code: 'ERR_LOCK_STORE' },
    );
    await seen(() => messages.length > 0);
    await unreached;
    await server.start();
    assert.equal(await manager.request('one', () => 'done'), 'done');
    await seen(() => messages.length > 1);
    assert.deepEqual(eventsOf(messages), ['unreachable', 'connected']);
  });

  test(
    `${kind}: a manager that is closed while it connects keeps no connection, and publishes nothing`,
    options,
    async (t) => {
      const server = running[kind];
      const proxy = await startProxy(t, server.url);
      const namespace = `closed early, of ${kind}`;
      const messages = messagesOf(t, namespace);
      proxy.delay = 50;
      const manager = new LockManager({ store: make(proxy.url, { ...settings, namespace }) });
      const refused = assert.rejects(manager.acquireAsync('one'), { code: 'ERR_LOCK_CLOSED' });
      await seen(() => proxy.taken > 0);
      manager.close();
      await refused;
      await seen(() => proxy.open === 0);
      assert.deepEqual(messages, []);
    },
  );

  for (const [how, connectionTo] of Object.entries(ways)) {
    test(`${how}: of a server that is silent while it connects no connection is kept`, options, async (t) => {
      const server = running[kind];
      const proxy = await startProxy(t, server.url);
      proxy.cut();
      process.env.SABLOCK_TEST_REDIS = process.env.SABLOCK_TEST_POSTGRES = proxy.url;
      const manager = new LockManager({ store: make(connectionTo(proxy.url), { ...settings, connectTimeout: 200 }) });
      t.after(() => manager.close());
      await seen(async () => {
        await assert.rejects(manager.acquireAsync('one'), { code: 'ERR_LOCK_STORE' });
        return proxy.accepted > 0;
      });
      proxy.heal();
      await seen(() => proxy.open === 0);
      // On a busy machine that may take longer than its connectTimeout, now and then.
      await seen(async () => (await manager.acquireAsync('one').catch(() => null))?.locked === true);
    });
  }

  test(`${kind}: a server that is not there is published as unreachable, with the reason`, options, async (t) => {
    const namespace = `nowhere of ${kind}`;
    const messages = messagesOf(t, namespace);
    const url = kind === 'etcd' ? 'http://127.0.0.1:1' : `${kind}://127.0.0.1:1/any`;
    const manager = new LockManager({
      store: make(url.replace('/any', kind === 'redis' ? '' : '/any'), { namespace }),
    });
    t.after(() => manager.close());
    for (let round = 0; round < 2; round += 1) {
      await assert.rejects(
        manager.request('one', () => {}),
        { code: 'ERR_LOCK_STORE' },
      );
    }
    await seen(() => messages.length > 0);
    assert.deepEqual(eventsOf(messages), ['unreachable']);
    assert.equal(messages[0].error.cause.code, 'ECONNREFUSED');
  });
}

for (const [kind, { isThere, make }] of Object.entries(KINDS).filter(
  ([, { settings }]) => settings.lease !== undefined,
)) {
  test(`${kind}: a server that stops answering is published as unreachable, and loses nothing until the lease ends`, {
    skip: isThere ? false : `the server of ${kind} is not installed`,
    timeout: 60_000,
  }, async (t) => {
    const server = running[kind];
    const namespace = `silence of ${kind}`;
    const messages = messagesOf(t, namespace);
    const store = make(server.url, { namespace, lease: 60_000, renew: 100, connectTimeout: 3000 });
    const manager = new LockManager({ store });
    t.after(() => manager.close());
    const lock = await manager.acquireAsync('kept');
    await seen(async () => (await manager.stats()).renewals > 1);
    await stop(server.pid);
    await assert.rejects(manager.check(), { code: 'ERR_LOCK_STORE' });
    await seen(() => messages.length > 1);
    assert.equal(messages[1].error.code, 'ERR_LOCK_STORE');
    process.kill(server.pid, 'SIGCONT');
    await seen(() => messages.length > 2);
    assert.deepEqual(eventsOf(messages).slice(0, 3), ['connected', 'unreachable', 'reconnected']);
    assert.equal(lock.locked, true);
    await server.kill();
    await seen(() => messages.at(-1).event === 'unreachable');
    await server.start();
    await seen(() => messages.at(-1).event === 'reconnected');
    // A Redis that writes nothing has forgotten it.
    await seen(() => lock.locked === (kind === 'etcd'));
  });
}

test('etcd: a call that is lost while others are answered does not make the store unreachable', {
  skip: servers.hasEtcd ? false : 'etcd is not installed',
  timeout: 60_000,
}, async (t) => {
  const server = running.etcd;
  const proxy = await startProxy(t, server.url);
  const namespace = 'one call lost';
  const messages = messagesOf(t, namespace);
  const store = etcd(proxy.url, { namespace, lease: 60_000, renew: 50, connectTimeout: 1000 });
  const manager = new LockManager({ store });
  t.after(() => manager.close());
  await manager.acquireAsync('kept');
  const renewed = async () => (await manager.stats()).renewals;
  let isLost = false;
  proxy.loses = (data, toServer, line) => {
    if (toServer && !isLost && data.includes('/kv/txn')) line.isLost = isLost = true;
    return line.isLost === true;
  };
  const before = await renewed();
  await assert.rejects(manager.check(), { code: 'ERR_LOCK_STORE' });
  assert.ok(isLost && (await renewed()) > before);
  await manager.check();
  assert.deepEqual(eventsOf(messages), ['connected']);
});

test('etcd: an answer after the end of the lease does not say that the store is reached again', {
  skip: servers.hasEtcd ? false : 'etcd is not installed',
  timeout: 60_000,
}, async (t) => {
  const server = running.etcd;
  const proxy = await startProxy(t, server.url);
  // Its clock goes as it is told; nothing looks at the lease meanwhile.
  const worker = startKeeper(
    t,
    etcd(proxy.url, { lease: 600_000, connectTimeout: 1000 }),
    `
    const { leaseTime } = binding;
    parentPort.on('message', async (later) => {
      binding.leaseTime = () => leaseTime() + later;
      parentPort.postMessage({ isAnswered: await keeper.check().then(() => true, () => false) });
    });`,
  );
  const events = [];
  worker.on('message', ({ sablockStore }) => sablockStore && events.push(sablockStore.event));
  const isAnswered = async (later = 0) => {
    worker.postMessage(later);
    for await (const [said] of on(worker, 'message')) if ('isAnswered' in said) return said.isAnswered;
  };
  await seen(() => isAnswered());
  proxy.loses = (data, toServer, line) => {
    line.isLost ||= toServer && data.includes('/kv/txn');
    return line.isLost;
  };
  assert.equal(await isAnswered(), false);
  proxy.loses = () => false;
  assert.equal(await isAnswered(700_000), true);
  assert.deepEqual(events, ['connected', 'unreachable']);
  assert.equal(await isAnswered(), true);
  assert.deepEqual(events, ['connected', 'unreachable', 'reconnected']);
});

test('a pooler in session mode is published', {
  skip: servers.hasPgBouncer && servers.hasPostgres ? false : 'pgbouncer or PostgreSQL is not installed',
  timeout: 60_000,
}, async (t) => {
  const server = running.postgres;
  const pooler = await servers.startPgBouncer(server.port, 'session');
  t.after(() => pooler.stop());
  const messages = messagesOf(t, 'pooled');
  for (const url of [server.url, pooler.url]) {
    const manager = new LockManager({ store: postgres(url, { namespace: 'pooled' }) });
    await manager.request('one', () => {});
    await manager.close();
  }
  await seen(() => messages.length > 2);
  assert.deepEqual(eventsOf(messages), ['connected', 'connected', 'pooler']);
});

test('who subscribes after others have unsubscribed hears of it, whatever was collected', {
  ...needs('complete collection', "V8's flags"),
  timeout: 60_000,
}, async (t) => {
  const collect = collector();
  const turns = async () => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  const namespace = 'of later subscribers';
  // Each is a store of its own, which is not reached.
  let connectTimeout = 5000;
  const nowhere = () => {
    connectTimeout += 1;
    const manager = new LockManager({ store: redis('redis://127.0.0.1:1', { namespace, connectTimeout }) });
    t.after(() => manager.close());
    return assert.rejects(manager.acquireAsync('a'), { code: 'ERR_LOCK_STORE' });
  };
  await nowhere();
  const note = () => {};
  subscribe('sablock:store', note);
  unsubscribe('sablock:store', note);
  await turns();
  collect();
  const messages = messagesOf(t, namespace);
  await turns();
  await nowhere();
  await seen(() => messages.length > 0);
});
