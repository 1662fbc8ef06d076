// A lock that was released is free at once, however soon the thread ends that has released it, and whatever was in between.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { once } = require('node:events');
const { describe, test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockManager } = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { endsWaiting } = require('../helpers/audited.js');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { startProxy } = require('../helpers/proxy.js');
const servers = require('../helpers/servers.js');
const { messagesOf, pause, seen } = require('../helpers/stores.js');

/** Longer than any test: what is not released stays. */
const LEASES = { lease: 600_000 };

/** A program that starts a thread for this one. */
const inThread = (program, begin) => `
  const { Worker } = require('node:worker_threads');
  const worker = new Worker(${JSON.stringify(`${begin}\n${program}`)}, { eval: true });`;

const HOLDS = "Promise.all(Array.from({ length: 40 }, (_, index) => manager.acquireAsync('held ' + index)))";

/**
 * Programs, by what they do; `begin` makes a `manager`. Before each, how often it runs: to lose its release it has to be quick, as the
 * first three are always, and the others mostly.
 */
const PROGRAMS = {
  'a release, and process.exit()': [
    1,
    (begin) => `${begin} manager.request('one', () => {}).then(() => process.exit());`,
  ],
  'a release, and the end of the loop': [1, (begin) => `${begin} manager.request('one', () => {});`],
  'close(), and process.exit()': [
    1,
    (begin) => `${begin} ${HOLDS}.then(() => manager.close()).then(() => process.exit());`,
  ],
  'close() that nobody awaits, and process.exit()': [
    3,
    (begin) => `${begin} manager.acquireAsync('one').then(() => { manager.close(); process.exit(); });`,
  ],
  'a release in a thread, and process.exit() in main, which has only loaded the package': [
    2,
    (begin, load) =>
      `${load} ${inThread("manager.request('one', () => {}).then(() => require('node:worker_threads').parentPort.postMessage(''));", begin)}
    worker.once('message', () => process.exit());`,
  ],
  'a release in a thread that has a lock worker of its own, and its end': [
    2,
    (begin) => inThread("manager.request('one', () => {});", begin),
  ],
};

for (const [kind, [make, isThere, start, settings]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: 120_000 };
  test(`${kind}: what a process has released is free when it has ended, however it ends`, options, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    const manager = new LockManager({ store: make(server.url, settings) });
    t.after(() => manager.close());
    const closing = new LockManager({ store: make(server.url, { ...settings, connectTimeout: 20_000 }) });
    const names = Array.from({ length: 40 }, (_, index) => `held ${index}`);
    await Promise.all(names.map((name) => closing.acquireAsync(name)));
    await closing.close();
    for (const name of names) {
      const lock = await manager.acquireAsync(name, { ifAvailable: true });
      assert.equal(lock?.unlock(), true, `${name}, after close()`);
    }
    const load = `const { LockManager } = require(${JSON.stringify(require.resolve('../..'))});`;
    const begin = `${load}
      const { ${kind} } = require(${JSON.stringify(require.resolve(`../../lib/stores/${kind}.js`))});
      const manager = new LockManager({ store: ${kind}(${JSON.stringify(server.url)}, ${JSON.stringify(settings)}) });`;
    for (const [what, [times, program]] of Object.entries(PROGRAMS)) {
      // A session that holds the locks ends with its process.
      const rounds = settings.lease === undefined ? 1 : times;
      const source = program(begin, load);
      const asked = source.includes(HOLDS) ? names : ['one'];
      for (let round = 0; round < rounds; round += 1) {
        const { NODE_TEST_CONTEXT, ...rest } = process.env;
        const env = endsWaiting(rest);
        await new Promise((resolve, reject) => {
          execFile(process.execPath, ['-e', source], { timeout: 60_000, env }, (error) =>
            error ? reject(error) : resolve(),
          );
        });
        // A session of PostgreSQL may be about to end.
        const limit = kind === 'postgres' ? { timeout: 10_000 } : { ifAvailable: true };
        for (const name of asked) {
          const lock = await manager.acquireAsync(name, limit);
          assert.notEqual(lock, null, `${what}: ${name} is held still`);
          assert.equal(lock.abandoned, false, what);
          lock.unlock();
        }
      }
    }
  });
}

