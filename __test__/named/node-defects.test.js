// Defects of `worker_threads.locks` of Node.js 24 and 26 must not be here. Two of them have tests of their
// own: the process that exits though a request is pending (keep-alive.test.js), the holder whose end wakes nobody (ends.test.js).

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { locks } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { hold, modesOf, pendingFor, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

test(
  'the end of a thread wakes those who wait in others, blocked and asynchronous',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const [holder, blocked] = await startActors(threads, 2);
    await holder.do(async (here) => {
      here.lock = await here.sablock.locks.acquireAsync('ends');
    });
    const other = blocked.do((here) => here.sablock.locks.requestSync('ends', () => 'blocked'));
    await pendingFor(threads, 'ends', 1);
    const mine = locks.request('ends', () => 'asynchronous');
    await holder.terminate();
    assert.deepEqual(await Promise.all([other, mine]), ['blocked', 'asynchronous']);
    await locks.request('ends', (lock) => lock.markConsistent());
  }),
);

test(
  'a callback that throws releases its lock, for other threads too',
  watched(async (_, threads) => {
    const [other] = await startActors(threads, 1);
    const failed = locks.request('throws', () => {
      throw new Error('on purpose');
    });
    const theirs = other.do((here) => here.sablock.locks.request('throws', () => 'theirs'));
    await assert.rejects(failed, /on purpose/);
    assert.equal(await theirs, 'theirs');
  }),
);

test('a request that was aborted is queued no more', async () => {
  const held = await hold('aborted');
  const controller = new AbortController();
  const request = locks.request('aborted', { signal: controller.signal }, () => {});
  controller.abort();
  await assert.rejects(request, { name: 'AbortError' });
  assert.deepEqual((await modesOf('aborted')).pending, []);
  held.release();
  await held.request;
  assert.equal(await locks.request('aborted', { ifAvailable: true }, (lock) => lock !== null), true);
});

test(
  'query() sees all threads',
  watched(async (_, threads) => {
    const [other] = await startActors(threads, 1);
    await other.do(async (here) => {
      here.lock = await here.sablock.locks.acquireAsync('elsewhere');
    });
    const { held } = await locks.query();
    assert.deepEqual(
      held.map(({ name, threadId }) => [name, threadId]),
      [['elsewhere', other.threadId]],
    );
  }),
);

test(
  'stealing across threads, again and again, harms nobody',
  watched(async (_, threads) => {
    const actors = await startActors(threads, 2);
    const thefts = actors.map((actor) =>
      actor.do(async (here) => {
        const ends = { kept: 0, stolen: 0 };
        for (let index = 0; index < 300; index++) {
          await here.sablock.locks
            .request('thieves', { steal: true }, () => new Promise((resolve) => setImmediate(resolve)))
            .then(
              () => {
                ends.kept += 1;
              },
              (error) => {
                if (error.name !== 'AbortError') throw error;
                ends.stolen += 1;
              },
            );
        }
        return ends;
      }),
    );
    for (const { kept, stolen } of await Promise.all(thefts)) assert.equal(kept + stolen, 300);
    assert.deepEqual(await modesOf('thieves'), { held: [], pending: [] });
    await locks.request('thieves', (lock) => lock.markConsistent());
  }),
);

test('a request waits for all who came before it, and not for the first of them only', async () => {
  const order = [];
  const reader = await hold('before', { mode: 'shared' });
  const ask = (label, mode) => locks.request('before', { mode }, () => order.push(label));
  const asked = [ask('shared 1', 'shared')];
  await asked[0];
  asked.push(ask('exclusive', 'exclusive'), ask('shared 2', 'shared'));
  assert.equal(await locks.request('before', { mode: 'shared', ifAvailable: true }, (lock) => lock), null);
  reader.release();
  await Promise.all(asked);
  assert.deepEqual(order, ['shared 1', 'exclusive', 'shared 2']);
});

test(
  'a release wakes whoever is next, and no other thread that waits for anything',
  watched(async (_, threads) => {
    const held = await hold('slept for');
    const [sleeper, partner] = await startActors(threads, 2);
    const COUNT = 0;
    const drains = new Int32Array(new SharedArrayBuffer(4));
    await sleeper.do((here, drains) => {
      // Each time that its event loop is woken it asks at least once what there is.
      const { binding } = here.require('../../lib/engine/thread.js');
      const { next } = binding;
      binding.next = () => {
        Atomics.add(drains, 0, 1);
        return next();
      };
      here.sablock.locks.request('slept for', () => {});
    }, drains);
    await pendingFor(threads, 'slept for', 1);
    const before = Atomics.load(drains, COUNT);
    const theirs = partner.do(async (here) => {
      for (let index = 0; index < 500; index++) await here.sablock.locks.request('contended', () => {});
    });
    for (let index = 0; index < 500; index++) {
      await Promise.all([1, 2].map(() => locks.request('contended', () => {})));
    }
    await theirs;
    await turns();
    assert.equal(Atomics.load(drains, COUNT), before);
    held.release();
    await threads.until('the sleeper is woken', () => Atomics.load(drains, COUNT) > before);
    await held.request;
  }),
);
