// The keys that stand for a name at a server: machines with other versions have the same, or would not exclude each other.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const threads = require('node:worker_threads');

/** The thread which started the lock worker is told nothing. */
threads.parentPort = { postMessage() {} };
const { hashOf } = require('../../lib/stores/retry.js');
const { MysqlKeeper } = require('../../lib/stores/mysql/keeper.js');
const { PostgresKeeper } = require('../../lib/stores/postgres/keeper.js');
const { createFolder } = require('../helpers/folder.js');
const { ticketOf } = require('../helpers/keepers.js');
const { binding } = require('../../lib/engine/thread.js');

/** Names, and the namespace of each. */
const NAMES = [
  ['sablock', 'a name'],
  ['sablock', ''],
  ['', 'sablocka name'],
  ['sablocka', ' name'],
  ['näme', '\ud800'],
];
const KEYS = {
  postgres: [
    '-1473536013706009790',
    '-5227934967741800558',
    '-246653169124178099',
    '6277974421502757608',
    '-1548212980116930500',
  ],
  mysql: [
    'sablock:4b7d46f8efddf481076485752329470802d91fa8abc18979981002b2',
    'sablock:bcb46af9919b813f0a9142bcbdbe3c09ac1511b895e3cf017228a645',
    'sablock:e9c776c39069af7b9322d6abdbdb241e4c8fea5c39b33e22f3bba3e7',
    'sablock:4ffdd1ad7960479f0a20da9f31c2aff7a1187dc094743f3bf9384578',
    'sablock:7d7198cd93b3904106adbba753ff46b277d2fc16940771e57e18a2de',
  ],
};

/** The answers of a server to its clients, by the kind: they exclude each other, and `asked` has the keys. */
const ANSWERS = {
  postgres: {
    Keeper: PostgresKeeper,
    verb: /^select pg_(try_advisory_lock|advisory_unlock)\(/,
    rows: (rows) => ({ rows }),
  },
  mysql: { Keeper: MysqlKeeper, verb: /(get_lock|release_lock)\(/, rows: (rows) => [rows] },
};

for (const [kind, { Keeper, verb, rows }] of Object.entries(ANSWERS)) {
  test(`${kind}: a name has the key that it has in every version, and no other name of any namespace has it`, async (t) => {
    t.mock.method(binding, 'beginLease', () => 1);
    t.mock.method(binding, 'extendLease', () => true);
    t.mock.method(binding, 'endLease', () => {});
    const [holders, asked] = [new Map(), []];
    let clients = 0;
    const connect = async () => {
      clients += 1;
      const id = clients;
      const query = async (text, values) => {
        const [, does] = verb.exec(text) ?? [];
        const [key] = values ?? [];
        if (does === undefined) return rows([{ id, pid: id, recovers: false, isReadOnly: 0 }]);
        asked.push(key);
        const isDone = (holders.get(key) ?? id) === id;
        if (isDone && does.includes('unlock')) holders.delete(key);
        else if (isDone && does.includes('release')) holders.delete(key);
        else if (isDone) holders.set(key, id);
        return rows([{ done: kind === 'mysql' ? Number(isDone) : isDone, id, pid: id }]);
      };
      return Object.assign(new EventEmitter(), { query, end: async () => {} });
    };
    const module = path.join(createFolder(t), 'client.js');
    fs.writeFileSync(module, '');
    require(module);
    require.cache[module].exports = { connect };
    t.after(() => delete require.cache[module]);
    const keys = [];
    for (const [namespace, name] of NAMES) {
      const settings = { namespace, connections: 2, heartbeat: 60_000, connectTimeout: 5000 };
      const keeper = new Keeper({ kind, connection: { module }, settings }, 0);
      assert.notEqual(await keeper.lock(ticketOf({ name, isTry: true })), null);
      keys.push(asked.at(-1));
      // Its last question is answered, and the session is over then.
      await keeper.close().catch(() => {});
    }
    assert.deepEqual(keys, KEYS[kind]);
  });
}

test('redis, etcd: a name has the hash that it has in every version', () => {
  assert.deepEqual(
    NAMES.map(([, name]) => hashOf(name)),
    [
      '0Gv0zHeUdbohJtT9vcsu2eTQ8XqCAg1l5WfPa6zER1M',
      '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
      'aA4ImIuAdWtD47EfKbBNSUX3P3Pdgn0yxx4pYbslWfs',
      'lzGD1srL3ysVqjafQ0w_wMaaGUNaXor9Ibg3b-ZzXN4',
      'IFAi40KLfIJ2zyR7NuTlEttWUeXLNHLCU9nuiTqKx1A',
    ],
  );
});
