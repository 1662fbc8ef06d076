// Redis says when it will not serve for a while: nothing is lost by it, waits go on, and who does not wait learns why.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { refusalOf } = require('../../lib/stores/redis/client.js');
const { tryAll } = require('../../lib/stores/redis/rights.js');
const { startProxy } = require('../helpers/proxy.js');
const { freePort, hasRedis, startRedis } = require('../helpers/servers.js');
const { messagesOf, seen } = require('../helpers/stores.js');

const options = { timeout: 60_000, skip: hasRedis ? false : 'redis-server is not installed' };
/** Longer than any of it lasts; what is held is renewed all the time. */
const SETTINGS = { lease: 60_000, renew: 50 };

/** Replies, as the sources of Redis have them, and whether the server serves later, never, or has said something else. */
const WORDS = [
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.', 'later'],
  ['CLUSTERDOWN The cluster is down', 'later'],
  ['LOADING Redis is loading the dataset in memory', 'later'],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'later'],
  ['MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.', 'later'],
  ['NOREPLICAS Not enough good replicas to write.', 'later'],
  ["OOM command not allowed when used memory > 'maxmemory'.", 'later'],
  ["READONLY You can't write against a read only replica.", 'later'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'later'],
  ['MOVED 3999 127.0.0.1:6381', 'never'],
  ['NOAUTH Authentication required.', 'never'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'never'],
  ["NOPERM User default has no permissions to run the 'eval' command", 'never'],
  ["ERR unknown command 'EVALSHA', with args beginning with: ", 'never'],
  // As Redis 7.0 and those before it say what a script may not do, then those after it, and Valkey.
  ["ERR The user executing the script can't run this command or subcommand script: d6, on @user_script:1.", 'never'],
  ["ERR The user executing the script can't publish to the channel mentioned in the command script: 81,", 'never'],
  ["ERR ACL failure in script: User any has no permissions to run the 'hset' command script: cf, on", 'never'],
  ['ERR ACL failure in script: No permissions to access a channel script: on @user_script:1.', 'never'],
  ['ERR Unknown Redis command called from script script: d6, on @user_script:1.', 'never'],
  ['ERR Unknown command called from script script: on @user_script:1.', 'never'],
  ['NOSCRIPT No matching script. Please use EVAL.', 'else'],
  ['NOSCRIPT No matching script.', 'else'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'else'],
];

test('a reply that is no answer says whether the server serves later, or never', () => {
  for (const [text, expected] of WORDS) {
    const error = refusalOf(new Error(text));
    const when = error?.isFinal === true ? 'never' : 'later';
    assert.equal(error === null ? 'else' : when, expected, text);
  }
});

test('a first connection is refused by what the server says for good, or unlike a server, and not by what passes', async () => {
  for (const [text, expected] of WORDS) {
    const asked = [];
    const said = new Error(text);
    const send = async ([command]) => {
      if (asked.push(command) === 2) throw said;
    };
    const outcome = await tryAll({ send }, 'channel', { namespace: 'n', lease: 1000 }).then(
      () => 'later',
      (error) => (error === said ? 'else' : `never, ${error.code}`),
    );
    const isRefused = expected === 'never' || text.startsWith('READONLY');
    assert.equal(outcome, isRefused ? 'never, ERR_LOCK_STORE' : expected, text);
    assert.deepEqual(asked, ['EVAL', 'EVALSHA', 'PUBLISH']);
  }
});

/** By the word of the reply: further arguments of the server, and how it begins and ends to say so. */
const REPLIES = {
  OOM: {
    begin: (server) => server.run('CONFIG', 'SET', 'maxmemory', '1'),
    end: (server) => server.run('CONFIG', 'SET', 'maxmemory', '0'),
  },
  BUSY: {
    args: ['--lua-time-limit', '10'],
    async begin(server) {
      server.run('EVAL', 'while true do end', '0').catch(() => {});
      await seen(() =>
        server.run('GET', 'any').then(
          () => false,
          ({ message }) => message.startsWith('BUSY'),
        ),
      );
    },
    end: (server) => server.run('SCRIPT', 'KILL'),
  },
  READONLY: {
    begin: (server) => server.run('REPLICAOF', '127.0.0.1', '1'),
    end: (server) => server.run('REPLICAOF', 'NO', 'ONE'),
  },
  LOADING: {
    // A millisecond for each key.
    args: ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'],
    async begin(server) {
      await server.run('EVAL', "for key = 1, 2000 do redis.call('SET', key, key) end", '0');
      await server.run('SAVE');
      await server.kill();
      await server.start();
    },
    end() {},
  },
};

const openStore = (t, url, settings) => {
  const manager = new LockManager({ store: redis(url, { ...SETTINGS, ...settings }) });
  t.after(() => manager.close());
  return manager;
};

for (const [reply, { args = [], begin, end }] of Object.entries(REPLIES)) {
  test(`${reply}: what is held is kept, waits go on, and a try says why it failed`, options, async (t) => {
    const server = await startRedis(args);
    t.after(() => server.stop());
    const namespace = `replies ${reply}`;
    const events = messagesOf(t, namespace);
    const manager = openStore(t, server.url, { namespace });
    const held = await manager.acquireAsync('held', { fence: true });
    await begin(server);
    const wait = manager.acquireAsync('wait');
    // The first tries may find the connection that has ended.
    await seen(async () => {
      const error = await manager.acquireAsync('try', { ifAvailable: true }).catch((reason) => reason);
      assert.equal(error.code, 'ERR_LOCK_STORE');
      return error.message.startsWith(`Redis failed: ${reply} `) && error.cause.message.startsWith(reply);
    });
    const told = (event) => events.some((message) => message.event === event);
    await seen(() => told('unreachable'));
    assert.equal(held.locked, true);
    await end(server);
    assert.equal((await wait).unlock(), true);
    await seen(() => told('reconnected'));
    assert.equal(held.unlock(), true);
    assert.equal((await manager.stats()).losses, 0);
  });
}

