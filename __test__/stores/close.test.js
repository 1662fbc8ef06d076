// A manager that is closed: at once, or once its holders have released; and beside a server that says nothing.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before, test } = require('node:test');
const { LockManager } = require('../..');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { hold } = require('../helpers/names.js');
const { startProxy } = require('../helpers/proxy.js');
const { startRunning } = require('../helpers/running.js');
const { seen } = require('../helpers/stores.js');
const { watched } = require('../helpers/threads.js');

const CLOSED = { code: 'ERR_LOCK_CLOSED' };

/** Returns how many connections of this machine lead to the port and have not ended, as Linux shows it. */
const connectionsTo = (port) => {
  const to = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = fs.readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1, -1);
  const isTo = (line) => {
    const [, , remote, state] = line.trim().split(/\s+/);
    return remote.endsWith(`:${to}`) && state === '01';
  };
  return lines.filter(isTo).length;
};

/** None of the options of `close()`. */
const WRONG = [
  null,
  1,
  'wait',
  true,
  [],
  new Date(),
  AbortSignal.abort(),
  { wait: 1 },
  { wait: null },
  { waits: true },
];

for (const [kind, [make, isThere, start, settings, canShare]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: limit(60_000) };
  let server;
  before(async () => {
    if (isThere) server = await start();
  });
  after(() => server?.stop());
  /** Each test has locks of its own. */
  const open = (namespace, more = {}, url = server.url) =>
    new LockManager({ store: make(url, { ...settings, namespace, ...more }) });

  test(`${kind}: close() with options that are none closes nothing: who waits goes on to wait`, options, async (t) => {
    const manager = open('wrong options');
    t.after(() => manager.close());
    const held = await hold('held', {}, manager);
    const waits = manager.acquireAsync('held');
    for (const wrong of WRONG) await assert.rejects(manager.close(wrong), { code: 'ERR_INVALID_ARG_TYPE' });
    assert.equal(held.lock.locked, true);
    const other = open('no options');
    const lock = await other.acquireAsync('not waited for');
    await other.close({});
    assert.deepEqual([lock.locked, lock.signal.reason.reason], [false, 'closed']);
    held.release();
    assert.equal((await waits).unlock(), true);
    await manager.check();
  });

  test(
    `${kind}: close({ wait: true }) refuses what is new and what waits, and leaves what is held to its holders`,
    options,
    async (t) => {
      const [here, there] = [5000, 5001].map((connectTimeout) => open('waits', { connectTimeout }));
      t.after(() => there.close());
      const held = await hold('held', {}, here);
      const lock = await here.acquireAsync(['one', 'another']);
      const shared = await here.acquireAsync('shared', { mode: canShare ? 'shared' : 'exclusive' });
      const waits = [here.acquireAsync('held'), here.acquireAsync(['free', 'one'])].map((wait) =>
        wait.catch((error) => error),
      );
      const elsewhere = there.acquireAsync('one');
      await there.check();
      const { signal } = new AbortController();
      for (const name of ['asked just now', ['just', 'now']]) {
        waits.push(here.acquireAsync(name, { signal }).catch((error) => error));
      }
      let isClosed = false;
      const closing = here.close({ wait: true }).then(() => {
        isClosed = true;
      });
      for (const { code } of await Promise.all(waits)) assert.equal(code, 'ERR_LOCK_CLOSED');
      for (const verb of ['acquireAsync', 'query', 'check', 'stats']) {
        await assert.rejects(here[verb]('new'), CLOSED, verb);
      }
      await assert.rejects(
        here.request('new', () => {}),
        CLOSED,
      );
      await assert.rejects(here.acquireAsync([]), CLOSED);
      for (const { locked, signal } of [held.lock, ...lock.locks, shared])
        assert.deepEqual([locked, signal.aborted], [true, false]);
      assert.equal(await there.acquireAsync('held', { ifAvailable: true }), null);
      lock.unlock();
      (await elsewhere).unlock();
      held.release();
      await held.request;
      assert.equal(isClosed, false, 'one is held still');
      assert.equal(shared.unlock(), true);
      await closing;
      for (const name of ['held', 'one', 'another', 'shared', 'free', 'asked just now', 'just', 'now']) {
        (await there.acquireAsync(name, { timeout: 10_000 })).unlock();
      }
      await here.close({ wait: true });
    },
  );

  test(`${kind}: close() after close({ wait: true }) waits no longer, and both are fulfilled`, options, async () => {
    const manager = open('no longer');
    const lock = await manager.acquireAsync('held');
    const closing = manager.close({ wait: true });
    await manager.close();
    await closing;
    assert.deepEqual([lock.locked, lock.signal.reason.reason], [false, 'closed']);
  });

  test(
    `${kind}: beside a server that says nothing more, close() takes a second, and the connection is gone`,
    {
      ...options,
      skip: options.skip || (process.platform === 'linux' ? false : 'looks into /proc'),
    },
    watched(async (t, threads) => {
      const proxy = await startProxy(t, server.url);
      const manager = open('silent', {}, proxy.url);
      const lock = await manager.acquireAsync('held');
      const port = Number(new URL(proxy.url).port);
      assert.ok(connectionsTo(port) > 0);
      const { ran } = await startRunning(threads);
      proxy.cut();
      t.after(() => proxy.heal());
      const begun = ran();
      await manager.close();
      const took = ran() - begun;
      assert.equal(lock.signal.reason.reason, 'closed');
      assert.ok(took < limit(2500), `close() took ${took.toFixed()} ms`);
      await seen(() => connectionsTo(port) === 0);
      const all = ran() - begun;
      assert.ok(all < limit(4000), `the connection was there for ${all.toFixed()} ms`);
    }),
  );

  // The last one: its server is gone then.
  test(`${kind}: close({ wait: true }) does not wait for what was lost`, options, async () => {
    const soon = settings.lease === undefined ? {} : { lease: 2000 };
    const manager = open('lost', soon);
    const lost = await manager.acquireAsync('lost');
    await server.kill();
    await seen(() => !lost.locked);
    await manager.close({ wait: true });
  });
}

test('close() takes options, of which it knows one, of any manager', async () => {
  for (const scope of ['process', 'machine']) {
    const manager = new LockManager({ scope });
    assert.equal(await manager.close({ wait: true }), undefined);
    assert.equal(await manager.close({}), undefined);
    for (const wrong of WRONG) await assert.rejects(manager.close(wrong), { code: 'ERR_INVALID_ARG_TYPE' });
    await manager.request('still served', () => {});
  }
});