/** What keeps a release from the server: begins it, before the release; returns what is true once the release has failed, and ends it. */
const OBSTACLES = {
  'while the server is away': {
    async begin({ proxy, messages }) {
      proxy.target = 'http://127.0.0.1:1';
      proxy.drop();
      await seen(() => messages.some(({ event }) => event === 'unreachable'));
      const { accepted } = proxy;
      return () => proxy.accepted > accepted;
    },
    end: ({ proxy, server }) => {
      proxy.target = server.url;
    },
  },
  'on a connection that ends under the call': {
    async begin({ proxy }) {
      let ended = 0;
      proxy.loses = (data, toServer, line) => {
        // The next one arrives.
        if (ended > 0 || !toServer || !isRelease(data)) return false;
        ended += 1;
        line.reset();
        return true;
      };
      return () => ended > 0;
    },
    end() {},
  },
  'to a server that refuses to write': {
    kinds: ['redis'],
    async begin({ server, messages }) {
      await server.run('CONFIG', 'SET', 'min-replicas-to-write', '1');
      return () => messages.some(({ event }) => event === 'unreachable');
    },
    end: ({ server }) => server.run('CONFIG', 'SET', 'min-replicas-to-write', '0'),
  },
};

/** Whether a call of a store with leases gives a lock back. */
const isRelease = (data) => /\$7\r\nrelease\r\n|request_delete_range/.test(data);

