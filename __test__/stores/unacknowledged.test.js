// A time that is over before the store has said anything: nobody knows whether others hold the lock, and the error says so. It is neither
// a time-out, which a job takes for "somebody else does it", nor null.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const { describe, test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockManager } = require('../..');
const clock = require('../../lib/load/clock.js');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { limit } = require('../helpers/limits.js');
const { startProxy } = require('../helpers/proxy.js');
const servers = require('../helpers/servers.js');

const STORES = {
  mysql: [mysql, 'mysql://user@127.0.0.1/app', servers.hasMysql, servers.startMysql],
  postgres: [postgres, 'postgres://user@127.0.0.1/app', servers.hasPostgres, servers.startPostgres],
  redis: [redis, 'redis://127.0.0.1', servers.hasRedis, servers.startRedis],
  etcd: [etcd, 'http://127.0.0.1', servers.hasEtcd, servers.startEtcd],
};

/** A server that accepts connections and never answers. */
async function startSilent(t) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server.address().port;
}

const withPort = (url, port) => {
  const full = new URL(url);
  full.port = String(port);
  return full.href;
};

/** The outages: how the store comes not to answer: its URL, and what makes it silent once it was reached. */
const OUTAGES = {
  'that was never reached': async (t, [, url]) => ({ url: withPort(url, await startSilent(t)) }),
  'that has answered before': async (t, [, , , start]) => {
    const server = await start();
    t.after(() => server.stop());
    const proxy = await startProxy(t, server.url);
    t.after(() => proxy.heal());
    return { url: proxy.url, silence: () => proxy.cut() };
  },
};

describe('a store that does not answer', { concurrency: 8 }, () => {
  for (const [kind, store] of Object.entries(STORES)) {
    for (const [when, prepare] of Object.entries(OUTAGES)) {
      test(`${kind} ${when}: every verb is ERR_LOCK_STORE with a cause, timed or tried, first or behind another`, {
        skip: store[2] ? false : `${kind} is not installed`,
        timeout: limit(120_000),
      }, async (t) => {
        const { url, silence } = await prepare(t, store);
        const isReached = silence !== undefined;
        const options = isReached ? {} : { connectTimeout: 2000 };
        const worker = new Worker(require.resolve('../helpers/unacknowledged.js'), {
          workerData: { kind, url, options, isReached },
        });
        t.after(() => worker.terminate());
        assert.deepEqual(await once(worker, 'message'), ['ready']);
        silence?.();
        worker.postMessage('begin');
        assert.deepEqual(await once(worker, 'message'), ['done']);
      });
    }
  }
});

// One after the other: they change the clock of this thread.
test('a time that is over when the store comes to be asked is no try, which may wait for an answer', {
  timeout: limit(60_000),
}, async (t) => {
  for (const [make, address] of Object.values(STORES)) {
    const url = withPort(address, await startSilent(t));
    const settings = { connectTimeout: limit(50_000) };
    const manager = new LockManager({ store: make(url, settings), allowMainThread: true });
    t.after(() => manager.close());
    const causeOf = () => manager.acquireAsync('job', { timeout: 100 }).catch(({ cause }) => cause.message);
    // Until then the lock worker has not begun.
    while (!/has not answered within/.test(await causeOf()));
    const { now } = clock;
    for (const ask of [
      async () => manager.acquireAsync('job', { timeout: 1000 }),
      async () => manager.acquire('job', { timeout: 1000 }),
      async () => manager.acquireAsync(['job', 'other'], { timeout: 1000 }),
      async () => manager.acquire(['job', 'other'], { timeout: 1000 }),
    ]) {
      let looks = 0;
      clock.now = () => now() + 2000 * looks++;
      try {
        await assert.rejects(ask(), { code: 'ERR_LOCK_STORE' });
      } finally {
        clock.now = now;
      }
    }
  }
});
