// Locks in Redis, on a real server, by both clients: processes stand for machines.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { ENQUEUE, SCRIPT } = require('../../lib/stores/redis/script.js');
const { binding, thread } = require('../../lib/engine/thread.js');
const { redis } = require('../../lib/stores/redis.js');
const { startProxy } = require('../helpers/proxy.js');
const { hasRedis, startRedis } = require('../helpers/servers.js');
const { borrowMachine } = require('../helpers/store-processes.js');
const { hold } = require('../helpers/names.js');
const { warningsOf } = require('../helpers/messages.js');
const { acquire, notInTheWeather, pause, seen, unlock } = require('../helpers/stores.js');
const { conform } = require('./conformance.js');

/** A tenth of what users have, and less. */
const LEASE = 1500;

const { options, open, openThere, server, tickets } = conform({
  kind: 'redis',
  make: redis,
  skip: hasRedis ? false : 'redis-server is not installed',
  start: startRedis,
  clear: (there) => there.ask('FLUSHALL'),
  /** Returns the number of tickets. */
  async count(there) {
    const keys = await there.ask('KEYS', '*:line');
    const counts = await Promise.all(keys.map((key) => there.ask('ZCARD', key)));
    return counts.reduce((sum, number) => sum + Number(number), 0);
  },
  lease: LEASE,
});

test('fences grow, over a server that forgets everything too', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  let last = BigInt(Date.now()) * 1000n;
  for (let round = 0; round < 30; round += 1) {
    const mine = await here.request('fences', { fence: true }, (lock) => lock.fence);
    const theirs = await there.do((mine) => mine.manager.request('fences', { fence: true }, (lock) => lock.fence));
    assert.ok(mine > last && theirs > mine, `${last} ${mine} ${theirs}`);
    last = theirs;
    if (round % 10 === 0) await server().run('FLUSHALL');
  }
});

test(
  "FLUSHALL: reported at the next renewal; the request rejects with the callback's error as its cause",
  options,
  async (t) => {
    const held = await hold('flushed', { fence: true }, open(t));
    await server().run('FLUSHALL');
    await new Promise((resolve) => held.lock.signal.addEventListener('abort', resolve));
    const { reason } = held.lock.signal;
    assert.deepEqual([reason.code, reason.reason, held.lock.locked], ['ERR_LOCK_LOST', 'taken', false]);
    const failure = new Error('of the callback');
    held.fail(failure);
    await assert.rejects(held.request, (error) => error === reason && error.cause === failure);
  },
);

test(
  'a server that forgets a ticket and hears of it once more has another: the loss is reported',
  options,
  async (t) => {
    const held = await hold('heard twice', { fence: true }, open(t));
    const keys = ['line', 'tickets', 'name'].map((kind) => server().run('KEYS', `*:${kind}`));
    const [[line], [all], [name]] = await Promise.all(keys);
    const [id] = await server().run('HKEYS', all);
    // In one step, since each renewal that finds no ticket would tell.
    const script = `redis.call('FLUSHALL')\n${SCRIPT}`;
    const answer = await server().run('EVAL', script, '3', line, all, name, ENQUEUE, id, '60000', '0', 'nowhere', '');
    assert.equal(answer[0], 1);
    assert.ok(BigInt(answer[1]) > held.lock.fence);
    await new Promise((resolve) => held.lock.signal.addEventListener('abort', resolve));
    assert.equal(held.lock.signal.reason.reason, 'taken');
    await seen(async () => (await tickets()) === 0);
    held.release();
    await assert.rejects(held.request, { code: 'ERR_LOCK_LOST' });
  },
);

test('a connection that is cut and comes back in time loses nothing, and waits go on', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  const lock = await here.acquireAsync('cut');
  const wait = there.do(acquire, 'cut');
  await seen(async () => (await tickets()) === 2);
  for (const type of ['normal', 'pubsub']) await server().run('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
  await pause(500);
  assert.equal(lock.locked, true);
  assert.equal(lock.unlock(), true);
  assert.equal(await wait, true);
  await there.do(unlock, 'cut');
});

