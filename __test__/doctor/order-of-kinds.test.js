// Lock order among locks of other kinds than single mutexes with names: which have an order, and which have none.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createLocks, inside, sleep, withDoctor } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { Condition, LockManager, LockTable, Mutex, Once, RwLock, lockAll, lockAllAsync } = require('../../index.js');
const { start } = require('../../lib/doctor/index.js');

/** A test of so many cycles. */
const counts = (count, options) => (title, body) =>
  test(
    title,
    options,
    watched(async () => {
      const doctor = start({ contention: false });
      try {
        const before = doctor.report().lockOrder.length;
        await body();
        assert.equal(doctor.report().lockOrder.length, before + count);
      } finally {
        doctor.stop();
      }
    }),
  );
const silent = counts(0, {});
const found = counts(1, needs('async frames'));

silent('locks of one name have no order among them', async () => {
  const [a, b] = createLocks(2, () => ({ name: 'rows' }));
  await inside(a, b);
  await inside(b, a);
});

silent('the locks of a table have no order among them', async () => {
  const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(8)), 0, 8);
  await table.executeLocked(1, () => table.executeLocked(2, () => {}));
  await table.executeLocked(2, () => table.executeLocked(1, () => {}));
});

silent('lockAllAsync() makes no order among its locks', async () => {
  const [a, b] = createLocks(2);
  (await lockAllAsync([a, b])).unlock();
  (await lockAllAsync([b, a])).unlock();
});

/** Waits until somebody waits for it. */
const untilWanted = async (lock) => {
  while (lock.inspect().waiters.length === 0) await new Promise(setImmediate);
};
const takeBoth = (locks, options) => async () => (await lockAllAsync(locks, options)).unlock();

for (const [title, options] of [
  ['a timeout', () => ({ timeout: 60_000 })],
  ['a signal', () => ({ signal: new AbortController().signal })],
]) {
  silent(`what lockAllAsync() takes with ${title} inside of a lock does not come after it`, async () => {
    const [a, b, c] = createLocks(3);
    await a.executeLocked(takeBoth([b, c], options()));
    await b.tryLock();
    const taken = a.executeLocked(takeBoth([b, c], options()));
    await untilWanted(b);
    b.unlock();
    await taken;
    await inside(b, a);
    await inside(c, a);
  });
}

found('what lockAllAsync() takes inside of a lock comes after it', async () => {
  const [a, b, c] = createLocks(3);
  await a.executeLocked(takeBoth([b, c]));
  await inside(c, a);
});

for (const held of [0, 1]) {
  found(
    `what lockAllAsync() takes inside of a lock after a wait comes after it, whichever it waits for: ${held}`,
    async () => {
      const [a, ...both] = createLocks(3);
      both[held].tryLock();
      const taken = a.executeLocked(takeBoth(both));
      await untilWanted(both[held]);
      both[held].unlock();
      await taken;
      await inside(both[0], a);
    },
  );
}

found(
  'a mutex that a thread locks again after its wait for a condition comes after what the thread holds',
  async () => {
    const [mutex, other] = createLocks(2, () => ({ allowMainThread: true }));
    mutex.lock();
    other.lock();
    new Condition(new SharedArrayBuffer(4), 0, { allowMainThread: true }).wait(mutex, 1);
    other.unlock();
    mutex.unlock();
  },
);

found('a mutex that a wait for a condition locks again comes after those that it is inside of', async () => {
  const [mutex, other] = createLocks(2);
  const condition = new Condition(new SharedArrayBuffer(4));
  const waiting = mutex.executeLocked(() => other.executeLocked(async () => await condition.waitAsync(mutex)));
  while (!other.isLocked || mutex.isLocked) await sleep(1);
  condition.notifyAll();
  await waiting;
});

silent('a mutex that is locked again after a wait for a condition comes not after itself', async () => {
  const [mutex, other] = createLocks(2, () => ({ allowMainThread: true }));
  const condition = new Condition(new SharedArrayBuffer(4));
  await inside(mutex, other);
  await mutex.executeLocked(() => condition.waitAsync(mutex, { timeout: 1 }));
  mutex.executeLockedSync(() => condition.wait(mutex, 1));
});

silent('two readers of one lock have no order', async () => {
  const lock = new RwLock(new SharedArrayBuffer(8));
  await lock.read.executeLocked(() => lock.read.executeLocked(() => {}));
});

silent('memory that is used again is another lock', async () => {
  for (let round = 0; round < 40; round++) {
    const [a, b] = createLocks(2);
    await (round % 2 === 0 ? inside(a, b) : inside(b, a));
  }
});

found('an RwLock and a mutex in both orders are a cycle', async () => {
  const lock = new RwLock(new SharedArrayBuffer(8));
  const [a] = createLocks(1);
  await lock.read.executeLocked(() => a.executeLocked(() => {}));
  await a.executeLocked(() => lock.write.executeLocked(() => {}));
});

found('two tables in both orders are a cycle, whatever the rows', async () => {
  const [one, other] = [0, 1].map(() => new LockTable(new SharedArrayBuffer(LockTable.bytes(8)), 0, 8));
  await one.executeLocked(1, () => other.executeLocked(2, () => {}));
  await other.executeLocked(3, () => one.executeLocked(4, () => {}));
});

/** The verbs of a table that wait, whose options come after the index. */
const ROWS = {
  'lock()': (table, options) => table.lock(0, options),
  'lockAsync()': (table, options) => table.lockAsync(0, options),
  'acquire()': (table, options) => table.acquire(0, options),
  'acquireAsync()': (table, options) => table.acquireAsync(0, options),
};

