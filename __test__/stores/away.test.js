// A server that is away for a moment: little is tried meanwhile, one connection comes of it, and every lock works afterwards.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../..');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { startProxy } = require('../helpers/proxy.js');
const servers = require('../helpers/servers.js');

const AWAY_MS = 1500;
/** Tries with a pause that grows, of a few connections. */
const MOST_TRIES = 100;
const MOST_OPEN = 20;

/** The ways in which the server is away: what becomes of a connection meanwhile. */
const AWAY = {
  'refuses each connection': async (proxy) => {
    proxy.target = `http://127.0.0.1:${await servers.freePort()}`;
    proxy.drop();
  },
  'answers nothing': (proxy) => proxy.cut(),
};

const DOING = {
  idle: () => () => {},
  holding: async (manager) => {
    const lock = await manager.acquireAsync('held');
    return () => lock.unlock();
  },
  waiting: async (manager, other) => {
    const lock = await other.acquireAsync('waited for');
    const waits = manager.request('waited for', () => {});
    await sleep(50);
    return async () => {
      lock.unlock();
      await waits;
    };
  },
};

// Each waits most of the time. All of a kind have one server, each by a proxy, and in a namespace, of its own.
describe('a server that is away for a moment', { concurrency: 8 }, () => {
  for (const [kind, [make, isThere, start]] of Object.entries(EVERY_STORE)) {
    let server;
    before(async () => {
      if (isThere) server = await start();
    });
    after(() => server?.stop());

    for (const [how, goAway] of Object.entries(AWAY)) {
      for (const [what, act] of Object.entries(DOING)) {
        test(`${kind} that ${how} for a moment beside a process that is ${what} is asked little, and every lock works afterwards`, {
          skip: isThere ? false : `${kind} is not installed`,
          timeout: limit(120_000),
        }, async (t) => {
          const proxy = await startProxy(t, server.url);
          const namespace = `${how}, ${what}`;
          const managers = [proxy.url, server.url].map((url) => new LockManager({ store: make(url, { namespace }) }));
          t.after(() => Promise.all(managers.map((manager) => manager.close())));
          const [manager, other] = managers;
          await manager.request('first', () => {});
          const end = await act(manager, other);
          const { accepted, target } = proxy;
          await goAway(proxy);
          await sleep(AWAY_MS);
          assert.ok(proxy.accepted - accepted <= MOST_TRIES, `${proxy.accepted - accepted} tries`);
          proxy.target = target;
          proxy.heal();
          await end();
          for (let round = 0; round < 5; round++) await manager.request('afterwards', () => {});
          // A try that was begun too often goes on by itself.
          await sleep(AWAY_MS);
          assert.ok(proxy.accepted - accepted <= 2 * MOST_TRIES, `${proxy.accepted - accepted} tries`);
          assert.ok(proxy.open <= MOST_OPEN, `${proxy.open} connections`);
        });
      }
    }
  }
});
