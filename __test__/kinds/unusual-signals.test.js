// Signals that do not abort in a turn between two calls: each verb that waits with one is rejected all the same.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const {
  AutoResetEvent,
  Condition,
  LockManager,
  Mutex,
  RwLock,
  Semaphore,
  lockAllAsync,
  locks,
  waitAsync,
} = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { startPeers, holdIn } = require('../helpers/peers.js');
const { deferred, turns } = require('../helpers/names.js');
const { subscribe } = require('../helpers/messages.js');
const { unsubscribe } = require('node:diagnostics_channel');
const { watched } = require('../helpers/threads.js');

const memory = (bytes) => new SharedArrayBuffer(bytes);
/** Until the test is over, a global is what throws. */
function breakGlobal(t, name) {
  const original = globalThis[name];
  globalThis[name] = function Broken() {
    throw new Error(`${name} was read after the package had loaded`);
  };
  t.after(() => {
    globalThis[name] = original;
  });
}

const never = () => assert.fail('the callback must not run');
const heldMutex = () => {
  const mutex = new Mutex(memory(4));
  mutex.tryLock();
  return mutex;
};

/** Each returns a function that waits with options. */
const VERBS = {
  'lockAsync()': () => (options) => heldMutex().lockAsync(options),
  'acquireAsync()': () => (options) => heldMutex().acquireAsync(options),
  'lockAllAsync()': () => (options) => lockAllAsync([new Mutex(memory(4)), heldMutex()], options),
  'read.lockAsync()': () => {
    const { read, write } = new RwLock(memory(RwLock.BYTES));
    write.tryLock();
    return (options) => read.lockAsync(options);
  },
  'acquireAsync() of permits': () => (options) => new Semaphore(memory(Semaphore.BYTES), 0, 0).acquireAsync(1, options),
  'waitAsync() of an event': () => (options) => new AutoResetEvent(memory(4)).waitAsync(options),
  'waitAsync() of a condition': () => (options) => new Condition(memory(4)).waitAsync(heldMutex(), options),
  'waitAsync() of an element': () => (options) => waitAsync(new Int32Array(memory(4)), 0, 0, Infinity, options).value,
  'request() of a name': async (t) => {
    const held = await locks.acquireAsync('unusual');
    t.after(() => held.unlock());
    return (options) => locks.request('unusual', options, never);
  },
  'acquireAsync() of several names': async (t) => {
    const held = await locks.acquireAsync('unusual');
    t.after(() => held.unlock());
    return (options) => locks.acquireAsync(['another', 'unusual'], options);
  },
  'request() of a name that another process holds': async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'unusual');
    return (options) => manager.request('unusual', options, never);
  },
};

/** Aborts while a listener is added to it. */
class AbortsAtOnce extends EventTarget {
  aborted = false;
  reason;

  addEventListener(...args) {
    super.addEventListener(...args);
    if (this.aborted) return;
    this.aborted = true;
    this.reason = new Error('at once');
    this.dispatchEvent(new Event('abort'));
  }
}

for (const [verb, prepare] of Object.entries(VERBS)) {
  test(
    `${verb} with a signal that aborts while it is listened to is rejected with the reason`,
    watched(async (t) => {
      const wait = await prepare(t);
      const signal = new AbortsAtOnce();
      await assert.rejects(wait({ signal }), (error) => error === signal.reason);
    }),
  );

  test(
    `${verb} whose signal is only dispatched the event is rejected with an AbortError, as waits of Node.js are`,
    watched(async (t) => {
      const wait = await prepare(t);
      const { signal } = new AbortController();
      const rejected = assert.rejects(wait({ signal }), { name: 'AbortError' });
      await turns();
      signal.dispatchEvent(new Event('abort'));
      await rejected;
    }),
  );
}

for (const [verb, prepare] of Object.entries(VERBS)) {
  test(
    `${verb} is rejected with the reason of its signal as it is, though that is null, or false, before and during the wait`,
    watched(async (t) => {
      const wait = await prepare(t);
      const reasonless = { aborted: true, addEventListener() {}, removeEventListener() {} };
      await assert.rejects(wait({ signal: reasonless }), {
        name: 'AbortError',
        message: /a signal that gives no reason/,
      });
      for (const reason of [null, false]) {
        const signal = AbortSignal.abort(reason);
        await assert.rejects(wait({ signal }), (thrown) => thrown === reason);
        // The abort comes before a time of 0. The time for an element is no option.
        if (!/element/.test(verb)) await assert.rejects(wait({ signal, timeout: 0 }), (thrown) => thrown === reason);
        const controller = new AbortController();
        const rejected = assert.rejects(wait({ signal: controller.signal }), (thrown) => thrown === reason);
        await turns();
        controller.abort(reason);
        await rejected;
      }
    }),
  );
}

