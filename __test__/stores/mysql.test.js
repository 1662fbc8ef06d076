// Locks in MySQL, on a real server, which is MariaDB here: what this store does that others of sessions do not.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const mysql2 = require('mysql2');
const { LockManager } = require('../..');
const { mysql } = require('../../lib/stores/mysql.js');
const { limit } = require('../helpers/limits.js');
const store = require('../helpers/mysql.js');
const { hasMysql, startMysql } = require('../helpers/servers.js');
const { borrowMachine } = require('../helpers/store-processes.js');
const { acquire, seen, stop, unlock } = require('../helpers/stores.js');
const { conformSessions } = require('./session-conformance.js');

const GUIDE = path.join(__dirname, '..', '..', 'docs', 'guides', 'locks-among-machines.md');
const { open, openThere, options, server, waiting } = store;

/** An administrator ends all sessions of the tests. */
async function endAll({ query }) {
  const sessions = await query('select id from information_schema.processlist where id <> connection_id()');
  for (const { id } of sessions) await query('kill ?', [id]).catch(() => {});
}

const optionsOf = (url) => {
  const { hostname: host, port, username: user, pathname } = new URL(url);
  return { host, port: Number(port), user, database: pathname.slice(1) };
};

conformSessions('mysql', mysql, store, {
  endAll,
  looksFor: /from information_schema\.processlist where id in/,
  connections: {
    'big numbers as text': (url) => ({ ...optionsOf(url), supportBigNumbers: true, bigNumberStrings: true }),
    'values as they come': (url) => ({ ...optionsOf(url), typeCast: false }),
    'rows without names': (url) => ({ ...optionsOf(url), rowsAsArray: true }),
    'rows without names, by a URL': (url) => `${url}?rowsAsArray=true`,
    'rows by table': (url) => ({ ...optionsOf(url), nestTables: true }),
  },
});

test('a shared lock is refused before anything is asked of a server', async (t) => {
  const manager = new LockManager({ store: mysql('mysql://root@127.0.0.1:1/any'), allowMainThread: true });
  t.after(() => manager.close());
  const shared = { mode: 'shared' };
  const refused = { name: 'NotSupportedError', message: /"shared"/ };
  await assert.rejects(
    manager.request('a', shared, () => {}),
    refused,
  );
  await assert.rejects(
    manager.request(['a', 'b'], shared, () => {}),
    refused,
  );
  await assert.rejects(manager.acquireAsync('a', shared), refused);
  assert.throws(() => manager.requestSync('a', shared, () => {}), refused);
  assert.throws(() => manager.acquire('a', shared), refused);
});

test('machines are served in the order in which they came', options, async (t) => {
  const here = open(t);
  const machines = [await borrowMachine(t), await borrowMachine(t), await borrowMachine(t)];
  for (const machine of machines) await openThere(machine);
  const lock = await here.acquireAsync('in order');
  const order = [];
  const waits = [];
  for (const [index, machine] of machines.entries()) {
    waits.push(machine.do(acquire, 'in order').then(() => order.push(index)));
    await seen(async () => (await waiting()) === index + 1);
  }
  lock.unlock();
  for (const [index, machine] of machines.entries()) {
    await waits[index];
    await machine.do(unlock, 'in order');
  }
  assert.deepEqual(order, [0, 1, 2]);
});

test('more names are waited for than there are connections that wait', options, async (t) => {
  const [here, there] = [open(t, { connections: 3 }), await borrowMachine(t)];
  await openThere(there);
  const names = Array.from({ length: 8 }, (_, index) => `turn ${index}`);
  for (const name of names) await there.do(acquire, name);
  const got = names.map((name) => here.acquireAsync(name));
  await seen(async () => (await waiting()) > 0);
  // Any of them may be released first.
  for (const index of [6, 0, 7, 3, 1, 5, 2, 4]) {
    await there.do(unlock, names[index]);
    const lock = await got[index];
    assert.equal(lock.unlock(), true);
  }
});

test('waits that end by time, by a signal and by a kill leave nothing at the server', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'given up');
  await assert.rejects(here.acquireAsync('given up', { timeout: 200 }), { code: 'ERR_LOCK_TIMEOUT' });
  await seen(async () => (await waiting()) === 0);
  const controller = new AbortController();
  const aborted = here.acquireAsync('given up', { signal: controller.signal });
  await seen(async () => (await waiting()) === 1);
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await seen(async () => (await waiting()) === 0);
  const waits = here.acquireAsync('given up');
  await seen(async () => (await waiting()) === 1);
  // Others' kills are none of this request's: it waits on.
  const [{ id }] = await server().query("select id from information_schema.processlist where state = 'User lock'");
  await server().query('kill query ?', [id]);
  await there.do(unlock, 'given up');
  assert.equal((await waits).unlock(), true);
  assert.equal(await there.do(acquire, 'given up'), true);
});

