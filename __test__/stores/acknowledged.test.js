// A time that is over while another holds the lock, as the store says: a time-out, and null of what has to be available.
//
// The verbs block this thread, which nobody else may need meanwhile.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { verbsOf } = require('../helpers/unacknowledged.js');

for (const [kind, [make, isThere, start]] of Object.entries(EVERY_STORE)) {
  test(`${kind} that answers: a time-out is one, and what is held is null`, {
    skip: isThere ? false : `${kind} is not installed`,
    timeout: limit(60_000),
  }, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    const managers = [1, 2].map(
      (number) =>
        new LockManager({ store: make(server.url, { connectTimeout: 5000 + number }), allowMainThread: true }),
    );
    t.after(() => Promise.all(managers.map((manager) => manager.close())));
    const [holder, manager] = managers;
    await manager.check();
    const lock = await holder.acquireAsync('job');
    for (const [verb, ask] of verbsOf(kind)) {
      await assert.rejects(ask(manager, { timeout: 2000 }), { code: 'ERR_LOCK_TIMEOUT' }, verb);
    }
    const waits = manager.acquireAsync('job');
    assert.equal(await manager.acquireAsync('job', { ifAvailable: true }), null);
    assert.equal(manager.acquire('job', { ifAvailable: true }), null);
    assert.equal(lock.unlock(), true);
    (await waits).unlock();
  });
}
