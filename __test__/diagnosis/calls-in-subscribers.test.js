// Subscribers that make calls of the package, or abort, while a wait begins: of a hold that has been long by then, the begin tells.

const assert = require('node:assert/strict');
const { unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { AutoResetEvent, Mutex, RwLock, Semaphore, lockAllAsync, locks, waitAsync, notify } = require('../..');
const clock = require('../../lib/load/clock.js');
const { thread } = require('../../lib/engine/thread.js');
const { subscribe } = require('../helpers/messages.js');
const { turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const LONG_HOLD = 'sablock:long-hold';

const memory = (bytes) => new SharedArrayBuffer(bytes);

/** Locks that are held: `wait(options)` returns a promise of what frees it, `free()` ends the hold. */
const WAITS = {
  'lockAsync()': () => {
    const mutex = new Mutex(memory(4));
    mutex.tryLock();
    const unlock = () => mutex.unlock();
    return { wait: (options) => mutex.lockAsync(options).then(() => unlock), free: unlock };
  },
  'acquireAsync()': () => {
    const mutex = new Mutex(memory(4));
    mutex.tryLock();
    const wait = (options) => mutex.acquireAsync(options).then((guard) => () => guard.unlock());
    return { wait, free: () => mutex.unlock() };
  },
  'write.lockAsync()': () => {
    const { write } = new RwLock(memory(RwLock.BYTES));
    write.tryLock();
    const unlock = () => write.unlock();
    return { wait: (options) => write.lockAsync(options).then(() => unlock), free: unlock };
  },
  'lockAllAsync()': () => {
    const mutex = new Mutex(memory(4));
    mutex.tryLock();
    const wait = (options) => lockAllAsync([mutex], options).then((guard) => () => guard.unlock());
    return { wait, free: () => mutex.unlock() };
  },
  'acquireAsync() of a name': async () => {
    const held = await locks.acquireAsync('awaited');
    const wait = (options) => locks.acquireAsync('awaited', options).then((lock) => () => lock.unlock());
    return { wait, free: () => held.unlock() };
  },
};

/** Calls that queue: `[promise, end()]`. */
const CALLS = {
  'lockAsync()': () => {
    const mutex = new Mutex(memory(4));
    mutex.tryLock();
    return [() => mutex.lockAsync(), () => mutex.unlock()];
  },
  'lockAllAsync()': () => {
    const mutex = new Mutex(memory(4));
    mutex.tryLock();
    return [() => lockAllAsync([mutex]), () => mutex.unlock()];
  },
  'acquireAsync() of permits': () => {
    const semaphore = new Semaphore(memory(Semaphore.BYTES), 0, 1);
    if (!semaphore.tryAcquire()) throw new Error('no permit');
    return [() => semaphore.acquireAsync(), () => semaphore.release()];
  },
  'waitAsync() of an event': () => {
    const event = new AutoResetEvent(memory(4));
    return [() => event.waitAsync(), () => event.set()];
  },
  'waitAsync() of an element': () => {
    const cells = new Int32Array(memory(4));
    return [() => waitAsync(cells, 0, 0).value, () => notify(cells, 0)];
  },
  'request()': async () => {
    const held = await locks.acquireAsync('in a subscriber');
    return [() => locks.request('in a subscriber', () => {}), () => held.unlock()];
  },
};

/** Collects what is published from now on. Names have no place in a buffer, so that `listen()` of the helpers is not for them. */
const collect = (t, channel) => {
  const messages = [];
  const listener = (message) => messages.push(message);
  subscribe(channel, listener);
  t.after(() => unsubscribe(channel, listener));
  return messages;
};

/** As soon as a wait has seen the hold for long, the next wait tells of it at its begin: calls the subscriber once. */
const subscribeOnce = (t, subscriber) => {
  let isCalled = false;
  const listener = () => {
    if (isCalled) return;
    isCalled = true;
    subscriber();
  };
  subscribe(LONG_HOLD, listener);
  t.after(() => unsubscribe(LONG_HOLD, listener));
  return () => isCalled;
};

const { now } = clock;
let shift = 0;
clock.now = () => now() + shift;
const passTime = () => {
  shift += 150;
};

for (const [verb, prepare] of Object.entries(WAITS)) {
  for (const [call, prepareCall] of Object.entries(CALLS)) {
    test(
      `${verb} whose begin is told to a subscriber that calls ${call} waits on, and so does that`,
      watched(async (t) => {
        const { wait, free } = await prepare();
        const [begin, end] = await prepareCall();
        const settled = [];
        const note = (name) => (value) => {
          settled.push(name);
          return value;
        };
        let inner;
        const isCalled = subscribeOnce(t, () => {
          inner = begin().then(note('inner'));
        });
        const first = wait().then(note('first'));
        passTime();
        const second = wait().then(note('second'));
        assert.equal(isCalled(), true);
        await turns();
        assert.deepEqual(settled, []);
        end();
        await inner;
        await turns();
        assert.deepEqual(settled, ['inner']);
        free();
        (await first)();
        (await second)();
        assert.deepEqual(settled, ['inner', 'first', 'second']);
      }),
    );
  }

  test(
    `${verb} that is aborted by the subscriber to whom its begin is told is rejected, published as such, and no longer watched`,
    watched(async (t) => {
      const ends = collect(t, 'sablock:contended');
      const { wait, free } = await prepare();
      const controller = new AbortController();
      const reason = new Error('held for too long');
      const isCalled = subscribeOnce(t, () => controller.abort(reason));
      const first = wait();
      passTime();
      await assert.rejects(wait({ signal: controller.signal }), reason);
      assert.equal(isCalled(), true);
      assert.deepEqual(
        ends.map(({ outcome }) => outcome),
        ['aborted'],
      );
      free();
      const unlock = await first;
      // Its hold would be told of.
      const messages = collect(t, LONG_HOLD);
      thread.holds.look();
      passTime();
      thread.holds.look();
      assert.deepEqual(messages, []);
      unlock();
    }),
  );
}