for (const [verb, take] of Object.entries(ROWS)) {
  const inBothOrders = (options) => async () => {
    const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(2)), 0, 2, { allowMainThread: true });
    const [a] = createLocks(1, () => ({ allowMainThread: true }));
    table.executeLockedSync(0, () => a.executeLockedSync(() => {}));
    await a.executeLocked(async () => {
      const taken = await take(table, options);
      if (taken === true) table.unlock(0);
      else taken.unlock();
    });
  };
  found(`a row that ${verb} takes inside of a lock comes after it`, inBothOrders());
  for (const endless of [Infinity, { timeout: Infinity }]) {
    found(
      `so does one that ${verb} takes with a timeout that never comes, of type ${typeof endless}`,
      inBothOrders(endless),
    );
  }
  for (const timeout of [60_000, { timeout: 60_000 }]) {
    silent(
      `a row that ${verb} takes with a timeout, of type ${typeof timeout}, inside of a lock does not come after it`,
      inBothOrders(timeout),
    );
  }
}

const MAY = { allowMainThread: true };
const rwlockOf = (side) => () => new RwLock(new SharedArrayBuffer(RwLock.BYTES), 0, MAY)[side];
const mutexOf = () => createLocks(1, () => MAY)[0];
const onceOf = () => new Once(new SharedArrayBuffer(Once.BYTES), 0, MAY);
const manager = new LockManager(MAY);
let made = 0;
const nameOf = () => `order of ${process.pid}.${made++}`;
const withLock = (lock, body, options) => {
  lock.lock(options);
  body();
  lock.unlock();
};
const withGuard = (lock, body, options) => {
  const guard = lock.acquire(options);
  body();
  guard.unlock();
};

const withSync = (lock, body, options) => lock.executeLockedSync(body, options);

/** Verbs that block: how the lock is made, and how a body runs while it is held. */
const BLOCKING = {
  'lock()': [mutexOf, withLock],
  'acquire()': [mutexOf, withGuard],
  'executeLockedSync()': [mutexOf, withSync],
  'lockAll()': [
    mutexOf,
    (lock, body, options) => {
      const guard = lockAll([lock], options);
      body();
      guard.unlock();
    },
  ],
  'read.lock()': [rwlockOf('read'), withLock],
  'read.acquire()': [rwlockOf('read'), withGuard],
  'read.executeLockedSync()': [rwlockOf('read'), withSync],
  'write.lock()': [rwlockOf('write'), withLock],
  'write.acquire()': [rwlockOf('write'), withGuard],
  'runSync()': [onceOf, (once, body, options) => new Int32Array(once.buffer).fill(0) && once.runSync(body, options)],
  'requestSync()': [nameOf, (name, body, options = {}) => manager.requestSync(name, options, body)],
  'acquire() of a name': [
    nameOf,
    (name, body, options) => {
      const held = manager.acquire(name, options);
      body();
      held.unlock();
    },
  ],
};

for (const [verb, [make, hold]] of Object.entries(BLOCKING)) {
  counts(1, verb.includes('name') || verb.startsWith('request') ? needs('async hooks') : {})(
    `what ${verb} blocks for inside of a lock comes after it, and before what is locked inside`,
    () => {
      const [lock, mutex] = [make(), mutexOf()];
      withLock(mutex, () => hold(lock, () => {}));
      hold(lock, () => withLock(mutex, () => {}));
    },
  );

  silent(`what ${verb} would block for with a timeout inside of a lock does not come after it`, () => {
    const [lock, mutex] = [make(), mutexOf()];
    withLock(mutex, () => hold(lock, () => {}, { timeout: 60_000 }));
    hold(lock, () => withLock(mutex, () => {}));
  });
}

found('a once and a mutex in both orders are a cycle', async () => {
  const once = new Once(new SharedArrayBuffer(4));
  const [a] = createLocks(1);
  await a.executeLocked(() => once.run(() => {}));
  const again = new Once(once.buffer);
  new Int32Array(once.buffer)[0] = 0;
  await again.run(() => a.executeLocked(() => {}));
});

for (const [where, offset, row] of [
  ['before', 0, 0],
  ['behind', 12, 1],
]) {
  found(`a mutex directly ${where} a table is none of its locks: both orders are a cycle`, async () => {
    const buffer = new SharedArrayBuffer(16);
    const table = new LockTable(buffer, 4, 2, { name: `beside ${offset}` });
    const mutex = new Mutex(buffer, offset);
    await table.executeLocked(row, () => mutex.executeLocked(() => {}));
    await mutex.executeLocked(() => table.executeLocked(row, () => {}));
  });
}

test(
  'of locks of one name that were locked inside of each other the first sighting is told; of one lock and itself none is',
  needs('async frames'),
  watched(() =>
    withDoctor({ contention: false }, async (doctor) => {
      const [a, b] = createLocks(2, () => ({ name: 'one inside of another' }));
      const rwlock = new RwLock(new SharedArrayBuffer(RwLock.BYTES), 0, { name: 'shared twice' });
      const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(8)), 0, 8, { name: 'two rows' });
      const told = () => doctor.report().sameClass.map(({ from, to }) => [from.name, to.name]);
      await inside(rwlock.read, rwlock.read);
      await table.executeLocked(1, () => table.executeLocked(2, () => {}));
      assert.deepEqual(told(), []);
      await inside(a, b);
      await inside(b, a);
      assert.deepEqual(told(), [[a.name, b.name]]);
      const [{ from, to, held, locked }] = doctor.report().sameClass;
      assert.deepEqual([from.byteOffset, to.byteOffset], [a.byteOffset, b.byteOffset]);
      for (const { stack } of [held, locked]) assert.match(stack[0], /helpers.doctor\.js/);
      assert.notEqual(held.stack[0], locked.stack[0]);
    }),
  ),
);