test('a message of a grant is enough: with it comes the fence, and the mark of who ended inside', {
  ...options,
  skip: options.skip || notInTheWeather('messages are lost there'),
}, async (t) => {
  const [here, there] = [open(t, { renew: 10_000 }), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'told', { fence: true });
  const fence = await there.do((mine) => mine.held.get('told').fence);
  const wait = here.acquireAsync('told', { fence: true });
  await seen(async () => (await tickets()) === 2);
  there.do(() => process.exit()).catch(() => {});
  const lock = await wait;
  assert.ok(lock.fence > fence);
  assert.equal(lock.abandoned, true);
  assert.equal((await here.stats()).renewals, 0);
  lock.markConsistent();
  assert.equal(lock.unlock(), true);
});

test('answers that were on their way when the message of a grant came say nothing any more', {
  ...options,
  skip: options.skip || notInTheWeather('messages are lost there'),
}, async (t) => {
  const proxy = await startProxy(t, server().url);
  const here = new LockManager({ store: redis(proxy.url, { lease: 20_000, renew: 50 }) });
  t.after(() => here.close());
  const there = await borrowMachine(t);
  await openThere(there);
  await there.do(acquire, 'late');
  const wait = here.acquireAsync('late');
  await seen(async () => (await here.stats()).renewals > 1);
  let answers = 0;
  proxy.weather = (line, toServer, data) => {
    if (toServer && data.includes('EVALSHA')) line.isOfCalls = true;
    if (!toServer && line.isOfCalls) answers += 1;
    return [{ data, ms: !toServer && line.isOfCalls ? 300 : 0 }];
  };
  await seen(() => answers > 3);
  await there.do(unlock, 'late');
  const lock = await wait;
  // The renewals that were on their way have come.
  const renewals = async () => (await here.stats()).renewals;
  const before = await renewals();
  await seen(async () => (await renewals()) > before + 10);
  assert.equal(lock.locked, true);
  assert.equal(lock.unlock(), true);
});

test('a lock that is granted to a wait of which its thread does not know is free again', options, async (t) => {
  const here = open(t, { lease: 50_000, renew: 500 });
  await here.request('known', () => {});
  // As at the end of the stack.
  thread.add = () => {
    delete thread.add;
    throw new RangeError('Maximum call stack size exceeded');
  };
  await assert.rejects(here.acquireAsync('unknown'), RangeError);
  assert.equal((await here.acquireAsync('unknown', { timeout: 10_000 })).unlock(), true);
  const { takeTold } = binding;
  binding.takeTold = () => {
    binding.takeTold = takeTold;
    throw new RangeError('Maximum call stack size exceeded');
  };
  await assert.rejects(here.acquireAsync('not made'), RangeError);
  assert.equal((await here.acquireAsync('not made', { timeout: 10_000 })).unlock(), true);
});

test('a process that ends while it shares a lock leaves no mark', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'shared', { mode: 'shared' });
  there.do(() => process.exit()).catch(() => {});
  const lock = await here.acquireAsync('shared', { timeout: 10_000 });
  assert.equal(lock.abandoned, false);
  assert.equal(lock.unlock(), true);
});

test('a connection that ends while the other is opened is not kept, nor is the other', options, async (t) => {
  const lone = await startRedis();
  t.after(() => lone.stop());
  process.env.SABLOCK_TEST_REDIS = lone.url;
  const here = open(t, {}, { module: require.resolve('../programs/half-open-redis-client.js') });
  await assert.rejects(here.acquireAsync('half open'), { code: 'ERR_LOCK_STORE' });
  assert.equal((await here.acquireAsync('half open')).unlock(), true);
  // The keeper's connections, and the one that looks.
  await seen(async () => /connected_clients:3\r/.test(await lone.run('INFO', 'clients')));
});

test('messages of grants that are all lost are made up for by the renewals', options, async (t) => {
  process.env.SABLOCK_TEST_REDIS = server().url;
  const deaf = open(t, {}, { module: require.resolve('../programs/deaf-redis-client.js') });
  const lock = await open(t).acquireAsync('unheard');
  const wait = deaf.acquireAsync('unheard');
  await seen(async () => (await tickets()) === 2);
  lock.unlock();
  assert.equal((await wait).unlock(), true);
});

