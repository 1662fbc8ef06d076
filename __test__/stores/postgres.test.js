// Locks in PostgreSQL, on a real server: what this store does that others of sessions do not.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { postgres } = require('../../lib/stores/postgres.js');
const { hasPgBouncer, startPgBouncer } = require('../helpers/servers.js');
const { borrowMachine } = require('../helpers/store-processes.js');
const store = require('../helpers/postgres.js');
const { acquire, beginInOrder, fencesShared, seen, showsSharers, unlock } = require('../helpers/stores.js');
const { conformSessions } = require('./session-conformance.js');

const { HEARTBEAT, granted, open, openThere, options, server, waiting } = store;

conformSessions('postgres', postgres, store, {
  endAll: ({ query }) =>
    query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sablock'"),
  looksFor: /not granted and pid = any/,
  connections: { 'values in binary': (url) => ({ connectionString: url, binary: true }) },
});

test('shared locks are shared among processes, behind an exclusive one that waits they queue', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  const first = await here.acquireAsync('shared', { mode: 'shared' });
  const beside = await here.acquireAsync('shared', { mode: 'shared' });
  assert.equal(await there.do(acquire, 'shared', { mode: 'shared' }), true);
  const alone = here.acquireAsync('shared');
  first.unlock();
  beside.unlock();
  await seen(async () => (await waiting()) === 1);
  assert.equal(await there.do(acquire, 'shared', { mode: 'shared', ifAvailable: true }), false);
  await there.do(unlock, 'shared');
  assert.equal((await alone).unlock(), true);
});

test(
  'one of two shared locks of a process that ends leaves the other: who asks again queues behind a writer',
  options,
  async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    const shared = { mode: 'shared' };
    const [first, beside] = [await here.acquireAsync('two', shared), await here.acquireAsync('two', shared)];
    first.unlock();
    const alone = there.do(acquire, 'two');
    await seen(async () => (await waiting()) === 1);
    let isIn = false;
    const again = here.request('two', shared, () => {
      isIn = true;
    });
    await seen(async () => isIn || (await waiting()) === 2);
    assert.equal(isIn, false);
    beside.unlock();
    assert.equal(await alone, true);
    await there.do(unlock, 'two');
    await again;
  },
);

test('the fence of a shared lock is not below the last exclusive one', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await fencesShared(here, there);
});

test('of a shared name that is held here, query() shows the holders elsewhere too', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await showsSharers('postgres', here, there);
});

/** Sessions of an earlier test may be about to end. */
const signalAll = (sessions, signal) => {
  for (const { pid } of sessions) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }
};

test('a server that stops answering: the loss is reported when its time is over, not before', options, async (t) => {
  const here = open(t);
  const lock = await here.acquireAsync('silent');
  const pids = await server().query("select pid from pg_stat_activity where application_name = 'sablock'");
  const begun = performance.now();
  signalAll(pids, 'SIGSTOP');
  const refused = assert.rejects(here.check(), { code: 'ERR_LOCK_STORE' });
  t.after(() => signalAll(pids, 'SIGCONT'));
  await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  const after = performance.now() - begun;
  assert.equal(lock.signal.reason.reason, 'unreachable');
  assert.ok(after >= 1.5 * HEARTBEAT, `after ${after} ms`);
  await refused;
});

test('what is refused: a pooler in transaction mode, and a standby says so by itself', options, async (t) => {
  if (!hasPgBouncer) return t.skip('PgBouncer is not installed');
  const bouncer = await startPgBouncer(server().port, 'transaction');
  t.after(() => bouncer.stop());
  const manager = new LockManager({ store: postgres(bouncer.url) });
  t.after(() => manager.close());
  await assert.rejects(
    manager.request('pooled', () => {}),
    { code: 'ERR_LOCK_STORE', message: /pooler in transaction mode/ },
  );
  await seen(async () => (await granted()) === 0);
});

test('a pooler in session mode is used', options, async (t) => {
  if (!hasPgBouncer) return t.skip('PgBouncer is not installed');
  const bouncer = await startPgBouncer(server().port, 'session');
  t.after(() => bouncer.stop());
  const manager = new LockManager({ store: postgres(bouncer.url) });
  t.after(() => manager.close());
  const lock = await manager.acquireAsync('pooled');
  assert.equal(await open(t).acquireAsync('pooled', { ifAvailable: true }), null);
  assert.equal(lock.unlock(), true);
});

test('bad options are refused before anything is connected', options, () => {
  const bad = (connection, settings) => () => postgres(connection, settings);
  assert.throws(bad(undefined), { code: 'ERR_INVALID_ARG_TYPE' });
  for (const connections of [1, 2.5]) assert.throws(bad('x', { connections }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(bad('x', { namespace: 7 }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(bad({ host: 'x', password: () => 'secret' }), { code: 'ERR_INVALID_ARG_TYPE', message: /password/ });
  assert.throws(() => new LockManager({ store: {} }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(() => new LockManager({ store: postgres('x'), scope: 'machine' }), { code: 'ERR_INVALID_ARG_TYPE' });
});

test('shared requests of one thread begin in the order of the calls', options, (t) => beginInOrder(open(t)));
