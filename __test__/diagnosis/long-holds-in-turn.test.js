// sablock:long-hold, of one holder after the other while a thread waits: each begins anew. The waiting thread's clock is the test's.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { LockManager, Mutex, locks } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { subscribe } = require('../helpers/messages.js');
const { turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const LONG = 'sablock:long-hold';
/** Indices of the shared memory behind the mutex: the time, and how often it was read. */
const [TIME, READS] = [4, 5];

/** Gives this thread that clock, and collects what it publishes. */
const prepare = (here, channel, time, reads) => {
  const cells = new Int32Array(here.buffer);
  here.require('../../lib/load/clock.js').now = () => {
    Atomics.add(cells, reads, 1);
    return Atomics.load(cells, time);
  };
  here.heard = [];
  here.require('node:diagnostics_channel').subscribe(channel, ({ ownerThreadId, heldAtLeastMs }) => {
    here.heard.push([ownerThreadId, heldAtLeastMs]);
  });
};

/** The waits; nobody comes after them. */
const WAITS = {
  lock: (here) => new here.sablock.Mutex(here.buffer).lock(),
  lockAsync: (here) => new here.sablock.Mutex(here.buffer).lockAsync(),
  lockAll: (here) => void here.sablock.lockAll([new here.sablock.Mutex(here.buffer)]),
  lockAllAsync: (here) => here.sablock.lockAllAsync([new here.sablock.Mutex(here.buffer)]).then(() => {}),
};
const lock = (here) => {
  here.mutex = new here.sablock.Mutex(here.buffer);
  here.mutex.lock();
};

for (const [verb, wait] of Object.entries(WAITS)) {
  test(
    `${verb}() behind holds that are long one after the other publishes each from 100 ms on`,
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(64);
      const cells = new Int32Array(buffer);
      const mutex = new Mutex(buffer);
      const holders = await startActors(threads, 3, buffer);
      const [waiter] = await startActors(threads, 1, buffer, { prepare }, LONG, TIME, READS);
      // All of them block: then each is handed the mutex in its turn.
      const taken = [];
      for (const [index, holder] of holders.entries()) {
        taken.push(holder.do(lock));
        await (index === 0 ? taken[0] : threads.queued(mutex, index));
      }
      const waiting = waiter.do(wait);
      await threads.queued(mutex, holders.length);
      /** So much time goes by, and the waiting thread has seen who holds it then. */
      const pass = async (ms) => {
        Atomics.add(cells, TIME, ms);
        const reads = Atomics.load(cells, READS);
        // It is counted before it is read; what comes of a look is done when the next begins.
        await threads.until('the waiting thread has looked', () => Atomics.load(cells, READS) >= reads + 2);
      };
      // The begin of a wait reads the clock several times too, more often under the doctor: until these are over nothing goes by.
      for (let look = 0; look < 4; look++) await pass(0);
      const expected = [];
      for (const [index, holder] of holders.entries()) {
        await taken[index];
        // Messages come with 100 and 200 ms, and the next would with 400.
        for (const ms of [0, 99, 1, 100]) await pass(ms);
        expected.push([holder.threadId, 100], [holder.threadId, 200]);
        await holder.do((here) => here.mutex.unlock());
      }
      await waiting;
      assert.deepEqual(await waiter.do((here) => here.heard), expected);
    }),
  );
}

test(
  'who blocks for several locks publishes what others hold of them for long, and not what it has itself, though others wait for that',
  watched(async (_, threads) => {
    const LAST = 32;
    const buffer = new SharedArrayBuffer(64);
    const cells = new Int32Array(buffer);
    const [first, last] = [new Mutex(buffer), new Mutex(buffer, LAST)];
    const [holder, behind] = await startActors(threads, 2, buffer);
    const [waiter] = await startActors(threads, 1, buffer, { prepare }, LONG, TIME, READS);
    await holder.do((here, offset) => {
      here.held = [0, offset].map((each) => new here.sablock.Mutex(here.buffer, each));
      for (const mutex of here.held) mutex.lock();
    }, LAST);
    const waiting = waiter.do((here, offset) => {
      here.guard = here.sablock.lockAll([0, offset].map((each) => new here.sablock.Mutex(here.buffer, each)));
    }, LAST);
    await threads.queued(first, 1);
    const next = behind.do(lock);
    await threads.queued(first, 2);
    await holder.do((here) => here.held[0].unlock());
    await threads.queued(last, 1);
    // Several looks each: of two locks a look reads the time twice.
    for (const ms of [0, 0, 0, 0, 100, 0, 0, 100, 0, 0]) {
      Atomics.add(cells, TIME, ms);
      const reads = Atomics.load(cells, READS);
      await threads.until('the waiting thread has looked', () => Atomics.load(cells, READS) >= reads + 4);
    }
    await holder.do((here) => here.held[1].unlock());
    await waiting;
    assert.deepEqual(await waiter.do((here) => here.heard), [
      [holder.threadId, 100],
      [holder.threadId, 200],
    ]);
    await waiter.do((here) => here.guard.unlock());
    await next;
  }),
);

