// A refusal of a server for good is an error at once, whoever waits; and a connection that was forgotten while it was idle costs
// nobody an error.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { startProxy } = require('../helpers/proxy.js');
const servers = require('../helpers/servers.js');
const { seen } = require('../helpers/stores.js');

const options = (isThere, name) => ({ timeout: 60_000, skip: isThere ? false : `${name} is not installed` });

function open(t, store) {
  const manager = new LockManager({ store });
  t.after(() => manager.close());
  return manager;
}

/** By store: whether there is a server, how it is started, and its locks. */
const STORES = {
  redis: [servers.hasRedis, servers.startRedis, (url) => redis(url)],
  mysql: [servers.hasMysql, servers.startMysql, (url) => mysql(url, { heartbeat: 60_000 })],
  postgres: [servers.hasPostgres, servers.startPostgres, (url) => postgres(url, { heartbeat: 60_000 })],
  etcd: [servers.hasEtcd, servers.startEtcd, (url) => etcd(url)],
};
const VERBS = {
  check: (locks) => locks.check().then(() => true),
  ifAvailable: (locks) => locks.request('idle one', { ifAvailable: true }, (lock) => lock !== null),
  request: (locks) => locks.request('idle', { timeout: 20_000 }, (lock) => lock !== null),
};

for (const [kind, [isThere, start, make]] of Object.entries(STORES)) {
  test(`${kind}: a connection that a load balancer forgot fails no verb`, options(isThere, kind), async (t) => {
    const server = await start();
    t.after(() => server.stop());
    const proxy = await startProxy(t, server.url);
    for (const [verb, call] of Object.entries(VERBS)) {
      const locks = open(t, make(proxy.url));
      const lines = new Set();
      proxy.loses = (_, _toServer, line) => {
        lines.add(line);
        return false;
      };
      // More than one connection, where each call has its own.
      await Promise.all([1, 2, 3].map((number) => locks.request(`warm before ${verb} ${number}`, () => {})));
      await locks.check();
      const old = new Set(lines);
      let forgotten = 0;
      // The next byte on its way to the server, on any of them, finds the connection gone.
      proxy.loses = (_, toServer, line) => {
        if (!old.has(line)) return false;
        if (toServer) {
          forgotten += 1;
          line.reset();
        }
        return true;
      };
      assert.equal(await call(locks), true, verb);
      assert.ok(forgotten > 0, verb);
      proxy.loses = () => false;
      await locks.close();
    }
  });
}

const COMMANDS = 'eval evalsha expire hdel hget hincrby hset persist publish subscribe time zadd zrange zrank zrem';

test('redis: a user who lacks a right is refused at once', options(servers.hasRedis, 'redis'), async (t) => {
  const server = await servers.startRedis();
  t.after(() => server.stop());
  for (const command of COMMANDS.split(' ')) {
    await server.ask('ACL', 'SETUSER', `no-${command}`, 'on', '>secret', '~*', '&*', '+@all', `-${command}`);
    const url = Object.assign(new URL(server.url), { username: `no-${command}`, password: 'secret' }).href;
    const locks = open(t, redis(url));
    const refused = {
      code: 'ERR_LOCK_STORE',
      message: /(no permissions to run|can't run this command).* needs the rights to run EVAL, /,
    };
    await assert.rejects(locks.acquireAsync('a', { timeout: 30_000 }), refused, command);
    await locks.close();
  }
});

test(
  'redis: the rights that a refusal names are enough for all that locks do',
  options(servers.hasRedis, 'redis'),
  async (t) => {
    const server = await servers.startRedis();
    t.after(() => server.stop());
    const urlOf = (username) => Object.assign(new URL(server.url), { username, password: 'secret' }).href;
    const setUser = (name, ...rights) =>
      server.run('ACL', 'SETUSER', name, 'on', '>secret', '~sablock:*', '&sablock:*', '-@all', ...rights);
    await setUser('none');
    const { message } = await open(t, redis(urlOf('none')))
      .acquireAsync('one')
      .catch((error) => error);
    const named = /The user needs the rights to run (.*)\.$/.exec(message)[1].split(/, | and /);
    await setUser('modest', ...named.map((name) => `+${name}`));
    const [locks, near, other] = [urlOf('modest'), urlOf('modest'), server.url].map((url, index) =>
      open(t, redis(url, { renew: 10_000, replicas: index === 1 ? 1 : 0 })),
    );
    const held = await other.acquireAsync('held', { mode: 'shared' });
    const waits = locks.acquireAsync('held');
    await seen(async () => (await locks.query()).held.length === 1);
    held.unlock();
    assert.equal((await waits).unlock(), true);
    await locks.check();
    await assert.rejects(near.acquireAsync('counted', { ifAvailable: true }), {
      message: /^Of 1 replicas of Redis, 0 have/,
    });
  },
);

test('redis: a right that is taken away ends the waits', options(servers.hasRedis, 'redis'), async (t) => {
  const server = await servers.startRedis();
  t.after(() => server.stop());
  await server.run('ACL', 'SETUSER', 'fickle', 'on', '>secret', '~*', '&*', '+@all');
  const url = Object.assign(new URL(server.url), { username: 'fickle', password: 'secret' }).href;
  const [holder, locks] = [open(t, redis(server.url)), open(t, redis(url, { lease: 1500 }))];
  await holder.acquireAsync('a');
  const waiting = locks.acquireAsync('a');
  await server.run('ACL', 'SETUSER', 'fickle', '-hset');
  await assert.rejects(waiting, { code: 'ERR_LOCK_STORE', message: /The user needs the rights to run EVAL, / });
});

test(
  'postgres: a server that has no memory for more locks refuses them, and grants again when some are released',
  options(servers.hasPostgres, 'postgres'),
  async (t) => {
    const server = await servers.startPostgres({ max_locks_per_transaction: 10, max_connections: 20 });
    t.after(() => server.stop());
    const locks = open(t, postgres(server.url));
    const held = [];
    const full = /out of shared memory.*max_locks_per_transaction/;
    const fill = async () => {
      for (let number = 0; number < 20_000; number += 1) held.push(await locks.acquireAsync(`lock ${number}`));
    };
    await assert.rejects(fill(), { code: 'ERR_LOCK_STORE', message: full });
    await assert.rejects(locks.acquireAsync('another', { ifAvailable: true }), { message: full });
    for (const lock of held.splice(0, 100)) assert.equal(lock.unlock(), true);
    const another = await locks.acquireAsync('another', { timeout: 20_000 });
    assert.ok(held.every((lock) => lock.locked));
    for (const lock of [another, ...held]) lock.unlock();
  },
);

test(
  'postgres: the option query_timeout of the client gives up no place in line',
  options(servers.hasPostgres, 'postgres'),
  async (t) => {
    const server = await servers.startPostgres();
    t.after(() => server.stop());
    // Each with connections of its own.
    const urlWith = (name, value) => `${server.url}?${name}=${value}`;
    const urls = [server.url, urlWith('query_timeout', 200), urlWith('connect_timeout', 9)];
    const [holder, first, second] = urls.map((url) => open(t, postgres(url)));
    const held = await holder.acquireAsync('a');
    const order = [];
    const blocked = async () => {
      const rows = await server.ask(
        "select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted",
      );
      return rows[0].n;
    };
    const waits = [];
    for (const [index, locks] of [first, second].entries()) {
      waits.push(locks.request('a', () => order.push(index)));
      await seen(async () => (await blocked()) > index);
    }
    // Longer than that option.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    held.unlock();
    await Promise.all(waits);
    assert.deepEqual(order, [0, 1]);
  },
);
