// Waits that have several steps: what runs in a later one belongs to the context of whoever waits too, and so does what runs for a
// verb with a function.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const diagnostics = require('node:diagnostics_channel');
const { test } = require('node:test');
const { Condition, LockManager, LockTable, Mutex, Once, RwLock, Semaphore, lockAllAsync } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { subscribe } = require('../helpers/messages.js');
const { pendingFor } = require('../helpers/names.js');
const { holdIn, startPeers } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const storage = new AsyncLocalStorage();
const asWaiter = (act) => storage.run('waiter', act);
/** Whoever frees what is waited for. */
const asOther = (act) => storage.run('somebody else', act);

/** Collects what the channels and `onAbandoned` tell, each with the context in which it does. */
const collect = (t) => {
  const told = [];
  const note = (what) => told.push([what, storage.getStore()]);
  for (const name of ['contended', 'abandoned']) {
    const listener = () => note(name);
    subscribe(`sablock:${name}`, listener);
    t.after(() => diagnostics.unsubscribe(`sablock:${name}`, listener));
  }
  return { told, onAbandoned: () => note('onAbandoned') };
};
const inContext = (told) => told.map((what) => [what, 'waiter']);

/** A thread that holds the lock of `make(here)`; `end()` ends it inside. */
const holder = async (threads, buffer, make, ...args) => {
  const [actor] = await startActors(threads, 1, buffer);
  await actor.do((here, source, args) => new Function(`return ${source};`)()(here, ...args).lock(), String(make), args);
  return {
    actor,
    async end() {
      await asOther(() => actor.terminate());
      await actor.exited;
    },
  };
};
const mutexAt = (here, offset) => new here.sablock.Mutex(here.buffer, offset);
const writeAt = (here, offset) => new here.sablock.RwLock(here.buffer, offset).write;
const readAt = (here, offset) => new here.sablock.RwLock(here.buffer, offset).read;

/** By the second of two locks: how it is made here and held there, and what is told of it. The first is a mutex. */
const SECONDS = {
  'a mutex': [(buffer, options) => new Mutex(buffer, 16, options), mutexAt, ['abandoned', 'onAbandoned']],
  'a write lock': [(buffer, options) => new RwLock(buffer, 16, options).write, writeAt, ['abandoned', 'onAbandoned']],
  'a read lock': [(buffer, options) => new RwLock(buffer, 16, options).read, writeAt, ['abandoned']],
  'a write lock with readers': [(buffer, options) => new RwLock(buffer, 16, options).write, readAt, ['abandoned']],
  'a lock of a table': [
    (buffer, options) => new LockTable(buffer, 16, 2, options).at(0),
    mutexAt,
    ['abandoned', 'onAbandoned'],
  ],
};

for (const [second, [make, hold, expected]] of Object.entries(SECONDS)) {
  const prepare = async (t, threads) => {
    const { told, onAbandoned } = collect(t);
    const buffer = new SharedArrayBuffer(64);
    const locks = [new Mutex(buffer, 8, { onAbandoned }), make(buffer, { onAbandoned })];
    const inspected = [locks[0], new RwLock(buffer, 16)];
    if (locks[1] instanceof Mutex) inspected[1] = locks[1];
    return { told, buffer, locks, inspected, last: await holder(threads, buffer, hold, 16) };
  };

  test(
    `lockAllAsync() whose second is ${second}: both are awaited and abandoned, and told to whoever waits`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { told, buffer, locks, inspected, last } = await prepare(t, threads);
      const first = await holder(threads, buffer, mutexAt, 8);
      const waiting = asWaiter(() => lockAllAsync(locks));
      await threads.queued(inspected[0], 1);
      await first.end();
      await threads.queued(inspected[1], 1);
      await last.end();
      const guard = await waiting;
      assert.deepEqual(
        told.sort(),
        inContext(['contended', 'contended', 'abandoned', 'onAbandoned', ...expected]).sort(),
      );
      guard.unlock();
    }),
  );

  test(
    `lockAllAsync() whose second is ${second}: that is abandoned, and free once the first is`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { told, locks, last } = await prepare(t, threads);
      await last.end();
      locks[0].tryLock();
      const waiting = asWaiter(() => lockAllAsync(locks));
      asOther(() => locks[0].unlock());
      const guard = await waiting;
      assert.deepEqual(told.sort(), inContext(['contended', ...expected]).sort());
      guard.unlock();
    }),
  );
}

