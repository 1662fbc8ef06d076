// Requests that are aborted: before, while they wait, after the grant and before the callback, and too late.

const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const { locks } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { obtain } = require('../../lib/named/requests.js');
const { hold, modesOf, turns } = require('../helpers/names.js');

const never = () => assert.fail('the callback must not run');
const reason = new Error('the reason');
const reasonOf = (request) => request.then(never, (error) => error);

test('a signal that has aborted rejects with its reason, and nothing is asked for', async () => {
  assert.equal(await reasonOf(locks.request('before', { signal: AbortSignal.abort(reason) }, never)), reason);
  assert.equal((await reasonOf(locks.request('before', { signal: AbortSignal.abort() }, never))).name, 'AbortError');
  assert.deepEqual(await modesOf('before'), { held: [], pending: [] });
});

test('a pending request that is aborted leaves the queue at once, and those behind it go on', async () => {
  const reader = await hold('pending', { mode: 'shared' });
  const controller = new AbortController();
  const writer = locks.request('pending', { signal: controller.signal }, never);
  const late = locks.request('pending', { mode: 'shared' }, () => 'late');
  await turns();
  assert.deepEqual(await modesOf('pending'), { held: ['shared'], pending: ['exclusive', 'shared'] });
  controller.abort(reason);
  assert.deepEqual((await modesOf('pending')).pending, []);
  assert.equal(await reasonOf(writer), reason);
  assert.equal(await late, 'late');
  reader.release();
  await reader.request;
});

test('an abort in the same turn rejects though the name is free, and passes it on', async () => {
  for (const wait of [() => {}, () => Promise.resolve(), () => new Promise(process.nextTick)]) {
    const controller = new AbortController();
    const request = locks.request('same turn', { signal: controller.signal }, never);
    const next = locks.request('same turn', ({ abandoned }) => abandoned);
    await wait();
    controller.abort(reason);
    assert.equal(await reasonOf(request), reason);
    assert.equal(await next, false);
  }
});

test('an abort between the grant and the callback releases and rejects, at whatever moment', async () => {
  const outcomes = new Set();
  for (let moments = 0; moments < 8; moments++) {
    const held = await hold('granted');
    const controller = new AbortController();
    let hasRun = false;
    const request = locks.request('granted', { signal: controller.signal }, () => {
      hasRun = true;
    });
    // Granted by this release, of which the code learns some microtasks later.
    held.lock.unlock();
    for (let moment = 0; moment < moments; moment++) await undefined;
    const ranBefore = hasRun;
    controller.abort(reason);
    // From now on, though the code has not learned yet that it was granted.
    if (!ranBefore) assert.deepEqual(await modesOf('granted'), { held: [], pending: [] }, `${moments} microtasks`);
    const outcome = await request.catch((error) => error);
    assert.equal(outcome, ranBefore ? undefined : reason, `${moments} microtasks`);
    assert.equal(hasRun, ranBefore);
    outcomes.add(outcome);
    assert.equal(await locks.request('granted', { ifAvailable: true }, (lock) => lock?.abandoned), false);
    held.release();
    await held.request;
  }
  assert.equal(outcomes.size, 2);
});

test('an abort after the callback has begun changes nothing', async () => {
  const controller = new AbortController();
  const held = await hold('late', { signal: controller.signal });
  controller.abort(reason);
  assert.deepEqual(await modesOf('late'), { held: ['exclusive'], pending: [] });
  assert.equal(held.lock.signal.aborted, false);
  held.release('result');
  assert.equal(await held.request, 'result');
});

test('an abort after the release changes nothing', async () => {
  const controller = new AbortController();
  assert.equal(await locks.request('over', { signal: controller.signal }, () => 7), 7);
  controller.abort(reason);
  assert.equal(await locks.request('over', () => 8), 8);
});

test('one signal aborts all of its requests, and no listener stays', async () => {
  const { getEventListeners } = require('node:events');
  const held = await hold('many');
  const controller = new AbortController();
  const { signal } = controller;
  const requests = Array.from({ length: 100 }, () => reasonOf(locks.request('many', { signal }, never)));
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  controller.abort(reason);
  assert.deepEqual(new Set(await Promise.all(requests)), new Set([reason]));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  held.release();
  await held.request;
  const other = new AbortController();
  await locks.request('many', { signal: other.signal }, () => {});
  assert.equal(getEventListeners(other.signal, 'abort').length, 0);
});

test('a request for which the system refuses a thread listens to nothing any more', async (t) => {
  const closing = new AbortController();
  const { signal } = new AbortController();
  const space = binding.nameSpace('a refused thread');
  const backend = { scope: 'process', space, canSteal: false, canShare: true, outer: null, closing };
  const acquire = (timeout) =>
    obtain(
      backend,
      'name',
      { mode: binding.NameMode.Exclusive, timeout, ref: true, signal },
      (lock) => lock,
      'request',
    );
  const held = await acquire(Infinity);
  const { requestName } = binding;
  const refuse = (...args) => (args[3] > 0 ? binding.NO_CLOCK : requestName(...args));
  t.mock.method(binding, 'requestName', refuse);
  assert.throws(() => acquire(5), { code: 'ERR_LOCK_NO_THREAD' });
  binding.requestName.mock.restore();
  for (const heard of [signal, closing.signal]) assert.equal(getEventListeners(heard, 'abort').length, 0);
  held.unlock();
});

test('what waits for a manager that can be closed listens for that while it waits, however that ends', async () => {
  const closing = new AbortController();
  const space = binding.nameSpace('a manager that can be closed');
  const backend = { scope: 'process', space, canSteal: false, canShare: true, outer: null, closing };
  const acquire = (timeout, signal) =>
    obtain(
      backend,
      'name',
      { mode: binding.NameMode.Exclusive, timeout, ref: true, signal },
      (lock) => lock,
      'acquireAsync',
    );
  const listeners = () => getEventListeners(closing.signal, 'abort').length;
  const first = await acquire(Infinity);
  const late = acquire(5);
  assert.equal(listeners(), 1);
  await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT' });
  assert.equal(listeners(), 0, 'out of time');
  const next = acquire(Infinity);
  first.unlock();
  (await next).unlock();
  assert.equal(listeners(), 0, 'granted');
  // Before its grant, between that and its code, and too late.
  const outcomes = new Set();
  for (let moments = -1; moments < 8; moments++) {
    const held = await acquire(Infinity);
    const controller = new AbortController();
    const asked = acquire(Infinity, controller.signal);
    assert.equal(listeners(), 1);
    if (moments >= 0) held.unlock();
    for (let moment = 0; moment < moments; moment++) await undefined;
    controller.abort(reason);
    const outcome = await asked.catch((error) => error);
    assert.equal(listeners(), 0, `aborted after ${moments} microtasks`);
    outcomes.add(outcome === reason);
    held.unlock();
    if (outcome !== reason) outcome.unlock();
  }
  assert.deepEqual([...outcomes], [true, false]);
  const last = await acquire(Infinity);
  const closed = acquire(Infinity);
  closing.abort(reason);
  assert.equal(await reasonOf(closed), reason);
  assert.equal(listeners(), 0, 'closed');
  last.unlock();
});
