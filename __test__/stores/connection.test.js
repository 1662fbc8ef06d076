// What postgres(), redis() and etcd() refuse as a connection. No server is needed.

const assert = require('node:assert/strict');
const path = require('node:path');
const { test } = require('node:test');
const { etcd } = require('../../lib/stores/etcd.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');

const refused = (message) => ({ code: 'ERR_INVALID_ARG_TYPE', message });

test('a client in the place of its options is refused: it lives in another thread than the connection', () => {
  class Client {
    connect() {}
  }
  for (const create of [postgres, redis, etcd]) {
    assert.throws(() => create(new Client()), refused(/copied to another thread.*instance of Client/));
  }
});

test('a module whose path is not absolute is refused', () => {
  for (const [kind, create] of Object.entries({ postgres, redis })) {
    for (const module of ['./client.js', 'client', 5, null]) {
      assert.throws(() => create({ module }), refused(/^The "connection.module" argument must be the absolute path/));
    }
    assert.equal(create({ module: path.resolve('client.js') }).kind, kind);
  }
});

test('what is no URL of etcd is refused, and shown without its password', () => {
  assert.throws(
    () => etcd('localhost:2379'),
    refused(/"http:" or "https:", or several\. Received 'localhost:2379'\.$/),
  );
  assert.throws(() => etcd('user:secret@localhost'), refused(/Received '\.\.\.@localhost'\.$/));
  assert.throws(() => etcd({ module: path.resolve('client.js') }), refused(/URL of etcd/));
});
