// A grant that was lost before its thread has seen it, as when the process was stopped meanwhile, is no grant: it is asked for again.

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const servers = require('../helpers/servers.js');
const { startMachine } = require('../helpers/store-processes.js');
const { pause, seen, stop } = require('../helpers/stores.js');

const KINDS = {
  mysql: { isThere: servers.hasMysql, start: servers.startMysql, make: mysql, settings: { heartbeat: 400 } },
  postgres: {
    isThere: servers.hasPostgres,
    start: servers.startPostgres,
    make: postgres,
    settings: { heartbeat: 400 },
  },
  redis: { isThere: servers.hasRedis, start: servers.startRedis, make: redis, settings: { lease: 1200 } },
  etcd: { isThere: servers.hasEtcd, start: servers.startEtcd, make: etcd, settings: { lease: 2000 } },
};
/** Longer than any of these lasts. */
const STOPPED_MS = 3000;

/** In the process: gets the lock, and does not look at it until the process was stopped. Returns whether it holds it. */
async function getLate(mine, verb, kind, url, settings) {
  const store = mine.open(kind, url, settings);
  const manager = new mine.sablock.LockManager({ store, allowMainThread: true });
  await manager.check();
  const awaitStop = () => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let last = Date.now(); ; last = Date.now()) {
      Atomics.wait(cell, 0, 0, 1);
      if (Date.now() - last > 1000) return;
    }
  };
  if (verb === 'acquire') {
    const { binding } = mine.require('../../lib/engine/thread.js');
    const { askStoreBlocking } = binding;
    binding.askStoreBlocking = (...args) => {
      const status = askStoreBlocking(...args);
      binding.askStoreBlocking = askStoreBlocking;
      awaitStop();
      return status;
    };
    return manager.acquire('late').locked;
  }
  const lock = manager.acquireAsync('late');
  // Until it is asked for: in microtasks, in which no grant comes to this thread.
  for (let tick = 0; tick < 10; tick += 1) await undefined;
  awaitStop();
  return (await lock).locked;
}

describe('each waits for a process of its own, mostly', { concurrency: 4 }, () => {
  for (const [kind, { isThere, start, make, settings }] of Object.entries(KINDS)) {
    for (const verb of ['acquireAsync', 'acquire']) {
      test(`${kind}: ${verb}() gives no lock that was lost before`, {
        skip: isThere ? false : `the server of ${kind} is not installed`,
        timeout: 60_000,
      }, async (t) => {
        const server = await start();
        t.after(() => server.stop());
        const here = new LockManager({ store: make(server.url) });
        t.after(() => here.close());
        const there = await startMachine(t);
        const isHeld = there.do(getLate, verb, kind, server.url, settings);
        await seen(async () => {
          const free = await here.acquireAsync('late', { ifAvailable: true });
          free?.unlock();
          if (free !== null) await pause(20);
          return free === null;
        });
        // The answer is on its way.
        await pause(300);
        await stop(there.child.pid);
        await pause(STOPPED_MS);
        there.signal('SIGCONT');
        assert.equal(await isHeld, true);
      });
    }
  }
});
