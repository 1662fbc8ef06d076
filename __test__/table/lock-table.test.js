// A table of locks: each is a mutex of its own, reached by its number.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Condition, inspectAll, LockGuard, LockTable, lockAll, Mutex } = require('../..');
const { endings } = require('../helpers/endings.js');
const { BYTES, OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const LENGTH = 10;
const terminate = endings.find(({ name }) => name === 'terminate()');

const createTable = (options = { allowMainThread: true }) => {
  const buffer = new SharedArrayBuffer(BYTES);
  return { buffer, table: new LockTable(buffer, OFFSET, LENGTH, options) };
};

test('a table takes four bytes a lock, and changes nothing in memory', () => {
  assert.equal(LockTable.BYTES, 4);
  assert.equal(LockTable.ALIGN, 4);
  assert.equal(LockTable.bytes(1_000_000), 4_000_000);
  const { buffer, table } = createTable({ name: 'rows' });
  assert.deepEqual([table.buffer, table.byteOffset, table.length, table.name], [buffer, OFFSET, LENGTH, 'rows']);
  assert.ok(new Int32Array(buffer).every((word) => word === 0));
  assert.equal(new LockTable(buffer, undefined, 1).byteOffset, 0);
});

test('each lock of a table is one of its own', async () => {
  const { table } = createTable();
  for (let index = 0; index < LENGTH; index++) {
    assert.equal(table.lock(index), true);
    assert.equal(table.isHeldByThisThread(index), true);
    assert.equal(table.tryLock(index), false);
    assert.equal(table.isHeldByThisThread((index + 1) % LENGTH), false);
    assert.equal(table.tryLock((index + 1) % LENGTH), true);
    table.unlock((index + 1) % LENGTH);
    table.unlock(index);
    assert.equal(table.isHeldByThisThread(index), false);
    assert.equal(await table.lockAsync(index), true);
    table.unlock(index);
  }
});

const ways = {
  lock: (table, index) => table.lock(index) && (() => table.unlock(index)),
  'lock with a timeout': (table, index) => table.lock(index, { timeout: 5 }) && (() => table.unlock(index)),
  tryLock: (table, index) => table.tryLock(index) && (() => table.unlock(index)),
  lockAsync: async (table, index) => (await table.lockAsync(index)) && (() => table.unlock(index)),
  'lockAsync with options': async (table, index) =>
    (await table.lockAsync(index, { timeout: 50, ref: false })) && (() => table.unlock(index)),
  acquire(table, index) {
    const guard = table.acquire(index, 50);
    return () => guard.unlock();
  },
  async acquireAsync(table, index) {
    const guard = await table.acquireAsync(index, { timeout: 50 });
    return () => guard.unlock();
  },
  tryAcquire(table, index) {
    const guard = table.tryAcquire(index);
    return () => guard.unlock();
  },
  executeLocked: (table, index) =>
    new Promise((resolve) => {
      const inside = () =>
        new Promise((free) => {
          resolve(() => {
            free();
            return done;
          });
        });
      const done = table.executeLocked(index, inside);
    }),
};

for (const [name, way] of Object.entries(ways)) {
  test(
    `what ${name} of a table holds is the mutex at that place, for every thread`,
    watched(async (_, threads) => {
      const { buffer, table } = createTable();
      const [other] = await threads.puppets(1, buffer);
      const free = await way(table, 7);
      assert.equal(await other.call(OFFSET + 28, 'tryLock'), false);
      assert.equal(await other.call(OFFSET + 24, 'tryLock'), true);
      await free();
      assert.equal(await other.call(OFFSET + 28, 'tryLock'), true);
    }),
  );
}

test('executeLockedSync() of a table holds the lock while the function runs, also if it throws', () => {
  const { table } = createTable();
  const seen = table.executeLockedSync(3, () => table.isHeldByThisThread(3), { timeout: 5 });
  assert.deepEqual([seen, table.isHeldByThisThread(3)], [true, false]);
  assert.throws(() => table.executeLockedSync(3, () => assert.fail('mine')), /mine/);
  assert.equal(table.isHeldByThisThread(3), false);
});

test(
  'a blocked worker and a pending promise get a lock of a table in turn',
  watched(async (_, threads) => {
    const { buffer, table } = createTable();
    const [worker] = await threads.puppets(1, buffer);
    table.lock(4);
    const blocked = worker.call(OFFSET + 16, 'lock');
    await threads.queued(table.at(4), 1);
    const pending = table.lockAsync(4);
    await threads.queued(table.at(4), 2);
    assert.deepEqual(
      table.inspect(4).waiters.map(({ kind }) => kind),
      ['blocking', 'async'],
    );
    table.unlock(4);
    assert.equal(await blocked, true);
    await worker.call(OFFSET + 16, 'unlock');
    assert.equal(await pending, true);
    table.unlock(4);
  }),
);

test('verbs of a table keep the contract of timeouts and signals', async () => {
  const { table } = createTable({ allowMainThread: true, name: 'rows' });
  table.lock(2);
  assert.equal(table.lock(2, 1), false);
  assert.equal(table.lock(2, { timeout: 1 }), false);
  assert.equal(await table.lockAsync(2, 1), false);
  assert.equal(table.tryAcquire(2), null);
  const timedOut = { code: 'ERR_LOCK_TIMEOUT', message: /lock 2 of the table 'rows' at byte offset 1056/ };
  assert.throws(() => table.acquire(2, 1), timedOut);
  await assert.rejects(table.acquireAsync(2, { timeout: 1 }), timedOut);
  await assert.rejects(
    table.executeLocked(2, () => {}, { timeout: 1 }),
    timedOut,
  );
  assert.throws(() => table.executeLockedSync(2, () => {}, { timeout: 1 }), timedOut);
  const reason = new Error('enough');
  await assert.rejects(table.lockAsync(2, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const pending = table.acquireAsync(2, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(pending, reason);
  assert.throws(() => table.lock(2), { code: 'ERR_LOCK_DEADLOCK', message: /lock 2 of the table 'rows'/ });
  table.unlock(2);
});

test('the options of lockAsync() of a table count also if the lock is free, which stays free', async () => {
  const { table } = createTable();
  const reason = new Error('enough');
  await assert.rejects(table.lockAsync(2, { signal: AbortSignal.abort(reason) }), reason);
  for (const wrong of ['5', { timeout: '5' }, { signal: {} }, { ref: 1 }]) {
    await assert.rejects(table.lockAsync(2, wrong), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  assert.equal(table.tryLock(2), true);
  table.unlock(2);
});

test('an index that a table does not have is refused by every verb, and nothing changes', async () => {
  const { buffer, table } = createTable({ allowMainThread: true, name: 'rows' });
  const shy = {
    get constructor() {
      throw new Error('not to be looked at');
    },
  };
  const verbs = {
    lock: (index) => table.lock(index),
    tryLock: (index) => table.tryLock(index),
    unlock: (index) => table.unlock(index),
    lockAsync: (index) => table.lockAsync(index),
    acquire: (index) => table.acquire(index),
    tryAcquire: (index) => table.tryAcquire(index),
    acquireAsync: (index) => table.acquireAsync(index),
    executeLocked: (index) => table.executeLocked(index, () => {}),
    executeLockedSync: (index) => table.executeLockedSync(index, () => {}),
    isHeldByThisThread: (index) => table.isHeldByThisThread(index),
    at: (index) => table.at(index),
    inspect: (index) => table.inspect(index),
    lockAll: (index) => table.lockAll([0, index]),
    lockAllAsync: (index) => table.lockAllAsync([0, index]),
  };
  for (const [verb, call] of Object.entries(verbs)) {
    const refuses = async (index, name, code) => {
      const expected = (error) => {
        assert.deepEqual([error.name, error.code], [name, code], `${verb} of ${inspect(index)}: ${error.message}`);
        assert.match(error.message, /"index".*'rows'/);
        return true;
      };
      if (/Async$|Locked$/.test(verb)) await assert.rejects(call(index), expected);
      else assert.throws(() => call(index), expected);
    };
    for (const index of [-1, LENGTH, 1.5, NaN, Infinity, 2 ** 32])
      await refuses(index, 'RangeError', 'ERR_OUT_OF_RANGE');
    for (const index of [undefined, '1', 1n, null, Symbol('1'), shy])
      await refuses(index, 'TypeError', 'ERR_INVALID_ARG_TYPE');
  }
  assert.ok(new Int32Array(buffer).every((word) => word === 0));
});

test('the error of an index says which a table has, and which lock of which table is meant', () => {
  const { table } = createTable({ name: 'rows' });
  assert.throws(() => table.tryLock(LENGTH), {
    message: `The "index" argument is out of range: it must be an integer from 0 to 9, for the table of locks 'rows' at byte offset ${OFFSET}. Received 10.`,
  });
  assert.throws(() => table.lockAll(5), {
    message: `The "indices" argument for the table of locks 'rows' at byte offset ${OFFSET} must be an array of numbers. Received 5.`,
  });
});

test('a table that its memory cannot have is refused', () => {
  const buffer = new SharedArrayBuffer(64);
  const refuses = (code, ...args) => assert.throws(() => new LockTable(...args), { code });
  for (const length of [undefined, null, '4', 4n]) refuses('ERR_INVALID_ARG_TYPE', buffer, 0, length);
  for (const length of [0, -1, 1.5, NaN, Infinity, 17]) refuses('ERR_OUT_OF_RANGE', buffer, 0, length);
  for (const offset of [2, -4, 64, 4]) refuses('ERR_OUT_OF_RANGE', buffer, offset, 16);
  refuses('ERR_INVALID_ARG_TYPE', new ArrayBuffer(64), 0, 4);
  refuses('ERR_INVALID_ARG_TYPE', buffer, 0, 4, { name: 4 });
  assert.throws(() => LockTable.bytes(0), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(() => LockTable.bytes(), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.equal(new LockTable(buffer, 0, 16).length, 16);
});

test('the error of a bad argument, or of what is not held, names the lock of the table', async () => {
  const { table } = createTable({ allowMainThread: true, name: 'rows' });
  const place = `lock 3 of the table 'rows' at byte offset ${OFFSET + 12}`;
  const bad = { timeout: '5' };
  const code = 'ERR_INVALID_ARG_TYPE';
  for (const [call, expected] of [
    [() => table.executeLockedSync(3, undefined), code],
    [() => table.executeLocked(3, undefined), code],
    [() => table.at(3).enter(undefined), code],
    [() => table.lock(3, bad), code],
    [() => table.lockAsync(3, bad), code],
    [() => table.acquire(3, bad), code],
    [() => table.acquireAsync(3, bad), code],
    [() => table.executeLocked(3, () => {}, bad), code],
    [() => table.executeLockedSync(3, () => {}, bad), code],
    [() => table.at(3).lock(bad), code],
    [() => table.unlock(3), 'ERR_LOCK_NOT_OWNER'],
    [() => table.at(3).leave(undefined), 'ERR_LOCK_NOT_OWNER'],
    [() => table.at(3).markConsistent(), 'ERR_LOCK_NOT_OWNER'],
  ]) {
    const isRight = (error) => error.code === expected && error.message.includes(place);
    await assert.rejects(async () => call(), isRight, `${call}`);
  }
});

test('lockAll() of a table refuses what is no list of indices', async () => {
  const { table } = createTable();
  for (const indices of [undefined, null, 3, {}]) {
    const expected = { code: 'ERR_INVALID_ARG_TYPE', message: /^The "indices" argument/ };
    assert.throws(() => table.lockAll(indices), expected);
    await assert.rejects(table.lockAllAsync(indices), expected);
  }
});

test('the main thread must not block on a table unless it may', () => {
  const { table } = createTable({ name: 'rows' });
  const refused = { code: 'ERR_LOCK_MAIN_THREAD', message: /lock 1 of the table 'rows'.*the LockTable with/ };
  assert.throws(() => table.lock(1), refused);
  assert.throws(() => table.acquire(1), refused);
  assert.throws(() => table.executeLockedSync(1, () => {}), refused);
  assert.throws(() => table.lockAll([1]), refused);
  const mutex = table.at(1);
  assert.throws(() => mutex.lock(), refused);
  assert.throws(() => mutex.acquire(), refused);
  assert.throws(() => mutex.executeLockedSync(() => {}), refused);
  assert.throws(() => lockAll([mutex]), refused);
  const condition = new Condition(new SharedArrayBuffer(4));
  assert.throws(() => condition.wait(mutex), refused);
  assert.throws(() => condition.waitFor(mutex, () => true), refused);
  assert.equal(table.tryLock(1), true);
});

test('the lock of a table as an object is the same lock', async () => {
  const { table } = createTable();
  const mutex = table.at(6);
  assert.ok(mutex instanceof Mutex);
  assert.equal(mutex.byteOffset, OFFSET + 24);
  table.lock(6);
  assert.equal(mutex.isHeldByThisThread, true);
  mutex.unlock();
  during(mutex.acquire(), () => assert.equal(table.isHeldByThisThread(6), true));
  const guard = table.acquire(6);
  assert.ok(guard instanceof LockGuard);
  assert.equal(guard.mutex.byteOffset, OFFSET + 24);
  assert.throws(() => table.unlock(6), { code: 'ERR_LOCK_NOT_OWNER', message: /lock 6 of the table/ });
  assert.equal(guard.unlock(), true);
  assert.equal(guard.unlock(), false);
});

function during(guard, body) {
  try {
    body();
  } finally {
    guard.unlock();
  }
}

test('a condition waits with a lock of a table', async () => {
  const { buffer, table } = createTable();
  const condition = new Condition(buffer, 0);
  const lock = table.at(3);
  lock.lock();
  const waiting = condition.waitAsync(lock);
  assert.equal(table.isHeldByThisThread(3), false);
  condition.notifyAll();
  assert.equal(await waiting, true);
  assert.equal(table.isHeldByThisThread(3), true);
  lock.unlock();
});

test('unlocking what this thread does not hold of a table is refused', () => {
  const { table } = createTable();
  table.lock(1);
  assert.throws(() => table.unlock(2), { code: 'ERR_LOCK_NOT_OWNER', message: /lock 2 of the table/ });
  assert.equal(table.isHeldByThisThread(1), true);
  table.unlock(1);
});

test('a word of a table that no sablock wrote is found out, and the others work on', () => {
  const { buffer, table } = createTable();
  new Int32Array(buffer, OFFSET)[5] = 5;
  assert.throws(() => table.tryLock(5), { code: 'ERR_LOCK_CORRUPT', message: /lock 5 of the table/ });
  assert.equal(table.tryLock(4), true);
  table.unlock(4);
});

for (const verb of [
  'lock',
  'tryLock',
  'lockAsync',
  'acquire',
  'acquireAsync',
  'tryAcquire',
  'lockAll',
  'lockAllAsync',
]) {
  test(
    `onAbandoned of a table repairs what an ended thread has left, before ${verb} returns`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const calls = [];
      const onAbandoned = (table, index) => calls.push([table, index, table.at(index).abandoned]);
      const { buffer, table } = createTable({ allowMainThread: true, onAbandoned });
      const [holder] = await threads.puppets(1, buffer);
      await holder.call(OFFSET + 20, 'lock');
      await terminate.end(holder);
      const held = await table[verb](verb.startsWith('lockAll') ? [4, 5] : 5);
      assert.deepEqual(calls, [[table, 5, true]]);
      assert.equal(table.at(5).abandoned, false);
      assert.equal(table.isHeldByThisThread(5), true);
      if (held === true) table.unlock(5);
      else held.unlock();
      assert.equal(table.tryLock(5), true);
    }),
  );
}

test(
  'without onAbandoned, the warning of an ended holder names the lock of the table',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, table } = createTable({ allowMainThread: true, name: 'rows' });
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const [holder] = await threads.puppets(1, buffer);
    await holder.call(OFFSET + 20, 'lock');
    await terminate.end(holder);
    assert.equal(table.tryLock(5), true);
    assert.equal(table.at(5).abandoned, true);
    const { code, message } = await warned;
    assert.equal(code, 'SABLOCK_ABANDONED');
    assert.match(message, /lock 5 of the table 'rows' at byte offset 1068/);
    table.unlock(5);
  }),
);

test('what shows a table says its name: inspect(), inspectAll(), console.log()', async () => {
  const { table } = createTable({ name: 'rows' });
  table.tryLock(8);
  const pending = table.lockAsync(8);
  assert.deepEqual([table.inspect(8).name, table.inspect(8).locked, table.inspect(7).locked], ['rows', true, false]);
  const [queued] = inspectAll().filter(({ name }) => name === 'rows');
  assert.deepEqual([queued.byteOffset, queued.waiters.length], [OFFSET + 32, 1]);
  assert.equal(inspect(table), `LockTable 'rows' { byteOffset: ${OFFSET}, length: ${LENGTH} }`);
  assert.match(inspect({ deep: [{ table }] }, { depth: 1 }), /\[Object\]/);
  table.unlock(8);
  assert.equal(await pending, true);
  table.unlock(8);
});

test('promises of one lock of a table are settled in the order of the calls, though it is free at the second', async () => {
  const table = new LockTable(new SharedArrayBuffer(64), 0, 16);
  for (let round = 0; round < 3; round++) {
    const order = [];
    const lock = (number) =>
      table.lockAsync(5).then((isHeld) => {
        order.push([number, isHeld]);
        table.unlock(5);
      });
    table.tryLock(5);
    const first = lock(1);
    // Its loop has not come for the lock yet.
    table.unlock(5);
    const second = lock(2);
    await Promise.all([first, second]);
    assert.deepEqual(order, [
      [1, true],
      [2, true],
    ]);
  }
});
