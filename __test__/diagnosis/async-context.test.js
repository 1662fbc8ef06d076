// Code that runs for a wait runs in the asynchronous context of whoever waits, not of whoever unlocks.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const diagnostics = require('node:diagnostics_channel');
const { Condition, Mutex } = require('../..');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { subscribe } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');
const storage = new AsyncLocalStorage();

/** Collects the stores in which this thread publishes on the channel. */
const storesOf = (t, channel, of = () => storage.getStore()) => {
  const stores = [];
  const note = (message) => stores.push(of(message));
  subscribe(channel, note);
  t.after(() => diagnostics.unsubscribe(channel, note));
  return stores;
};

for (const outcome of ['acquired', 'timed-out', 'aborted']) {
  test(
    `a wait that is ${outcome} is published in the context of whoever waits`,
    watched(async (t) => {
      const stores = storesOf(t, 'sablock:contended', (message) => [message.outcome, storage.getStore()]);
      const { mutex } = createMutex();
      const controller = new AbortController();
      storage.run('holder', () => mutex.tryLock());
      const wait = (store, options) => storage.run(store, () => mutex.lockAsync(options).catch(() => false));
      const options = { 'timed-out': { timeout: 5 }, aborted: { signal: controller.signal }, acquired: {} }[outcome];
      const waits = [wait('first', options), wait('second', options)];
      if (outcome === 'aborted') storage.run('aborter', () => controller.abort());
      if (outcome === 'acquired') {
        await storage.run('unlocker', async () => {
          for (const pending of waits) {
            mutex.unlock();
            await pending;
          }
        });
      }
      await Promise.all(waits);
      // Equal deadlines may come in any order.
      assert.deepEqual(stores.sort(), [
        [outcome, 'first'],
        [outcome, 'second'],
      ]);
      mutex.unlock();
    }),
  );
}

test(
  "locking again after a condition's wait is published in the context of whoever waits",
  watched(async (t) => {
    const stores = storesOf(t, 'sablock:contended');
    const { buffer, mutex } = createMutex();
    const condition = new Condition(buffer, OFFSET + 4);
    mutex.tryLock();
    const waiting = storage.run('waiter', () => condition.waitAsync(mutex));
    await storage.run('notifier', async () => {
      await mutex.lockAsync();
      condition.notifyOne();
      // Once the wait for the notification has become one for the mutex.
      while (mutex.inspect().waiters.length === 0) await sleep(1);
      mutex.unlock();
    });
    assert.equal(await waiting, true);
    assert.deepEqual(stores, ['waiter']);
    mutex.unlock();
  }),
);

test(
  'a long hold is published in the context of whoever waits',
  watched(async (t, threads) => {
    const { buffer, mutex } = createMutex();
    const stores = storesOf(t, 'sablock:long-hold', (message) => message.mutex === mutex && storage.getStore());
    const other = new Mutex(buffer, OFFSET + 4);
    storage.run('holder', () => mutex.tryLock() && other.tryLock());
    // Since then the thread watches holds.
    const before = storage.run('somebody else', () => other.lockAsync());
    const waiting = storage.run('waiter', () => mutex.lockAsync());
    await threads.until('both holds are published', () => new Set(stores).size > 1);
    assert.deepEqual([...new Set(stores)].sort(), [false, 'waiter']);
    for (const [held, pending] of [
      [mutex, waiting],
      [other, before],
    ]) {
      held.unlock();
      await pending;
      held.unlock();
    }
  }),
);

test(
  'an abandoned mutex is published, and repaired, in the context of whoever waits',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const stores = storesOf(t, 'sablock:abandoned');
    const { mutex, holder } = await createHeld(threads);
    const repairing = new Mutex(mutex.buffer, OFFSET, { onAbandoned: () => stores.push(storage.getStore()) });
    const waiting = storage.run('waiter', () => repairing.lockAsync());
    await storage.run('ender', () => terminate.end(holder));
    assert.equal(await waiting, true);
    assert.deepEqual(stores, ['waiter', 'waiter']);
    mutex.unlock();
  }),
);

test(
  'spans of waits are children of the request that waits, as tracers make them from the channel',
  watched(async (t) => {
    // The shape of OpenTelemetry: the active span is in an AsyncLocalStorage; a new span's parent is the active one.
    const spans = [];
    const startSpan = (name) => {
      const span = { name, parent: storage.getStore()?.name };
      spans.push(span);
      return span;
    };
    const withSpan = (name, run) => storage.run(startSpan(name), run);
    storesOf(t, 'sablock:contended', ({ waitedMs }) => Object.assign(startSpan('lock.wait'), { waitedMs }));

    const { mutex } = createMutex();
    const handle = (request) =>
      withSpan(request, () =>
        mutex.executeLocked(async () => {
          await sleep(1);
          startSpan('lock.hold');
        }),
      );
    await Promise.all(['request 1', 'request 2', 'request 3'].map(handle));
    const parentsOf = (name) => spans.filter((span) => span.name === name).map(({ parent }) => parent);
    assert.deepEqual(parentsOf('lock.hold'), ['request 1', 'request 2', 'request 3']);
    assert.deepEqual(parentsOf('lock.wait'), ['request 2', 'request 3']);
    assert.ok(spans.filter(({ name }) => name === 'lock.wait').every(({ waitedMs }) => waitedMs > 0));
  }),
);
