// The clock ends a wait for a lock among processes, too, whatever the event loop of its thread does: what it was granted passes on.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../..');
const { startActors, startBusyActor } = require('../helpers/actors.js');
const { modesOf, pendingFor, rowsOf } = require('../helpers/names.js');
const { holdIn, requestIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { watched } = require('../helpers/threads.js');

const ask = async (here, directory, names, options) => {
  const request = new here.sablock.LockManager({ directory }).request(names, options, () => 'had');
  // Several names are asked for one after the other.
  await new Promise((resolve) => setImmediate(resolve));
  return [request];
};

/** Looks until another process is shown that this one holds the name. */
const heldHere = async (peer, name) => {
  const look = async (here, name) => (await here.manager.query()).held.filter((row) => row.name === name);
  while (!(await peer.do(look, name)).some(({ pid }) => pid === process.pid));
};

/**
 * The ways in which a wait of this process comes to be over while its thread is busy. Each ends with the name `a` free for
 * others.
 */
const WAYS = {
  'a wait whose time is over before the lock is free': {
    names: 'a',
    timeout: 100,
    begin: ([holder]) => holdIn(holder, 'a'),
    async during({ manager, peers: [holder] }) {
      while ((await modesOf('a', manager)).pending.length > 0);
      await unlockIn(holder);
    },
  },
  'a wait that was granted, and whose thread did not come for it': {
    names: 'a',
    timeout: 1000,
    begin: ([holder]) => holdIn(holder, 'a'),
    async during({ peers: [holder] }) {
      await unlockIn(holder);
      await heldHere(holder, 'a');
    },
  },
  'what was locked before the name that another process holds': {
    names: ['a', 'b'],
    timeout: 500,
    begin: ([holder]) => holdIn(holder, 'b'),
    during: ({ peers: [holder] }) => heldHere(holder, 'a'),
  },
  'the second of what was locked before the name that another process holds': {
    names: ['b', 'a', 'Z'],
    timeout: 500,
    begin: ([holder]) => holdIn(holder, 'b'),
    during: ({ peers: [holder] }) => heldHere(holder, 'a'),
  },
  'the second of what was locked before the name that another thread holds': {
    names: ['b', 'a', 'Z'],
    timeout: 500,
    begin: (_, manager) => manager.acquireAsync('b'),
    during: ({ peers: [holder] }) => heldHere(holder, 'a'),
  },
  'what was locked before the name that another thread holds': {
    names: ['a', 'b'],
    timeout: 500,
    begin: (_, manager) => manager.acquireAsync('b'),
    during: ({ peers: [holder] }) => heldHere(holder, 'a'),
  },
};

for (const [way, { names, timeout, begin, during }] of Object.entries(WAYS)) {
  for (const who of ['another process', 'another thread']) {
    test(
      `${way} goes to ${who} at the deadline`,
      watched(async (t, threads) => {
        const place = await startPeers(t, 2);
        const { directory, manager, peers } = place;
        const held = await begin(peers, manager);
        const { asked, goOn } = await startBusyActor(threads, ask, directory, names, { timeout });
        await during(place);
        if (who === 'another process') assert.equal(await requestIn(peers[1], 'a'), false);
        else assert.equal(await manager.request('a', ({ abandoned }) => abandoned), false);
        goOn();
        assert.equal(await asked, 'ERR_LOCK_TIMEOUT');
        assert.equal(await manager.request('a', { ifAvailable: true }, (lock) => lock !== null), true);
        if (held?.unlock?.()) assert.equal(await requestIn(peers[1], 'b', { ifAvailable: true }), false);
        assert.deepEqual(rowsOf((await manager.query()).pending, 'a'), []);
      }),
    );
  }
}

test(
  'the time that passes in the process is none that a blocked thread waits for another process',
  watched(async (t, threads) => {
    const [timeout, spent] = [60_000, 100];
    const { directory, manager } = await startPeers(t, 0);
    const [worker] = await startActors(threads, 1);
    await worker.do((here, directory) => {
      const { binding } = here.require('../../lib/engine/thread.js');
      here.manager = new here.sablock.LockManager({ directory });
      const { lockFile } = binding;
      binding.lockFile = (...args) => {
        const [, name, , limit] = args;
        here.limits[name] = limit;
        // The try before the wait, as if another process held it.
        return limit === 0 ? binding.TIMED_OUT : lockFile(...args);
      };
    }, directory);
    for (const verb of ['requestSync', 'acquire']) {
      for (const names of ['b', ['a', 'b']]) {
        const held = await manager.acquireAsync('b');
        const limits = worker.do(
          async (here, verb, names, timeout) => {
            here.limits = {};
            const lock = await here.manager[verb](
              names,
              { timeout },
              ...(verb.startsWith('request') ? [() => {}] : []),
            );
            lock?.unlock();
            return here.limits;
          },
          verb,
          names,
          timeout,
        );
        await pendingFor(threads, 'b', 1, manager);
        await sleep(spent);
        held.unlock();
        const { b } = await limits;
        assert.ok(b > 0 && b <= timeout - spent, `${verb} of ${names}: ${b} ms`);
      }
    }
  }),
);

test(
  'a time that no clock can count waits for ever',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'a');
    const asked = manager.acquireAsync('a', { timeout: Number.MAX_VALUE });
    await assert.rejects(manager.acquireAsync('a', { timeout: 50 }), { code: 'ERR_LOCK_TIMEOUT' });
    await unlockIn(peers[0]);
    assert.equal((await asked).unlock(), true);
  }),
);

test(
  'a time of 0, or less, is one try for the lock of another process, by every verb and of several names too',
  watched(async (t) => {
    const { directory, peers } = await startPeers(t, 1);
    const manager = new LockManager({ directory, allowMainThread: true });
    await holdIn(peers[0], 'b');
    const verbs = {
      request: (names, options) => manager.request(names, options, () => assert.fail('must not run')),
      acquireAsync: (names, options) => manager.acquireAsync(names, options),
      requestSync: async (names, options) => manager.requestSync(names, options, () => assert.fail('must not run')),
      acquire: async (names, options) => manager.acquire(names, options),
    };
    const message = new RegExp(
      `named lock 'b'\\. It is held now, exclusive, by process ${peers[0].pid}, for \\d+ ms\\.`,
    );
    for (const [verb, ask] of Object.entries(verbs)) {
      for (const names of ['b', ['a', 'b']]) {
        for (const timeout of [0, -1]) {
          for (const mode of ['exclusive', 'shared']) {
            const title = `${verb} of ${names}, ${timeout} ms, ${mode}`;
            await assert.rejects(ask(names, { timeout, mode }), { code: 'ERR_LOCK_TIMEOUT', message }, title);
          }
        }
      }
      for (const name of ['a', 'b']) assert.deepEqual((await modesOf(name, manager)).pending, [], `${verb} of ${name}`);
      assert.equal(await requestIn(peers[0], 'a', { ifAvailable: true }), false, verb);
    }
  }),
);

test(
  'a wait that was over in time keeps no deadline',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'a');
    const asked = manager.acquireAsync('a', { timeout: 200 });
    await unlockIn(peers[0]);
    const lock = await asked;
    const requested = requestIn(peers[0], 'a', { timeout: 400 });
    await assert.rejects(requested, { code: 'ERR_LOCK_TIMEOUT' });
    assert.equal(lock.locked, true);
    assert.equal(lock.unlock(), true);
  }),
);