test('a server that stops answering: the loss is reported when its time is over', options, async (t) => {
  const here = open(t);
  const lock = await here.acquireAsync('silent');
  const { pid } = server();
  await stop(pid);
  t.after(() => process.kill(pid, 'SIGCONT'));
  const refused = assert.rejects(here.check(), { code: 'ERR_LOCK_STORE' });
  await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  assert.equal(lock.signal.reason.reason, 'unreachable');
  await refused;
});

test('a session that nothing comes from is ended by the server, after five heartbeats', options, async (t) => {
  const [here, there] = [open(t), await borrowMachine(t)];
  await openThere(there);
  await there.do(acquire, 'paused');
  there.signal('SIGSTOP');
  t.after(() => there.signal('SIGCONT'));
  assert.equal((await here.acquireAsync('paused')).unlock(), true);
});

test('a server that is read-only is refused', {
  skip: hasMysql ? false : 'MariaDB is not installed',
  timeout: limit(60_000),
}, async (t) => {
  const replica = await startMysql({ 'read-only': 1 });
  t.after(() => replica.stop());
  const manager = new LockManager({ store: mysql(replica.url) });
  t.after(() => manager.close());
  await assert.rejects(manager.acquireAsync('a'), { code: 'ERR_LOCK_STORE', message: /read-only/ });
});

test('the three lines of SQL take a fence of 64 bits, that of a server with a large number', {
  skip: hasMysql ? false : 'MariaDB is not installed',
  timeout: limit(60_000),
}, async (t) => {
  const numbered = await startMysql({ 'server-id': 200 });
  t.after(() => numbered.stop());
  const [, type] = /ADD COLUMN fence .*; -- in MySQL: (.*)/.exec(fs.readFileSync(GUIDE, 'utf8'));
  await numbered.query('create table report (id int, total int)');
  await numbered.query('insert into report values (1, 0)');
  await numbered.query(`alter table report add column fence ${type} not null default 0`);
  const manager = new LockManager({ store: mysql(numbered.url) });
  t.after(() => manager.close());
  await manager.request('fenced', { fence: true }, async ({ fence }) => {
    assert.ok(fence > 2n ** 63n, `${fence}`);
    const write = 'update report set total = ?, fence = ? where id = ? and fence <= ?';
    const { affectedRows } = await numbered.query(write, [5, fence, 1, fence]);
    assert.equal(affectedRows, 1);
    assert.equal((await numbered.query(write, [6, fence - 1n, 1, fence - 1n])).affectedRows, 0);
  });
});

test('the options of a pool and of a connection lead to their server', options, async (t) => {
  const { port } = server();
  const own = { host: '127.0.0.1', port, user: 'root' };
  const pool = mysql2.createPool(own);
  const connection = mysql2.createConnection(own);
  t.after(() => Promise.all([pool.promise().end(), connection.promise().end()]));
  const here = open(t);
  const lock = await here.acquireAsync('one place');
  for (const given of [own, pool, pool.promise(), connection, connection.promise(), { uri: server().url }]) {
    assert.equal(await open(t, {}, given).acquireAsync('one place', { ifAvailable: true }), null);
  }
  lock.unlock();
});

test('a password that is wrong, and a database that is not there, are refused at once', options, async (t) => {
  const url = new URL(`mysql://root@127.0.0.1:${server().port}/mysql`);
  for (const [name, value] of [
    ['password', 'wrong'],
    ['pathname', '/nowhere'],
  ]) {
    const wrong = new URL(url);
    wrong[name] = value;
    const manager = new LockManager({ store: mysql(wrong.href) });
    t.after(() => manager.close());
    const error = await manager.acquireAsync('a').catch((thrown) => thrown);
    assert.equal(error.code, 'ERR_LOCK_STORE');
    assert.match(error.message, /^MySQL cannot be reached: (Access denied|Unknown database)/);
  }
});

test('bad options are refused before anything is connected', () => {
  const bad = (connection, settings) => () => mysql(connection, settings);
  for (const none of [undefined, '', 'x', 'mysql:///app', {}, { user: 'x' }, { query() {} }]) {
    assert.throws(bad(none), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  for (const connections of [1, 2.5]) {
    assert.throws(bad('mysql://x/y', { connections }), { code: 'ERR_OUT_OF_RANGE' });
  }
  assert.throws(bad('mysql://x/y', { heartbeat: 49 }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(bad({ host: 'x', password: () => 'secret' }), { code: 'ERR_INVALID_ARG_TYPE', message: /password/ });
});