test(
  'a signal that is waited with while it is listened to: its abort takes nothing from whose code has begun',
  watched(async () => {
    const [outer, inner] = await Promise.all(['listened to', 'meanwhile'].map((name) => locks.acquireAsync(name)));
    let listeners = 0;
    const inside = deferred();
    const end = deferred();
    class Waits extends EventTarget {
      aborted = false;
      reason = new Error('on purpose');

      addEventListener(...args) {
        listeners += 1;
        super.addEventListener(...args);
        if (this.request !== undefined) return;
        this.request = null;
        this.request = locks.request('meanwhile', { signal: this }, (lock) => {
          inside.resolve(lock);
          return end.promise;
        });
      }

      removeEventListener(...args) {
        listeners -= 1;
        super.removeEventListener(...args);
      }
    }
    const signal = new Waits();
    const rejected = assert.rejects(locks.request('listened to', { signal }, never), /on purpose/);
    inner.unlock();
    const lock = await inside.promise;
    signal.aborted = true;
    signal.dispatchEvent(new Event('abort'));
    await rejected;
    await turns();
    assert.equal(lock.locked, true);
    assert.equal(await locks.request('meanwhile', { ifAvailable: true }, (other) => other), null);
    end.resolve('done');
    assert.equal(await signal.request, 'done');
    assert.equal(listeners, 0);
    outer.unlock();
  }),
);

/** Both ways to abort, for a subscriber. */
const ABORTS = {
  abort: (controller) => controller.abort(),
  'the event': ({ signal }) => signal.dispatchEvent(new Event('abort')),
};

/** A signal that a subscriber aborts when it is told how a wait has ended, and what it was told. */
function abortWhenTold(t, abort) {
  const controller = new AbortController();
  const outcomes = [];
  const listener = ({ outcome }) => {
    outcomes.push(outcome);
    abort(controller);
  };
  subscribe('sablock:contended', listener);
  t.after(() => unsubscribe('sablock:contended', listener));
  return { signal: controller.signal, outcomes };
}

for (const [how, abort] of Object.entries(ABORTS)) {
  test(
    `lockAllAsync() that goes on to its next lock is rejected if a subscriber to the wait before caused ${how}`,
    watched(async (t) => {
      const buffer = memory(8);
      const [one, other] = [new Mutex(buffer), new Mutex(buffer, 4)];
      one.tryLock();
      other.tryLock();
      const { signal, outcomes } = abortWhenTold(t, abort);
      const rejected = assert.rejects(lockAllAsync([one, other], { signal }), { name: 'AbortError' });
      one.unlock();
      await rejected;
      assert.deepEqual(outcomes, ['acquired', 'aborted']);
      assert.equal(one.isLocked, false);
      assert.deepEqual(other.inspect().waiters, []);
    }),
  );

  test(
    `lockAllAsync() whose other locks are free is rejected if a subscriber to the wait for one caused ${how}`,
    watched(async (t) => {
      const buffer = memory(8);
      const [one, other] = [new Mutex(buffer), new Mutex(buffer, 4)];
      one.tryLock();
      const { signal } = abortWhenTold(t, abort);
      const rejected = assert.rejects(lockAllAsync([one, other], { signal }), { name: 'AbortError' });
      one.unlock();
      await rejected;
      assert.deepEqual([one.isLocked, other.isLocked], [false, false]);
    }),
  );
}

test('DOMException and AbortController are those that were there when the package loaded', async (t) => {
  const { DOMException } = globalThis;
  for (const name of ['DOMException', 'AbortController']) breakGlobal(t, name);
  const isOf = (name) => (error) => error instanceof DOMException && error.name === name;
  const reasonless = { aborted: true, addEventListener() {}, removeEventListener() {} };
  await assert.rejects(heldMutex().lockAsync({ signal: reasonless }), isOf('AbortError'));
  await assert.rejects(locks.request('-', never), isOf('NotSupportedError'));
  const held = await locks.acquireAsync('globals');
  const { signal } = held;
  await locks.request('globals', { steal: true }, () => assert.ok(isOf('AbortError')(signal.reason)));
  assert.doesNotThrow(() => new LockManager({ store: redis('redis://host') }));
});