test('NOSCRIPT: a server that has forgotten the script gets it again', options, async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const manager = openStore(t, server.url, { namespace: 'flushed scripts' });
  const held = await manager.acquireAsync('held');
  await server.run('SCRIPT', 'FLUSH');
  assert.equal((await manager.acquireAsync('try', { ifAvailable: true })).unlock(), true);
  assert.equal(held.unlock(), true);
  assert.equal((await manager.stats()).connects, 1);
});

test(
  'MOVED: a client that knows one node of a cluster is refused, with what to give: one of the cluster is served',
  options,
  async (t) => {
    const nodes = [];
    for (let index = 0; index < 2; index += 1) {
      const port = await freePort();
      const args = ['--cluster-enabled', 'yes', '--cluster-port', String(port)];
      const node = await startRedis(args);
      t.after(() => node.stop());
      nodes.push({ node, port });
    }
    const [one, other] = nodes;
    await one.node.run('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await other.node.run('CLUSTER', 'MEET', '127.0.0.1', String(one.node.port), String(one.port));
    await seen(async () => /cluster_slots_assigned:16384/.test(await other.node.run('CLUSTER', 'INFO')));
    await seen(async () => /cluster_state:ok/.test(await other.node.run('CLUSTER', 'INFO')));
    const manager = openStore(t, other.node.url, { namespace: 'moved' });
    await assert.rejects(manager.acquireAsync('elsewhere'), (error) => {
      assert.equal(error.code, 'ERR_LOCK_STORE');
      assert.match(error.message, /one node of a cluster \(MOVED \d+ .*module/);
      return true;
    });
    for (const name of ['redis', 'ioredis']) {
      Object.assign(process.env, { SABLOCK_TEST_REDIS: other.node.url, SABLOCK_TEST_PACKAGE: name });
      const module = require.resolve('../programs/redis-cluster-client.js');
      const [here, there] = [1, 2].map((index) =>
        openStore(t, { module }, { namespace: name, connectTimeout: 4000 + index }),
      );
      const lock = await here.acquireAsync('elsewhere');
      const wait = there.acquireAsync('elsewhere');
      await seen(async () => (await there.query()).held.length === 1);
      lock.unlock();
      assert.equal((await wait).unlock(), true);
      // Managers of the other package connect with what the environment says then.
      await Promise.all([here.close(), there.close()]);
    }
  },
);

test('a failover to a replica behind the same address: what it has is kept, and waits go on', options, async (t) => {
  // Else each waits for further replicas before it sends its data.
  const args = ['--repl-diskless-sync-delay', '0'];
  const old = await startRedis(args);
  t.after(() => old.stop());
  const next = await startRedis([...args, '--replicaof', '127.0.0.1', String(old.port)]);
  t.after(() => next.stop());
  await seen(async () => /state=online/.test(await old.run('INFO', 'replication')));
  const proxy = await startProxy(t, old.url);
  const manager = openStore(t, proxy.url, { namespace: 'failed over', replicas: 1 });
  const held = await manager.acquireAsync('held', { fence: true });
  proxy.target = next.url;
  await next.run('REPLICAOF', 'NO', 'ONE');
  // Its connections stay, and only what it answers says that it is no primary any more.
  await old.run('REPLICAOF', '127.0.0.1', String(next.port));
  await seen(async () => /state=online/.test(await next.run('INFO', 'replication')));
  const lock = await manager.acquireAsync('asked', { fence: true });
  assert.ok(lock.fence > held.fence);
  assert.equal((await manager.stats()).connects, 2);
  const text = await next.run('HVALS', (await next.run('KEYS', '*:tickets'))[0]);
  assert.equal(text.length, 1);
  assert.deepEqual([held.unlock(), lock.unlock()], [true, true]);
});

test('a first connection to a replica is refused at once', options, async (t) => {
  const replica = await startRedis(['--replicaof', '127.0.0.1', '1']);
  t.after(() => replica.stop());
  const manager = openStore(t, replica.url, { namespace: 'replica' });
  await assert.rejects(manager.acquireAsync('refused'), { code: 'ERR_LOCK_STORE', message: /READONLY/ });
});

test('a server that closes idle connections: what is held is kept', options, async (t) => {
  const server = await startRedis(['--timeout', '1']);
  t.after(() => server.stop());
  const manager = openStore(t, server.url, { namespace: 'idle', renew: 4000 });
  const held = await manager.acquireAsync('held');
  const connects = async () => Number(/total_connections_received:(\d+)/.exec(await server.run('INFO', 'stats'))[1]);
  const before = await connects();
  // Each look is one.
  for (let looks = 1; (await connects()) - before <= looks; looks += 1) await new Promise((go) => setTimeout(go, 50));
  assert.equal(held.locked, true);
  assert.equal(await manager.request('another', () => 'granted'), 'granted');
  assert.equal(held.unlock(), true);
});

test('a server that accepts connections and answers nothing is given up after connectTimeout', options, async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const proxy = await startProxy(t, server.url);
  // A subscription, and what comes after it, is never answered.
  proxy.loses = (data, toServer, line) => {
    line.isDeaf ||= toServer && /subscribe/i.test(String(data));
    return line.isDeaf;
  };
  const manager = openStore(t, proxy.url, { namespace: 'silent', connectTimeout: 300 });
  await assert.rejects(manager.acquireAsync('never'), { code: 'ERR_LOCK_STORE', message: /300 ms/ });
  proxy.loses = () => false;
  assert.equal(await manager.request('never', () => 'granted'), 'granted');
});
