// Copies of the package of several versions share a store during a deployment: what stands for a name there never changes without a
// new version of the protocol. The keys are written out here as version 93cb67b makes them (MySQL's: the first that had them); what its script of Redis does beside
// ours is in redis-steps.test.js.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const EVERY_STORE = require('../helpers/every-store.js');
const { MysqlKeeper } = require('../../lib/stores/mysql/keeper.js');
const { PostgresKeeper } = require('../../lib/stores/postgres/keeper.js');
const verbs = require('../../lib/stores/verbs.js');
const { limit } = require('../helpers/limits.js');

const NAME = 'the name';
/** Keys, of `sablock` and the name. */
const USER_LOCK = 'sablock:50089db88dfa61f7edb609f589ff7e48c6ed0c42cc02309336a23d2b';
const ADVISORY = '1122907036183247174';
const HASH = 'AbcTwx-E0Affu85RiQ5-pCMc8gdUgYHvJdkaQX3dGQg';
const PREFIX = `sablock/${HASH}/`;

const base64 = (text) => Buffer.from(text).toString('base64');
const text = (encoded) => Buffer.from(encoded, 'base64').toString();
const SUFFIX = { exclusive: '', shared: '_shared' };

/** By kind: `hold(server, mode)` holds the name as the other version does, until the function is called that it resolves to; `isHeld(server)` is whether that one finds it held alone. */
const THEIRS = {
  mysql: {
    async hold(server) {
      const client = await require('mysql2/promise').createConnection(server.url);
      await client.query('select get_lock(?, 60)', [USER_LOCK]);
      return () => client.end();
    },
    async isHeld(server) {
      const [{ isFree }] = await server.query('select is_free_lock(?) as isFree', [USER_LOCK]);
      return Number(isFree) === 0;
    },
  },
  postgres: {
    async hold(server, mode) {
      const { Client } = require('pg');
      const client = new Client({ connectionString: server.url });
      await client.connect();
      await client.query(`select pg_advisory_lock${SUFFIX[mode]}(${ADVISORY})`);
      return () => client.end();
    },
    async isHeld(server) {
      const [{ had }] = await server.query(`select pg_try_advisory_lock_shared(${ADVISORY}) as had`);
      return !had;
    },
  },
  redis: {
    async hold(server, mode) {
      const keys = ['line', 'tickets', 'name'].map((kind) => `sablock:{${HASH}}:${kind}`);
      const [seconds] = await server.run('TIME');
      const ticket = `${(Number(seconds) + 600) * 1000} 1 ${mode === 'shared' ? 1 : 0} nobody`;
      await server.run('ZADD', keys[0], '1', 'theirs');
      await server.run('HSET', keys[1], 'theirs', ticket);
      await server.run('HSET', keys[2], 'place', '1', 'fence', '1');
      return () => server.run('DEL', ...keys);
    },
    async isHeld(server) {
      const tickets = await server.run('HVALS', `sablock:{${HASH}}:tickets`);
      return tickets.length === 1 && /^\d+ [1-9]\d* 0 \S+$/.test(tickets[0]);
    },
  },
  etcd: {
    async hold(server, mode) {
      const key = base64(`${PREFIX}1-1`);
      await server.call('kv/put', { key, value: base64(`${mode === 'shared' ? 's' : 'x'} theirs`) });
      return () => server.call('kv/deleterange', { key });
    },
    async isHeld(server) {
      const range = { key: base64(PREFIX), range_end: base64(`${PREFIX.slice(0, -1)}0`) };
      const { kvs = [] } = await server.call('kv/range', range);
      return kvs.length === 1 && text(kvs[0].value).startsWith('x ');
    },
  },
};

for (const [kind, [make, isThere, start, settings, canShare]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: limit(60_000) };
  test(`${kind}: a name is held for both versions when one of them holds it`, options, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    const manager = new LockManager({ store: make(server.url, settings) });
    t.after(() => manager.close());
    const isAvailable = (mode) => manager.request(NAME, { mode, ifAvailable: true }, (lock) => lock !== null);
    const modes = canShare ? ['exclusive', 'shared'] : ['exclusive'];
    for (const theirs of modes) {
      const free = await THEIRS[kind].hold(server, theirs);
      for (const ours of modes) {
        const areBothShared = [theirs, ours].every((mode) => mode === 'shared');
        assert.equal(await isAvailable(ours), areBothShared, `${ours} beside ${theirs}`);
      }
      await free();
    }
    const lock = await manager.acquireAsync(NAME);
    assert.equal(await THEIRS[kind].isHeld(server), true);
    lock.unlock();
  });
}

test('the numbers by which copies of one version understand each other stay as they are', () => {
  assert.deepEqual(
    { ...verbs },
    {
      PROTOCOL: 1,
      OPEN: 0,
      LOCK: 1,
      CALL: 2,
      TRY: 1,
      FENCE: 2,
      LOSSES: [null, 'unreachable', 'taken', 'closed', 'worker'],
      UNREACHABLE: 1,
      TAKEN: 2,
    },
  );
});

/** Returns the keys by which a keeper of sessions asks for names. */
async function keysOf(Keeper, namespace, names) {
  const keeper = new Keeper({ settings: { namespace, connections: 2, heartbeat: 1000 } }, 0);
  let asked;
  keeper.connection.current = {
    id: 1,
    holders: async (keys) => {
      asked = keys;
      return [{ key: keys[0], isShared: false, id: 7, pid: 8 }];
    },
  };
  const [{ name, clientId, pid }] = await keeper.query({ names });
  assert.deepEqual([name, clientId.split('-').at(-1), pid], [names[0], '7', 8]);
  return asked;
}

for (const [Keeper, isKey, known] of [
  [MysqlKeeper, (key) => /^sablock:[0-9a-f]{56}$/.test(key), USER_LOCK],
  [PostgresKeeper, (key) => BigInt.asIntN(64, BigInt(key)) === BigInt(key), ADVISORY],
]) {
  test(`${Keeper.name}: names of any 16-bit units, in any namespace, have keys of their own that the server takes`, async () => {
    assert.deepEqual(await keysOf(Keeper, 'sablock', [NAME]), [known]);
    const names = ['', '1', 'a', 'A', 'a ', 'ab', 'b', '\0', '\ud800', '\udc00', '\ufffd', 'x'.repeat(10_000)];
    const all = [];
    for (const namespace of ['', 'a', 'A', '1', '\ud800', '\udc00', 'x'.repeat(1000)]) {
      all.push(...(await keysOf(Keeper, namespace, names)));
    }
    assert.equal(new Set(all).size, 7 * names.length);
    assert.ok(all.every(isKey));
  });
}