for (const [kind, [make, hold, expected]] of Object.entries(SECONDS)) {
  test(
    `${kind} alone that is abandoned while somebody waits is told to whoever waits`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { told, onAbandoned } = collect(t);
      const buffer = new SharedArrayBuffer(64);
      const lock = make(buffer, { onAbandoned });
      const { end } = await holder(threads, buffer, hold, 16);
      const waiting = asWaiter(() => lock.acquireAsync());
      await end();
      (await waiting).unlock();
      assert.deepEqual(told.sort(), inContext(['contended', ...expected]).sort());
    }),
  );
}

for (const verb of ['waitAsync', 'waitForAsync']) {
  test(
    `${verb}() whose mutex is abandoned when it locks that again tells whoever waits`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { told, onAbandoned } = collect(t);
      const buffer = new SharedArrayBuffer(64);
      const mutex = new Mutex(buffer, 8, { onAbandoned });
      const condition = new Condition(buffer, 0);
      await mutex.lockAsync();
      let calls = 0;
      const predicate = () => {
        told.push(['predicate', storage.getStore()]);
        return calls++ > 0;
      };
      const waiting = asWaiter(() =>
        verb === 'waitAsync' ? condition.waitAsync(mutex) : condition.waitForAsync(mutex, predicate),
      );
      await threads.queued(condition, 1);
      const { end } = await holder(threads, buffer, mutexAt, 8);
      asOther(() => condition.notifyOne());
      await threads.queued(mutex, 1);
      await end();
      assert.equal(await waiting, true);
      const predicates = verb === 'waitAsync' ? [] : ['predicate', 'predicate'];
      assert.deepEqual(told.sort(), inContext(['contended', 'abandoned', 'onAbandoned', ...predicates]).sort());
      mutex.unlock();
    }),
  );
}

/** A function that notes its context is the last argument. */
const ASKS = {
  request: (manager, names, note) => manager.request(names, note),
  'request with a signal': (manager, names, note) =>
    manager.request(names, { signal: new AbortController().signal }, note),
  acquireAsync: async (manager, names, note) => {
    const held = await manager.acquireAsync(names);
    note();
    held.unlock();
  },
};
const NAMES = ['context 1', 'context 2'];

for (const [verb, ask] of Object.entries(ASKS)) {
  test(
    `${verb} of several names: what is told of the second is told to whoever waits`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { told, onAbandoned } = collect(t);
      const manager = new LockManager({ onAbandoned });
      const actors = await startActors(threads, 2);
      for (const [index, actor] of actors.entries()) {
        await actor.do(async (here, name) => {
          here.kept = await here.sablock.locks.acquireAsync(name);
        }, NAMES[index]);
      }
      const asked = asWaiter(() => ask(manager, NAMES, () => told.push(['inside', storage.getStore()])));
      for (const [index, actor] of actors.entries()) {
        await pendingFor(threads, NAMES[index], 1, manager);
        await asOther(() => actor.terminate());
      }
      await asked;
      const each = ['contended', 'abandoned', 'onAbandoned'];
      assert.deepEqual(told.sort(), inContext([...each, ...each, 'inside']).sort());
    }),
  );

  for (const count of [1, 2]) {
    test(
      `${verb} of ${count} of the machine: what is told of the one that another process held is told to whoever waits`,
      watched(async (t, threads) => {
        const { told, onAbandoned } = collect(t);
        const { directory, manager: own, peers } = await startPeers(t, 1);
        const manager = new LockManager({ directory, onAbandoned });
        const names = NAMES.slice(0, count);
        const last = names.at(-1);
        await holdIn(peers[0], last);
        // The first step: a name that this process holds.
        const held = await own.acquireAsync(count === 1 ? 'nothing' : names[0]);
        const asked = asWaiter(() => ask(manager, names, () => told.push(['inside', storage.getStore()])));
        if (count > 1) await pendingFor(threads, names[0], 1, manager);
        asOther(() => held.unlock());
        await pendingFor(threads, last, 1, manager);
        await asOther(() => peers[0].end());
        await asked;
        const first = count > 1 ? ['contended'] : [];
        assert.deepEqual(told.sort(), inContext([...first, 'contended', 'abandoned', 'onAbandoned', 'inside']).sort());
      }),
    );
  }
}