/** Calls that block for the mutex, or for the name. What they get they give back. */
const CALLS = {
  'lock()': (here) => {
    const mutex = new here.sablock.Mutex(here.buffer);
    mutex.lock();
    mutex.unlock();
  },
  'lockAll()': (here) => here.sablock.lockAll([new here.sablock.Mutex(here.buffer)]).unlock(),
  'requestSync()': (here, name) => here.sablock.locks.requestSync(name, () => {}),
};
/** Indices of the shared memory: how many messages each has published. */
const [OF_CUT_OFF, OF_BEHIND] = [4, 5];

for (const [verb, block] of Object.entries(CALLS)) {
  test(
    `${verb} that a time limit of vm has cut off publishes no long hold any more`,
    needs('termination when busy'),
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(64);
      const cells = new Int32Array(buffer);
      const name = `cut off in ${process.pid}: ${verb}`;
      const count = (here, channel, index) => {
        const cells = new Int32Array(here.buffer);
        here.require('node:diagnostics_channel').subscribe(channel, () => Atomics.add(cells, index, 1));
      };
      const [holder] = await startActors(threads, 1, buffer);
      const [cutOff] = await startActors(threads, 1, buffer, { prepare: count }, LONG, OF_CUT_OFF);
      const [behind] = await startActors(threads, 1, buffer, { prepare: count }, LONG, OF_BEHIND);
      await holder.do(async (here, name) => {
        here.mutex = new here.sablock.Mutex(here.buffer);
        here.mutex.lock();
        await new Promise((had) => {
          here.request = here.sablock.locks.request(name, () => {
            had();
            return new Promise((free) => Object.assign(here, { free }));
          });
        });
      }, name);
      const code = await cutOff.do(
        (here, source, name) => {
          const block = new Function(`'use strict'; return ${source};`)();
          const call = () => block(here, name);
          try {
            here.require('node:vm').runInNewContext('call()', { call }, { timeout: 20 });
          } catch ({ code }) {
            return code;
          }
        },
        String(block),
        name,
      );
      assert.equal(code, 'ERR_SCRIPT_EXECUTION_TIMEOUT');
      // The limit may come late.
      const before = Atomics.load(cells, OF_CUT_OFF);
      const blocked = behind.do(block, name);
      await threads.until('who waits has published twice', () => Atomics.load(cells, OF_BEHIND) >= 2);
      assert.equal(Atomics.load(cells, OF_CUT_OFF), before);
      await holder.do((here) => {
        here.mutex.unlock();
        here.free();
      });
      await blocked;
    }),
  );
}

/** The time of this thread is the test's: `pass(ms)` lets some go by, looks at what is waited for, and returns what that publishes. */
function watchHere(t, note = ({ name, heldAtLeastMs }) => [name, heldAtLeastMs]) {
  const messages = [];
  const listener = (message) => messages.push(note(message));
  subscribe(LONG, listener);
  t.after(() => unsubscribe(LONG, listener));
  let now = 0;
  t.mock.method(clock, 'now', () => now);
  return (ms) => {
    now += ms;
    thread.holds.look();
    return messages.splice(0);
  };
}