test('the client "ioredis", by a module of the user', options, async (t) => {
  process.env.SABLOCK_TEST_REDIS = server().url;
  const module = require.resolve('../programs/ioredis-client.js');
  const here = open(t, {}, { module });
  const lock = await here.acquireAsync('by ioredis', { fence: true });
  assert.ok(lock.fence > 0n);
  const wait = open(t).acquireAsync('by ioredis');
  await seen(async () => (await tickets()) === 2);
  lock.unlock();
  assert.equal((await wait).unlock(), true);
});

test(
  'a server that evicts keys: warned once, with the first request; a server that does not is not',
  options,
  async (t) => {
    const warnings = warningsOf(t, 'SABLOCK_STORE_EVICTS');
    const policies = ['noeviction', 'allkeys-lru', 'allkeys-lru', 'volatile-ttl'];
    t.after(() => server().run('CONFIG', 'SET', 'maxmemory-policy', 'noeviction'));
    for (const [index, policy] of policies.entries()) {
      await server().run('CONFIG', 'SET', 'maxmemory-policy', policy);
      // A store of its own, which connects anew.
      const manager = open(t, { connectTimeout: 4000 + index });
      assert.equal(await manager.request('evicted', () => 'granted'), 'granted');
    }
    // They come in order, so that one too many would be among them.
    await seen(() => warnings.some(({ message }) => message.includes('volatile-ttl')));
    const named = warnings.map(({ message }) => /maxmemory-policy ([\w-]+)/.exec(message)[1]);
    assert.deepEqual(named, ['allkeys-lru', 'volatile-ttl']);
    assert.equal(warnings[0].name, 'LockStoreWarning');
  },
);

for (const [client, module] of [
  ['redis', undefined],
  ['ioredis', require.resolve('../programs/ioredis-client.js')],
]) {
  test(
    `query() by "${client}" shows who holds elsewhere, and not who waits or whose time is over`,
    options,
    async (t) => {
      process.env.SABLOCK_TEST_REDIS = server().url;
      const here = open(t, {}, module === undefined ? server().url : { module });
      const [there, other] = [await borrowMachine(t), await borrowMachine(t)];
      for (const machine of [there, other]) await openThere(machine);
      await there.do(acquire, 'shown', { mode: 'shared' });
      const wait = here.acquireAsync('shown');
      await seen(async () => (await tickets()) === 2);
      const behind = other.do(acquire, 'shown');
      await seen(async () => (await tickets()) === 3);
      const [hash] = await server().run('KEYS', '*:tickets');
      await server().run('HSET', hash, 'of the past', '1 5 0 somebody');
      const { held } = await here.query();
      assert.deepEqual(
        held.map(({ name, mode, clientId }) => [name, mode, clientId.startsWith('redis-')]),
        [['shown', 'shared', true]],
      );
      await there.do(unlock, 'shown');
      const lock = await wait;
      assert.equal((await here.query()).held.length, 1);
      lock.unlock();
      assert.equal(await behind, true);
      await other.do(unlock, 'shown');
    },
  );
}

test('a user who may not read the settings of the server gets locks all the same', options, async (t) => {
  await server().run('ACL', 'SETUSER', 'modest', 'on', '>word', '~*', '&*', '+@all', '-info');
  const url = server().url.replace('redis://', 'redis://modest:word@');
  assert.equal(await open(t, {}, url).request('modest', () => 'granted'), 'granted');
});

test('a user who lacks a right that locks need is refused at once, with what the server says', options, async (t) => {
  const url = server().url.replace('redis://', 'redis://lacking:word@');
  for (const rule of ['-eval', '-time', 'resetkeys', 'resetchannels']) {
    await server().run('ACL', 'SETUSER', 'lacking', 'reset', 'on', '>word', '~*', '&*', '+@all', rule);
    await assert.rejects(
      open(t, {}, url).acquireAsync('lacking', { timeout: 10_000 }),
      { code: 'ERR_LOCK_STORE', message: /^Redis (?:failed|refuses): / },
      rule,
    );
  }
});

