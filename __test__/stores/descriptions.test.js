// Descriptions of stores: the options that all have, and what makes two of them the same. No server is asked.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const vm = require('node:vm');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { descriptionOf, readDescription } = require('../../lib/stores/store.js');

const LONGEST = 2 ** 31 - 1;
const STORES = { etcd, mysql, postgres, redis };
const URLS = { etcd: 'http://host', mysql: 'mysql://host', postgres: 'postgres://host', redis: 'redis://host' };
const make = (kind, options) => STORES[kind](URLS[kind], options);
const settingsOf = (store) => readDescription(descriptionOf(store)).settings;

const COMMON = { namespace: 'sablock', connectTimeout: 5000 };
const SESSIONS = { ...COMMON, connections: 10, heartbeat: 5000 };
const LEASES = { ...COMMON, lease: 30_000, renew: 10_000 };
const DEFAULTS = { mysql: SESSIONS, postgres: SESSIONS, redis: { ...LEASES, replicas: 0 }, etcd: LEASES };

test('what is not given has the values that the guides say, by kind', () => {
  for (const [kind, expected] of Object.entries(DEFAULTS)) {
    for (const options of [undefined, {}, { connectTimeout: undefined, namespace: undefined }]) {
      assert.deepEqual(settingsOf(make(kind, options)), expected, kind);
    }
  }
});

/** By kind and option: the least and the most that there may be, with what else is given. */
const LIMITS = [
  ...Object.keys(STORES).map((kind) => [kind, 'connectTimeout', 1, LONGEST]),
  ...['mysql', 'postgres'].flatMap((kind) => [
    [kind, 'connections', 2, LONGEST],
    [kind, 'heartbeat', 50, LONGEST],
  ]),
  ['redis', 'lease', 100, LONGEST],
  ['etcd', 'lease', 2000, LONGEST],
  ['redis', 'replicas', 0, LONGEST],
  ...['redis', 'etcd'].map((kind) => [kind, 'renew', 10, 10_000, { lease: 20_001 }]),
];

test('an option may have its least and its most value, and none beyond them', () => {
  for (const [kind, name, least, most, beside = {}] of LIMITS) {
    for (const value of [least, most]) {
      assert.equal(settingsOf(make(kind, { ...beside, [name]: value }))[name], value, `${kind}: ${name}`);
    }
    for (const value of [least - 1, most + 1]) {
      const message = new RegExp(`"options.${name}" .*from ${least} to ${most}.*Received ${value}\\.`);
      assert.throws(() => make(kind, { ...beside, [name]: value }), { code: 'ERR_OUT_OF_RANGE', message });
    }
    assert.throws(() => make(kind, { ...beside, [name]: String(least) }), {
      code: 'ERR_INVALID_ARG_TYPE',
      message: new RegExp(`"options.${name}" .*a number`),
    });
  }
});

test('renewals are due after a third of the lease, in whole milliseconds', () => {
  for (const kind of ['redis', 'etcd']) assert.equal(settingsOf(make(kind, { lease: 20_000 })).renew, 6666);
});

test('two that are described alike are the same, in whatever order, and of whatever realm', () => {
  const one = { host: 'a', port: 1, tls: { ca: 'c', list: [{ a: 1, b: 2 }] } };
  const same = { tls: { list: [{ b: 2, a: 1 }], ca: 'c' }, port: 1, host: 'a' };
  const elsewhere = vm.runInNewContext(`(${JSON.stringify(one)})`);
  const bare = Object.assign(Object.create(null), one);
  const text = descriptionOf(redis(one, { lease: 1000, namespace: 'n' }));
  for (const connection of [same, elsewhere, bare]) {
    assert.equal(descriptionOf(redis(connection, { namespace: 'n', lease: 1000 })), text);
  }
  // The order of a list says something.
  const lists = [
    ['http://a', 'http://b'],
    ['http://b', 'http://a'],
  ];
  const [first, second] = lists.map((endpoints) => descriptionOf(etcd({ endpoints })));
  assert.notEqual(first, second);
  for (const other of [redis(one, { lease: 1000 }), redis({ ...one, port: 2 }, { lease: 1000, namespace: 'n' })]) {
    assert.notEqual(descriptionOf(other), text);
  }
});

test('bytes arrive as bytes, however deep they are', () => {
  const [ca, key] = [Buffer.from([0, 128, 255]), new Uint8Array([7, 0])];
  const { connection } = readDescription(descriptionOf(redis({ host: 'a', tls: { ca: [ca], key } })));
  assert.deepEqual(connection.tls, { ca: [ca], key: Buffer.from(key) });
});

test('a store is shown by its kind, without the password that may be in it', () => {
  for (const kind of Object.keys(STORES)) {
    const store = STORES[kind](URLS[kind].replace('://', '://user:secret@'));
    assert.equal(inspect(store), `[Store ${kind}]`);
    assert.deepEqual([store.kind, Object.isFrozen(store)], [kind, true]);
    assert.equal(JSON.stringify(store), JSON.stringify({ kind }));
  }
});

test('a store is made by its function only', () => {
  const { constructor: Store } = make('redis');
  assert.throws(() => new Store(Symbol('Store'), 'redis', '{}'), TypeError);
});
