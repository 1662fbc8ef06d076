// The clock ends a wait for a lock among machines, too: what it has got by then goes to others, though its event loop does not come.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { startBusyActor } = require('../helpers/actors.js');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { seen } = require('../helpers/stores.js');
const { watched } = require('../helpers/threads.js');

const ask = async (here, kind, url, settings, names) => {
  const store = here.require(`../../lib/stores/${kind}.js`)[kind](url, settings);
  const manager = new here.sablock.LockManager({ store });
  await manager.check();
  const request = manager.request(names, { timeout: 1000 }, () => 'had');
  while (!(await manager.query()).pending.some(({ name }) => name === names.at(-1)));
  return [request];
};

/**
 * The ways of a request that does not come in time: of one name it is granted that; of several it gets the first, and waits for
 * the last.
 */
const WAYS = { 'what it was granted': ['late'], 'the first of several names': ['late', 'later'] };

for (const [kind, [make, isThere, start, settings]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: limit(60_000) };
  for (const [way, names] of Object.entries(WAYS)) {
    test(
      `${kind}: ${way} goes to others at the deadline of a request whose thread is busy`,
      options,
      watched(async (t, threads) => {
        const server = await start();
        t.after(() => server.stop());
        const here = new LockManager({ store: make(server.url, settings) });
        t.after(() => here.close());
        const last = names.at(-1);
        const held = await here.acquireAsync(last);
        // Not with the sessions of this thread.
        const there = { ...settings, connectTimeout: 5001 };
        const { asked, goOn } = await startBusyActor(threads, ask, kind, server.url, there, names);
        if (names.length === 1) held.unlock();
        const isFree = (name) => here.request(name, { ifAvailable: true }, (lock) => lock !== null);
        await seen(async () => !(await isFree('late')));
        assert.equal(await here.request('late', () => 'had'), 'had');
        goOn();
        assert.equal(await asked, 'ERR_LOCK_TIMEOUT');
        held.unlock();
        for (const name of names) assert.equal(await here.request(name, () => 'had'), 'had');
      }),
    );
  }
}