/** Holds a lock until it is told to release it. */
const HOLDER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { LockManager } = require(workerData.sablock);
  const { [workerData.kind]: make } = require(workerData.file);
  const manager = new LockManager({ store: make(workerData.url, workerData.settings) });
  manager.acquireAsync('kept').then((lock) => {
    parentPort.on('message', () => parentPort.postMessage(lock.unlock()));
    parentPort.postMessage('held');
  });`;

/** How the thread that holds it gives a lock back, by whether that leaves a mark. */
const RETURNS = {
  async false(thread) {
    thread.postMessage('release it');
    assert.deepEqual(await once(thread, 'message'), [true]);
  },
  true: (thread) => thread.terminate(),
};

for (const kind of ['redis', 'etcd']) {
  const [make, isThere, start] = EVERY_STORE[kind];
  const skip = isThere ? false : `the server of ${kind} is not installed`;
  for (const [when, { kinds = [kind], begin, end }] of Object.entries(OBSTACLES)) {
    if (!kinds.includes(kind)) continue;
    test(`${kind}: what is given back ${when} is given back later, marked if its holder ended inside`, {
      skip,
      timeout: limit(60_000),
    }, async (t) => {
      const server = await start();
      t.after(() => server.stop());
      const proxy = await startProxy(t, server.url);
      for (const [marks, giveBack] of Object.entries(RETURNS)) {
        const namespace = `${kind} ${when}, ${marks}`;
        const messages = messagesOf(t, namespace);
        const settings = { ...LEASES, namespace };
        const [sablock, file] = ['../..', `../../lib/stores/${kind}.js`].map((name) => require.resolve(name));
        const workerData = { kind, sablock, file, url: proxy.url, settings };
        // As the thread ends, this manager keeps the store open.
        const far = new LockManager({ store: make(proxy.url, settings) });
        t.after(() => far.close());
        await far.check();
        const thread = new Worker(HOLDER, { eval: true, workerData });
        t.after(() => thread.terminate());
        assert.deepEqual(await once(thread, 'message'), ['held']);
        const hasFailed = await begin({ proxy, server, messages });
        await giveBack(thread);
        await seen(hasFailed);
        await end({ proxy, server });
        const there = new LockManager({ store: make(server.url, settings) });
        t.after(() => there.close());
        const next = await there.acquireAsync('kept', { timeout: 30_000 });
        assert.equal(String(next.abandoned), marks);
        next.markConsistent();
        assert.equal(next.unlock(), true);
        await thread.terminate();
      }
    });
  }
}

/** A lock that has a mark of another, taken off while the server is away: when it is released. */
for (const when of ['meanwhile', 'once the server is reached again']) {
  for (const kind of ['redis', 'etcd']) {
    const [make, isThere, start] = EVERY_STORE[kind];
    test(`${kind}: a mark that is taken off while the server is away is gone with the release, ${when}`, {
      skip: isThere ? false : `the server of ${kind} is not installed`,
      timeout: limit(60_000),
    }, async (t) => {
      const server = await start();
      t.after(() => server.stop());
      const proxy = await startProxy(t, server.url);
      const namespace = `${kind}, ${when}`;
      const messages = messagesOf(t, namespace);
      const settings = { ...LEASES, renew: 50, namespace };
      const [far, there] = [proxy.url, server.url].map((url) => {
        const manager = new LockManager({ store: make(url, settings) });
        t.after(() => manager.close());
        return manager;
      });
      // As the thread ends, this manager keeps the store open.
      await there.check();
      const [sablock, file] = ['../..', `../../lib/stores/${kind}.js`].map((name) => require.resolve(name));
      const workerData = { kind, sablock, file, url: server.url, settings };
      const thread = new Worker(HOLDER, { eval: true, workerData });
      await once(thread, 'message');
      await thread.terminate();
      const lock = await far.acquireAsync('kept');
      assert.equal(lock.abandoned, true);
      const { begin, end } = OBSTACLES['while the server is away'];
      const hasFailed = await begin({ proxy, server, messages });
      lock.markConsistent();
      await seen(hasFailed);
      if (when === 'meanwhile') assert.equal(lock.unlock(), true);
      await end({ proxy, server });
      if (lock.locked) {
        const { renewals } = await far.stats();
        await seen(async () => (await far.stats()).renewals > renewals);
        assert.equal(lock.unlock(), true);
      }
      assert.equal(await there.request('kept', { timeout: 30_000 }, ({ abandoned }) => abandoned), false);
    });
  }
}

const CELL = new Int32Array(new SharedArrayBuffer(4));
/** Half of it is what an answer may take, while others start their servers. */
const LOST_AFTER = 4000;

/**
 * The ways in which the loss of a lock is seen first: by the thread that holds it, or by the lock worker; with how many are looked at
 * at once. A thread that looks forwards nothing for the others, whose proxies are here.
 */
const LOOKS = {
  'its thread': [
    async (lock) => {
      // Nothing is lost before, and a busy machine may wake it late.
      Atomics.wait(CELL, 0, 0, LOST_AFTER - 1000);
      // It sleeps for less than a timer of the lock worker does.
      while (lock.locked) Atomics.wait(CELL, 0, 0, 0.05);
    },
    1,
  ],
  'the lock worker': [
    async (lock) => {
      await pause(LOST_AFTER + 500);
      assert.equal(lock.locked, false);
    },
    4,
  ],
};

for (const [who, [look, concurrency]] of Object.entries(LOOKS)) {
  describe(`a lock that is lost inside, and ${who} sees it first`, { concurrency }, () => {
    for (const kind of ['redis', 'etcd']) {
      const [make, isThere, start] = EVERY_STORE[kind];
      for (const mode of ['exclusive', 'shared']) {
        test(`${kind}: leaves its mark, though the server hears of it in time, if it was ${mode}; ${who} sees it first`, {
          skip: isThere ? false : `the server of ${kind} is not installed`,
          timeout: 60_000,
        }, async (t) => {
          const server = await start();
          t.after(() => server.stop());
          const proxy = await startProxy(t, server.url);
          const far = new LockManager({ store: make(proxy.url, { lease: LOST_AFTER }) });
          const near = new LockManager({ store: make(server.url, LEASES) });
          t.after(() => Promise.all([far.close(), near.close()]));
          const lock = await far.acquireAsync('lost', { mode });
          // The server hears each renewal, and its answers do not come.
          proxy.loses = (_data, toServer) => !toServer;
          await look(lock);
          proxy.loses = () => false;
          const next = await near.acquireAsync('lost');
          assert.equal(next.abandoned, mode === 'exclusive');
          next.markConsistent();
          next.unlock();
        });
      }
    }
  });
}

test('redis: while the server is away one tries for all, after pauses that grow', {
  skip: servers.hasRedis ? false : 'redis-server is not installed',
  timeout: 60_000,
}, async (t) => {
  const server = await servers.startRedis();
  t.after(() => server.stop());
  const proxy = await startProxy(t, server.url);
  const manager = new LockManager({ store: redis(proxy.url, { ...LEASES, renew: 20 }) });
  t.after(() => manager.close());
  const names = Array.from({ length: 30 }, (_, index) => `of many ${index}`);
  const locks = await Promise.all(names.map((name) => manager.acquireAsync(name)));
  proxy.target = 'redis://127.0.0.1:1';
  const before = proxy.accepted;
  await server.run('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const waits = names.map((name) => manager.acquireAsync(`${name}, new`));
  for (const lock of locks.slice(0, 10)) lock.unlock();
  // 50 ms, 100 ms, ...: five pauses. On a busy machine there are fewer.
  await pause(1600);
  const tries = proxy.accepted - before;
  assert.ok(tries > 1 && tries < 12, `${tries} tries`);
  proxy.target = server.url;
  for (const lock of await Promise.all(waits)) assert.equal(lock.unlock(), true);
  for (const lock of locks.slice(10)) assert.equal(lock.unlock(), true);
});
