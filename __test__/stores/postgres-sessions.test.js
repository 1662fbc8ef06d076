// The sessions that locks in PostgreSQL live in: what the server is set to does not end them, and one that keeps no locks is refused.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { open, openBy, openThere, options, server, waiting } = require('../helpers/postgres.js');
const { startProxy } = require('../helpers/proxy.js');
const { startMachine } = require('../helpers/store-processes.js');
const { acquire, pause, seen, unlock } = require('../helpers/stores.js');

/** A second, and what it is waited for beyond it. */
const LIMIT = '1s';
const BEYOND_MS = 2500;

for (const [of, openHere] of [
  ['a server', open],
  ['a server that refuses one of the settings', (t, settings) => openBy(t, 'windows', settings)],
])
  test(
    `limits of time that the role has end neither a session that holds nor one that waits, of ${of}`,
    options,
    async (t) => {
      const names = [
        'statement_timeout',
        'lock_timeout',
        'idle_session_timeout',
        'idle_in_transaction_session_timeout',
      ];
      const known = (await server().query('select name from pg_settings where name = any($1)', [names])).map(
        ({ name }) => name,
      );
      for (const name of known) await server().query(`alter role sablock set ${name} = '${LIMIT}'`);
      t.after(() => server().query('alter role sablock reset all'));
      // Nothing that is asked in between keeps a session from being idle.
      const settings = { heartbeat: 20_000 };
      const [here, there] = [openHere(t, settings), await startMachine(t)];
      await openThere(there, settings);
      assert.equal(await there.do(acquire, 'limited'), true);
      const next = here.acquireAsync('limited');
      await seen(async () => (await waiting()) === 1);
      const sinceWhen = "select query_start::text from pg_stat_activity where wait_event_type = 'Lock'";
      const since = await server().query(sinceWhen);
      await pause(BEYOND_MS);
      assert.deepEqual(await server().query(sinceWhen), since, 'it has its place in line still');
      assert.equal(await there.do(unlock, 'limited'), true);
      const lock = await next;
      await pause(BEYOND_MS);
      assert.deepEqual([lock.locked, lock.unlock()], [true, true]);
      assert.equal((await here.stats()).connects, 1);
      assert.equal((await there.do((mine) => mine.manager.stats())).connects, 1);
    },
  );

test('a connection that can send nothing any more has no answer in that: what it holds is lost', options, async (t) => {
  const lock = await openBy(t, 'broken').acquireAsync('broken');
  const aborted = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  process.env.SABLOCK_TEST_BREAK = 'now';
  t.after(() => delete process.env.SABLOCK_TEST_BREAK);
  await aborted;
  assert.equal(lock.locked, false);
});

test('a server that falls silent while it is connected to is given up after connectTimeout', options, async (t) => {
  const proxy = await startProxy(t, server().url);
  for (const first of ['set_config', 'pg_try_advisory_lock']) {
    proxy.loses = (data, toServer, line) => {
      line.isDeaf ||= toServer && data.includes(first);
      return line.isDeaf;
    };
    const manager = open(t, { heartbeat: 5000, connectTimeout: 1000, namespace: first }, proxy.url);
    await assert.rejects(manager.acquireAsync('silent'), { code: 'ERR_LOCK_STORE', message: /1000 ms/ });
  }
});

test('a database that accepts advisory locks and ignores them is refused', options, async (t) => {
  const manager = openBy(t, 'lockless');
  await assert.rejects(manager.acquireAsync('ignored'), {
    code: 'ERR_LOCK_STORE',
    message: /accepts advisory locks and ignores them \(YugabyteDB before 2025\.1, CockroachDB\)/,
  });
});