/** Waits for two that are held, which are given up in the second step: `ask` returns a promise, `isLast` whether it is there. */
const GIVEN_UP = {
  lockAllAsync() {
    const buffer = new SharedArrayBuffer(64);
    const [first, last] = [8, 16].map((offset) => new Mutex(buffer, offset));
    first.tryLock();
    last.tryLock();
    return {
      free: () => first.unlock(),
      isLast: () => last.inspect().waiters.length > 0,
      ask: (options) => lockAllAsync([first, last], options),
    };
  },
  names: () => givenUp(new LockManager()),
  async 'names of the machine'(t) {
    const { manager } = await startPeers(t, 0);
    return givenUp(manager);
  },
  async 'names that another process has'(t) {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], NAMES[1]);
    return givenUp(manager, NAMES.slice(0, 1));
  },
};
const givenUp = async (manager, held = NAMES) => {
  const [first, last] = await Promise.all(held.map((name) => manager.acquireAsync(name)));
  const isLast = async () => (await manager.query()).pending.some(({ name }) => name === NAMES[1]);
  return {
    free: () => first.unlock(),
    isLast,
    ask: (options) => manager.acquireAsync(NAMES, options),
    clean: () => last?.unlock(),
  };
};

for (const [what, make] of Object.entries(GIVEN_UP)) {
  for (const outcome of ['timed-out', 'aborted']) {
    test(
      `${what}: that the second wait is ${outcome} is told to whoever waits`,
      watched(async (t) => {
        const told = [];
        const note = (message) => told.push([message.outcome, storage.getStore()]);
        const { free, isLast, ask, clean } = await make(t);
        subscribe('sablock:contended', note);
        t.after(() => diagnostics.unsubscribe('sablock:contended', note));
        const controller = new AbortController();
        const options = outcome === 'aborted' ? { signal: controller.signal } : { timeout: 50 };
        let isOver = false;
        const waiting = asWaiter(() => ask(options)).catch(() => {
          isOver = true;
        });
        asOther(free);
        // On a busy machine the time may be over before.
        while (!isOver && !(await isLast())) await new Promise(setImmediate);
        asOther(() => controller.abort());
        await waiting;
        assert.deepEqual([isOver, told.at(-1)], [true, [outcome, 'waiter']]);
        assert.deepEqual(new Set(told.map(([, store]) => store)), new Set(['waiter']));
        clean?.();
      }),
    );
  }
}

/** Each verb that runs a function after a wait: what is held meanwhile and freed then, and the verb. */
const RUNS = {
  'Mutex.executeLocked'(buffer) {
    const mutex = new Mutex(buffer);
    return [mutex, (fn) => mutex.executeLocked(fn)];
  },
  'Mutex.enter'(buffer) {
    const mutex = new Mutex(buffer);
    const enter = (fn, resolve) => mutex.enter((token) => resolve(fn(), mutex.leave(token)));
    return [mutex, (fn) => new Promise((resolve) => enter(fn, resolve))];
  },
  'ReadLock.executeLocked'(buffer) {
    const { read, write } = new RwLock(buffer);
    return [write, (fn) => read.executeLocked(fn)];
  },
  'WriteLock.executeLocked'(buffer) {
    const { read, write } = new RwLock(buffer);
    return [read, (fn) => write.executeLocked(fn)];
  },
  'LockTable.executeLocked'(buffer) {
    const table = new LockTable(buffer, 0, 2);
    return [table.at(1), (fn) => table.executeLocked(1, fn)];
  },
  'Semaphore.execute'(buffer) {
    const semaphore = new Semaphore(buffer, 0, 1);
    let permits;
    const lock = {
      tryLock: () => {
        permits = semaphore.tryAcquire();
      },
      unlock: () => permits.release(),
    };
    return [lock, (fn) => semaphore.execute(fn)];
  },
  'Once.run'(buffer) {
    const once = new Once(buffer);
    let fail;
    const lock = {
      tryLock: () => once.run(() => new Promise((_, reject) => (fail = reject))).catch(() => {}),
      unlock: () => fail(new Error('on purpose')),
    };
    return [lock, (fn) => once.run(fn)];
  },
};

for (const [verb, make] of Object.entries(RUNS)) {
  test(
    `${verb} that had to wait runs its function in the context of its call`,
    watched(async () => {
      const [lock, run] = make(new SharedArrayBuffer(64));
      asOther(() => lock.tryLock());
      const stores = [];
      const note = async () => {
        stores.push(storage.getStore());
        await undefined;
        stores.push(storage.getStore());
      };
      const running = asWaiter(() => run(note));
      // The code that holds has begun by then.
      await new Promise(setImmediate);
      assert.deepEqual(stores, []);
      asOther(() => lock.unlock());
      await running;
      assert.deepEqual(stores, ['waiter', 'waiter']);
    }),
  );
}
