// acquireAsync() and the lock that it returns; requests that time out; the mark of abandonment.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { HeldLock, TimeoutError, locks } = require('../..');
const { hold, modesOf, turns } = require('../helpers/names.js');

const notOwner = { name: 'Error', code: 'ERR_LOCK_NOT_OWNER' };
const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');

test('acquireAsync() returns a promise of a lock, which is held until unlock()', async () => {
  const lock = await locks.acquireAsync('guard');
  assert.ok(lock instanceof HeldLock);
  assert.deepEqual([lock.name, lock.mode, lock.locked, lock.abandoned], ['guard', 'exclusive', true, false]);
  assert.equal(lock.signal.aborted, false);
  assert.equal(lock.signal, lock.signal, 'it is one signal, however often it is read');
  const next = locks.acquireAsync('guard', { mode: 'shared' });
  await turns();
  assert.deepEqual(await modesOf('guard'), { held: ['exclusive'], pending: ['shared'] });
  assert.equal(lock.unlock(), true);
  assert.equal((await next).mode, 'shared');
  assert.deepEqual([lock.locked, lock.unlock()], [false, false]);
  (await next).unlock();
});

test('disposing of a lock unlocks it, once', async () => {
  const lock = await locks.acquireAsync('disposed');
  lock[dispose]();
  lock[dispose]();
  assert.equal(lock.locked, false);
  assert.deepEqual(await modesOf('disposed'), { held: [], pending: [] });
});

test('acquireAsync() with ifAvailable is null if it is not', async () => {
  const lock = await locks.acquireAsync('maybe', { ifAvailable: true });
  assert.equal(await locks.acquireAsync('maybe', { ifAvailable: true }), null);
  lock.unlock();
});

test('acquireAsync() rejects what request() rejects', async () => {
  await assert.rejects(locks.acquireAsync('-x'), { name: 'NotSupportedError' });
  await assert.rejects(locks.acquireAsync('x', { mode: 'other' }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(locks.acquireAsync('x', 7), { code: 'ERR_INVALID_ARG_TYPE' });
});

for (const verb of ['request', 'acquireAsync']) {
  const ask = (name, options) =>
    verb === 'request' ? locks.request(name, options, (lock) => lock.name) : locks.acquireAsync(name, options);
  test(`${verb}() rejects with a TimeoutError when its time is over, and leaves the queue`, async () => {
    const held = await hold('late');
    const startedAt = performance.now();
    for (const timeout of [30, 0, -1]) {
      const error = await ask('late', { timeout }).catch((thrown) => thrown);
      assert.ok(error instanceof TimeoutError);
      assert.equal(error.code, 'ERR_LOCK_TIMEOUT');
      assert.match(
        error.message,
        new RegExp(`${verb}\\(\\) timed out after ${timeout} ms waiting for the named lock 'late'`),
      );
    }
    assert.ok(performance.now() - startedAt >= 28);
    assert.deepEqual(await modesOf('late'), { held: ['exclusive'], pending: [] });
    held.release();
    await held.request;
  });

  test(`${verb}() with a time limit gets what is free, or becomes free in time`, async () => {
    const held = await hold('soon');
    const asked = ask('soon', { timeout: 20_000 });
    held.release();
    const got = await asked;
    if (verb === 'acquireAsync') got.unlock();
    for (const timeout of [0, -1, 5, NaN, Infinity]) {
      const free = await ask('soon', { timeout });
      if (verb === 'acquireAsync') free.unlock();
    }
    assert.deepEqual(await modesOf('soon'), { held: [], pending: [] });
  });
}

test('a signal aborts a request with a time limit, and the time limit one with a signal', async () => {
  const held = await hold('both');
  const controller = new AbortController();
  const aborted = locks.acquireAsync('both', { timeout: 20_000, signal: controller.signal });
  const late = locks.acquireAsync('both', { timeout: 20, signal: new AbortController().signal });
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT' });
  held.release();
  await held.request;
});

test('markConsistent() is for whoever holds alone, and holds still', async () => {
  const sharing = await locks.acquireAsync('consistent', { mode: 'shared' });
  assert.throws(() => sharing.markConsistent(), { ...notOwner, message: /"shared"/ });
  sharing.unlock();
  const lock = await locks.acquireAsync('consistent');
  lock.markConsistent();
  lock.unlock();
  assert.throws(() => lock.markConsistent(), {
    ...notOwner,
    message: /'consistent': it is not held by this any more\. Call it before unlock\(\)\.$/,
  });
  const victim = await locks.acquireAsync('consistent');
  const thief = await locks.acquireAsync('consistent', { steal: true });
  assert.throws(() => victim.markConsistent(), notOwner);
  assert.equal(thief.abandoned, true, 'who holds no more marks nothing');
  thief.markConsistent();
  thief.unlock();
});

test('a lock prints its name and its state', async () => {
  const lock = await locks.acquireAsync('printed');
  assert.equal(inspect(lock), "HeldLock 'printed' { mode: 'exclusive', locked: true, abandoned: false }");
  lock.unlock();
  assert.match(inspect(lock), /locked: false/);
  assert.equal(inspect(locks), '[LockManager of the process]');
  assert.equal(inspect([[[lock]]]), "[ [ [ [HeldLock 'printed'] ] ] ]");
  inspect(HeldLock.prototype);
});
