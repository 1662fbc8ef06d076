// Fences: a number for each grant, which grows.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { hold } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const fenceOf = (name, options) => locks.request(name, { fence: true, ...options }, (lock) => lock.fence);
const microseconds = () => BigInt(Date.now()) * 1000n;

test('lock.fence is null unless it was asked for', async () => {
  assert.equal(await locks.request('unfenced', (lock) => lock.fence), null);
  assert.equal(await locks.request('unfenced', { fence: false }, (lock) => lock.fence), null);
});

test('fences grow from grant to grant, and begin at the wall clock', async () => {
  const before = microseconds();
  let last = await fenceOf('growing');
  assert.equal(typeof last, 'bigint');
  assert.ok(last >= before, `${last} ${before}`);
  for (let round = 0; round < 200; round += 1) {
    const fence = await fenceOf('growing', { mode: round % 3 === 0 ? 'shared' : 'exclusive' });
    assert.ok(fence > last);
    last = fence;
  }
});

test('a request that has waited has a larger fence than the one before it, blocking or not', async () => {
  const first = await hold('waited', { fence: true });
  const second = fenceOf('waited');
  first.release();
  assert.ok((await second) > first.lock.fence);
  const lock = await locks.acquireAsync('waited', { fence: true });
  assert.ok(lock.fence > (await second));
  lock.unlock();
  assert.ok(lock.fence > 0n, 'it stays after unlock()');
});

test(
  'fences of several threads are in the order of their grants',
  watched(async (_, threads) => {
    const [actor] = await startActors(threads, 1);
    for (let round = 0; round < 20; round += 1) {
      const mine = await fenceOf('threads');
      const theirs = await actor.do(({ sablock }) =>
        sablock.locks.requestSync('threads', { fence: true }, (lock) => lock.fence),
      );
      assert.ok(theirs > mine);
    }
  }),
);

test('locks of the machine have fences too, which the next manager of the directory goes on from', async (t) => {
  const directory = createFolder(t);
  let last = microseconds();
  for (const options of [{}, { timeout: 1000 }, { ifAvailable: true }]) {
    const manager = new LockManager({ directory, allowMainThread: true });
    const fences = [
      await manager.request('of files', { fence: true, ...options }, (lock) => lock.fence),
      manager.requestSync('of files', { fence: true, ...options }, (lock) => lock.fence),
    ];
    for (const fence of fences) {
      assert.ok(fence > last);
      last = fence;
    }
    assert.equal(await manager.request('of files', options, (lock) => lock.fence), null);
  }
});

test('a fence must be a boolean', async () => {
  await assert.rejects(fenceOf('bad', { fence: 1 }), { code: 'ERR_INVALID_ARG_TYPE', message: /options\.fence/ });
});