test(
  'a wait that is over ends the watch of no other: of the same lock, in whose context it goes on, and of another lock',
  needs('mocked timers'),
  watched(async (t) => {
    const storage = new AsyncLocalStorage();
    const pass = watchHere(t, ({ name, heldAtLeastMs }) => [name, heldAtLeastMs, storage.getStore()]);
    const cleared = t.mock.method(clock, 'clearInterval');
    const [one, other] = ['one', 'other'].map((name) => new Mutex(new SharedArrayBuffer(4), 0, { name }));
    for (const mutex of [one, other]) mutex.tryLock();
    const controller = new AbortController();
    const first = storage.run('first', () => one.lockAsync({ signal: controller.signal }));
    const second = storage.run('second', () => one.lockAsync());
    const third = storage.run('third', () => other.lockAsync());
    const told = pass(100);
    assert.deepEqual(told, [
      ['one', 100, 'first'],
      ['other', 100, 'third'],
    ]);
    controller.abort();
    await assert.rejects(first, { name: 'AbortError' });
    assert.deepEqual(pass(100), [
      ['one', 200, 'second'],
      ['other', 200, 'third'],
    ]);
    other.unlock();
    await third;
    assert.equal(cleared.mock.callCount(), 0);
    assert.deepEqual(pass(200), [['one', 400, 'second']]);
    one.unlock();
    await second;
    assert.equal(cleared.mock.callCount(), 1);
    for (const mutex of [one, other]) mutex.unlock();
  }),
);

test(
  'a hold that is seen late is published once, and again when the next of the doubled times is over',
  watched(async (t) => {
    const mutex = new Mutex(new SharedArrayBuffer(4), 0, { name: 'late' });
    mutex.tryLock();
    const pass = watchHere(t);
    const waiting = mutex.lockAsync();
    assert.deepEqual([pass(0), pass(350), pass(0), pass(49), pass(1)], [[], [['late', 350]], [], [], [['late', 400]]]);
    mutex.unlock();
    await waiting;
    mutex.unlock();
  }),
);

test(
  'a wait ends its watch though nobody listens any more',
  watched(async (t) => {
    const mutex = new Mutex(new SharedArrayBuffer(4));
    const listener = () => {};
    mutex.tryLock();
    subscribe(LONG, listener);
    const first = mutex.lockAsync();
    unsubscribe(LONG, listener);
    // The holder of a mutex is known where somebody waits for it.
    const second = mutex.lockAsync();
    mutex.unlock();
    await first;
    const pass = watchHere(t);
    assert.deepEqual([pass(0), pass(100)], [[], []]);
    mutex.unlock();
    await second;
    mutex.unlock();
  }),
);

test(
  'a name that several wait for is watched once, also when the first of them has gone before the last came',
  watched(async (t) => {
    const pass = watchHere(t);
    const held = await locks.acquireAsync('crowd');
    const controller = new AbortController();
    const first = locks.acquireAsync('crowd', { signal: controller.signal });
    const second = locks.acquireAsync('crowd');
    controller.abort();
    await assert.rejects(first, { name: 'AbortError' });
    const third = locks.acquireAsync('crowd');
    assert.deepEqual(pass(100), [['crowd', 100]]);
    held.unlock();
    (await second).unlock();
    (await third).unlock();
  }),
);

test(
  'a name that one thread holds again and again is no long hold: each begins anew',
  watched(async (t) => {
    const pass = watchHere(t);
    const first = await locks.acquireAsync('again');
    const [second, third] = [locks.acquireAsync('again'), locks.acquireAsync('again')];
    assert.deepEqual(pass(99), []);
    first.unlock();
    const next = await second;
    assert.deepEqual([pass(0), pass(99), pass(1)], [[], [], [['again', 100]]]);
    next.unlock();
    (await third).unlock();
  }),
);

test(
  'one name in two scopes is two: each is published',
  watched(async (t) => {
    const managers = [locks, new LockManager({ directory: createFolder(t) })];
    const held = await Promise.all(managers.map((manager) => manager.acquireAsync('same')));
    const pass = watchHere(t, ({ lock, heldAtLeastMs }) => [lock, heldAtLeastMs]);
    const waits = managers.map((manager) => manager.acquireAsync('same'));
    await turns();
    const told = pass(100);
    for (const lock of held) lock.unlock();
    const locked = await Promise.all(waits);
    for (const lock of locked) lock.unlock();
    assert.deepEqual(
      told.map(([lock, ms]) => [locked.indexOf(lock), ms]),
      [
        [0, 100],
        [1, 100],
      ],
    );
  }),
);
