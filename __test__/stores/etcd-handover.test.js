// A lock in etcd is handed over by two calls; what is left when the second is withdrawn.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { etcd } = require('../../lib/stores/etcd.js');
const { startProxy } = require('../helpers/proxy.js');
const { hasEtcd, startEtcd } = require('../helpers/servers.js');
const { seen, storeOf } = require('../helpers/stores.js');

const { options, open, server } = storeOf({
  kind: 'etcd',
  make: etcd,
  skip: hasEtcd ? false : 'etcd is not installed',
  start: startEtcd,
  // Nothing is renewed meanwhile.
  settings: { lease: 600_000 },
});

const base64 = (text) => Buffer.from(text).toString('base64');
/** All keys, in the order in which they were made, as text. */
async function keysOf() {
  const all = { key: base64('\0'), range_end: base64('\0'), sort_order: 'ASCEND', sort_target: 'CREATE' };
  const { kvs = [] } = await server().call('kv/range', all);
  return kvs.map(({ key, create_revision }) => ({ key: Buffer.from(key, 'base64').toString(), create_revision }));
}
const markOf = async () => (await keysOf()).find(({ key }) => key.endsWith(':held'))?.create_revision;
const isQueued = async () => (await keysOf()).filter(({ key }) => !key.endsWith(':held')).length === 2;

/** Returns how many transactions the server has answered. */
async function transactions() {
  const text = await (await fetch(`${server().url}/metrics`)).text();
  return Number(/^grpc_server_handled_total\{grpc_code="OK",grpc_method="Txn",.*\} (\d+)$/m.exec(text)[1]);
}

for (const mode of ['exclusive', 'shared']) {
  test(`who waits has asked once; a handover is a release and a grant (${mode})`, options, async (t) => {
    const [here, there] = [open(t), open(t, { connectTimeout: 4999 })];
    await there.request(`${mode} before`, () => {});
    const lock = await here.acquireAsync(mode);
    // The release of the one before.
    await seen(async () => (await keysOf()).length === 2);
    const before = await transactions();
    const wait = there.acquireAsync(mode, { mode });
    await seen(isQueued);
    await there.check();
    // One of these is the check.
    assert.equal((await transactions()) - before, 2);
    lock.unlock();
    const next = await wait;
    assert.equal((await transactions()) - before, 4);
    assert.deepEqual([next.abandoned, next.unlock()], [false, true]);
  });
}

test('a wait that is withdrawn while its grant is on its way leaves no mark', options, async (t) => {
  const proxy = await startProxy(t, server().url);
  const [here, far] = [open(t), open(t, {}, proxy.url)];
  const lock = await here.acquireAsync('withdrawn');
  const mark = await markOf();
  const controller = new AbortController();
  const wait = far.acquireAsync('withdrawn', { signal: controller.signal });
  await seen(isQueued);
  await far.check();
  // The next question arrives, and the answer does not.
  proxy.loses = (data, toServer) => {
    if (toServer && data.includes('kv/txn')) proxy.cut();
    return false;
  };
  lock.unlock();
  await seen(async () => ![undefined, mark].includes(await markOf()));
  controller.abort();
  await assert.rejects(wait, { name: 'AbortError' });
  proxy.loses = () => false;
  proxy.heal();
  const next = await here.acquireAsync('withdrawn');
  assert.deepEqual([next.abandoned, next.unlock()], [false, true]);
});
