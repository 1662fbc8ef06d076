// lockAllAsync() while it waits: order, time limits, signals.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { lockAllAsync, Mutex, stats } = require('../..');
const { needs } = require('../helpers/runtime.js');
const { ALL, NONE, OFFSETS, createMutexes, held } = require('../helpers/several.js');

test('lockAllAsync() of a lock that another task of this thread holds waits, holding those before it', async () => {
  const { mutexes } = createMutexes();
  mutexes[1].lock();
  const pending = lockAllAsync(mutexes);
  assert.deepEqual(held(mutexes), [true, true, false, false], 'in the order of their places');
  assert.equal(mutexes[0].tryLock(), false);
  mutexes[3].lock();
  mutexes[1].unlock();
  await nextTurn();
  assert.deepEqual(held(mutexes), ALL, 'now for the last one');
  assert.equal(mutexes[2].tryLock(), false);
  mutexes[3].unlock();
  const guard = await pending;
  assert.deepEqual(held(mutexes), ALL);
  guard.unlock();
  assert.deepEqual(held(mutexes), NONE);
});

test('an abort of lockAllAsync() gives back what it has', async () => {
  const { mutexes } = createMutexes();
  const reason = new Error('enough');
  await assert.rejects(lockAllAsync(mutexes, { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(held(mutexes), NONE);
  mutexes[2].lock();
  const controller = new AbortController();
  const pending = lockAllAsync(mutexes, { signal: controller.signal });
  const behind = mutexes[0].lockAsync();
  assert.deepEqual(held(mutexes), [true, true, true, false]);
  const { aborts } = stats();
  controller.abort(reason);
  await assert.rejects(pending, reason);
  assert.equal(stats().aborts, aborts + 1);
  assert.equal(await behind, true, 'who waits for one that it had gets it');
  assert.deepEqual(held(mutexes), [true, false, true, false]);
});

test('an abort of lockAllAsync() between two of its waits gives back what it has', async () => {
  const { mutexes } = createMutexes();
  mutexes[0].lock();
  mutexes[3].lock();
  const controller = new AbortController();
  const pending = lockAllAsync(mutexes, { signal: controller.signal });
  mutexes[0].unlock();
  await nextTurn();
  assert.deepEqual(held(mutexes), ALL);
  controller.abort();
  await assert.rejects(pending, { name: 'AbortError' });
  assert.deepEqual(held(mutexes), [false, false, false, true]);
});

test('lockAllAsync() has one time limit for all of its waits', async () => {
  const { mutexes } = createMutexes();
  mutexes[0].lock();
  mutexes[3].lock();
  // Three seconds and more lie between these: however long a busy machine stands still, they come in this order.
  const [unlocked, limit, beyond] = [3300, 6600, 9900];
  const pending = lockAllAsync(mutexes, limit).then(assert.fail, (error) => error);
  // After that limit, and before one that begins again with the second wait.
  const controller = new AbortController();
  const later = mutexes[3].lockAsync({ timeout: beyond, signal: controller.signal });
  setTimeout(() => mutexes[0].unlock(), unlocked);
  const first = await Promise.race([pending, later]);
  assert.equal(first.code, 'ERR_LOCK_TIMEOUT');
  controller.abort();
  await assert.rejects(later, { name: 'AbortError' });
  assert.match(first.message, /offset 32/);
  assert.deepEqual(held(mutexes), [false, false, false, true]);
});

test('waits of one thread for several locks are served in the order of the calls', async () => {
  const { mutexes } = createMutexes();
  mutexes[1].lock();
  const order = [];
  const waits = [0, 1, 2].map((call) =>
    lockAllAsync(mutexes.slice(call === 1 ? 1 : 0)).then((guard) => {
      order.push(call);
      guard.unlock();
    }),
  );
  mutexes[1].unlock();
  await Promise.all(waits);
  assert.deepEqual(held(mutexes), NONE);
  assert.deepEqual(order, [0, 1, 2]);
});

test('lockAllAsync() listens to its signal while it waits, however that ends', async () => {
  const { buffer, mutexes } = createMutexes();
  const listeners = (signal) => getEventListeners(signal, 'abort').length;
  const { signal } = new AbortController();
  const guard = await lockAllAsync(mutexes, { signal });
  assert.equal(listeners(signal), 0, 'held at once');
  await assert.rejects(lockAllAsync([new Mutex(buffer, 8)], { signal, timeout: 0 }), { code: 'ERR_LOCK_TIMEOUT' });
  assert.equal(listeners(signal), 0, 'given up at once');
  const late = lockAllAsync(mutexes, { signal, timeout: 5 });
  assert.equal(listeners(signal), 1);
  await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT' });
  assert.equal(listeners(signal), 0, 'out of time');
  const controller = new AbortController();
  const aborted = lockAllAsync(mutexes, { signal: controller.signal });
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  assert.equal(listeners(controller.signal), 0, 'aborted');
  const granted = lockAllAsync(mutexes, { signal });
  assert.equal(guard.unlock(), true);
  (await granted).unlock();
  assert.equal(listeners(signal), 0, 'held in the end');
  // The lock that it finds after a wait is none any more.
  mutexes[0].lock();
  const corrupted = lockAllAsync(mutexes.slice(0, 2), { signal });
  new Int32Array(buffer)[OFFSETS[1] / 4] = 1;
  mutexes[0].unlock();
  await assert.rejects(corrupted, { code: 'ERR_LOCK_CORRUPT' });
  assert.equal(listeners(signal), 0, 'failed');
  assert.equal(mutexes[0].isLocked, false);
});

test('lockAllAsync() whose signal throws when nobody listens any more holds nothing', async () => {
  const { mutexes } = createMutexes();
  const removeEventListener = () => {
    throw new Error('patched');
  };
  const signal = { aborted: false, addEventListener() {}, removeEventListener };
  await assert.rejects(lockAllAsync(mutexes, { signal }), { message: 'patched' });
  assert.deepEqual(held(mutexes), NONE);
  mutexes[1].lock();
  const pending = lockAllAsync(mutexes, { signal });
  mutexes[1].unlock();
  await assert.rejects(pending, { message: 'patched' });
  assert.deepEqual(held(mutexes), NONE);
});

test('lockAllAsync() that fails, and whose signal throws then, gives back no other hold of this thread', async () => {
  const { mutexes } = createMutexes();
  const guards = [0, 3].map((index) => mutexes[index].tryAcquire());
  const removeEventListener = () => {
    throw new Error('patched');
  };
  const signal = { aborted: false, addEventListener() {}, removeEventListener };
  await assert.rejects(lockAllAsync(mutexes, { signal, timeout: 0 }), { message: 'patched' });
  assert.deepEqual(held(mutexes), [true, false, false, true]);
  for (const guard of guards) assert.deepEqual([guard.locked, guard.unlock()], [true, true]);
});

for (const [what, last] of [
  ['the last of its locks', false],
  ['another wait', true],
]) {
  test(`an abort of lockAllAsync() between the grant of one lock and ${what} gives back what it has`, async () => {
    const { mutexes } = createMutexes();
    const controller = new AbortController();
    const reason = new Error('enough');
    // Whoever hears that a wait is over hears it then.
    const abort = () => controller.abort(reason);
    subscribe('sablock:contended', abort);
    try {
      mutexes[0].lock();
      if (last) mutexes[3].lock();
      const pending = lockAllAsync(mutexes, { signal: controller.signal, timeout: 60_000 });
      mutexes[0].unlock();
      await assert.rejects(pending, reason);
    } finally {
      unsubscribe('sablock:contended', abort);
    }
    assert.deepEqual(held(mutexes), [false, false, false, last]);
    assert.equal(mutexes[3].inspect().waiters.length, 0);
  });
}

test('lockAllAsync() that cannot go on after a grant holds nothing, and listens no more', async () => {
  const { binding } = require('../../lib/engine/thread.js');
  const { mutexes } = createMutexes();
  mutexes[1].lock();
  const { signal } = new AbortController();
  const pending = lockAllAsync(mutexes, { signal });
  const { goOn } = binding;
  binding.goOn = () => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  try {
    mutexes[1].unlock();
    await assert.rejects(pending, RangeError);
  } finally {
    binding.goOn = goOn;
  }
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.deepEqual(held(mutexes), NONE);
});

test('what is pending keeps the thread alive while it lasts, unless ref is false', needs('async hooks'), async () => {
  const { mutexes } = createMutexes();
  const { thread } = require('../../lib/engine/thread.js');
  for (const ref of [true, false]) {
    mutexes[0].lock();
    mutexes[3].lock();
    const pending = lockAllAsync(mutexes, { ref });
    assert.equal(thread.hasRef(), ref);
    mutexes[0].unlock();
    await nextTurn();
    assert.equal(thread.hasRef(), ref, 'also between two locks');
    mutexes[3].unlock();
    await nextTurn();
    (await pending).unlock();
    assert.equal(thread.hasRef(), false);
    assert.equal(stats().pending, 0);
  }
});