test('a message of somebody else on the channel of its grants is passed over', options, async (t) => {
  process.env.SABLOCK_TEST_REDIS = server().url;
  for (const connection of [server().url, { module: require.resolve('../programs/ioredis-client.js') }]) {
    const here = open(t, {}, connection);
    const lock = await here.acquireAsync('heard');
    for (const channel of await server().run('PUBSUB', 'CHANNELS')) await server().run('PUBLISH', channel, 'anything');
    await here.check();
    assert.equal(lock.unlock(), true);
  }
});

test('replicas: a grant that none has is given back, and what is held meanwhile is kept', options, async (t) => {
  // Else it waits for further replicas before it sends its data.
  await server().run('CONFIG', 'SET', 'repl-diskless-sync-delay', '0');
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(server().port)]);
  t.after(() => replica.stop());
  await seen(async () => /state=online/.test(await server().run('INFO', 'replication')));
  const here = open(t, { replicas: 1 });
  const lock = await here.acquireAsync('replicated');
  await replica.kill();
  const names = Array.from({ length: 8 }, (_, index) => `not replicated ${index}`);
  const waits = names.map((name) => here.acquireAsync(name, { timeout: 3 * LEASE }));
  for (const { reason } of await Promise.allSettled(waits)) assert.equal(reason.code, 'ERR_LOCK_TIMEOUT');
  assert.equal(lock.unlock(), true);
  await seen(async () => (await tickets()) === 0);
});

test('the keys of a name that nobody uses go after a day', options, async (t) => {
  await open(t).request('forgotten', { fence: true }, () => {});
  await seen(async () => (await tickets()) === 0);
  const keys = await server().run('KEYS', '*');
  assert.ok(keys.length > 0);
  for (const key of keys) {
    const left = Number(await server().run('TTL', key));
    assert.ok(left > 86_000 && left < 86_500, `${key}: ${left} s`);
  }
});

test('the keys of a name that is held alone, or marked, stay, and go a day after that', options, async (t) => {
  const keysOf = async () => (await server().run('KEYS', '*')).filter((key) => !key.includes('{rights}'));
  const times = async () => {
    const keys = await keysOf();
    return Promise.all(keys.map(async (key) => Number(await server().run('TTL', key))));
  };
  const here = open(t);
  const lock = await here.acquireAsync('weekly');
  const held = await times();
  assert.ok(held.length > 0 && held.every((time) => time === -1), String(held));
  const waiting = here.acquireAsync('weekly');
  lock.unlock();
  const next = await waiting;
  assert.ok((await times()).every((time) => time === -1));
  next.unlock();
  await seen(async () => (await times()).every((time) => time > 86_000));
  const key = (await keysOf()).find((each) => each.endsWith(':name'));
  assert.ok(key, 'the hash of the name');
  await server().run('HSET', key, 'mark', '1');
  const marked = await here.acquireAsync('weekly');
  assert.equal(marked.abandoned, true);
  marked.unlock();
  await seen(async () => (await tickets()) === 0);
  const left = await times();
  assert.ok(
    left.every((time) => time === -1),
    String(left),
  );
  await here.request('weekly', (again) => again.markConsistent());
  await seen(async () => (await times()).every((time) => time > 86_000));
});

test('bad options are refused before anything is connected', () => {
  assert.throws(() => redis('x', { lease: 1 }), { code: 'ERR_OUT_OF_RANGE' });
  for (const renew of [9, 751]) assert.throws(() => redis('x', { lease: 1500, renew }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => redis('x', { renew: '9' }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(() => redis('x', { replicas: 0.5 }), { code: 'ERR_OUT_OF_RANGE' });
  const circular = {};
  circular.socket = { circular };
  for (const wrong of [
    7,
    new URL('redis://x'),
    new Map(),
    circular,
    { at: new Date() },
    { module: './client.js' },
    { module: 7 },
  ]) {
    assert.throws(() => redis(wrong), { code: 'ERR_INVALID_ARG_TYPE' });
  }
});
