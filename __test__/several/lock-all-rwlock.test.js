// Several locks at once, of which some are RwLocks: to read, or to write.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { lockAll, lockAllAsync, LockTable, Mutex, RwLock } = require('../..');
const { endings } = require('../helpers/endings.js');
const { BYTES } = require('../helpers/memory.js');
const { listen, warningsOf } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { forms } = require('../helpers/several.js');
const { watched } = require('../helpers/threads.js');

// In the order of their places: a mutex, two RwLocks, and a lock of a table.
const [MUTEX, FIRST, SECOND, ROW] = [8, 16, 24, 32];
const terminate = endings.find(({ name }) => name === 'terminate()');

const create = (options) => {
  const buffer = new SharedArrayBuffer(BYTES);
  const all = { allowMainThread: true, ...options };
  const mutex = new Mutex(buffer, MUTEX, all);
  const first = new RwLock(buffer, FIRST, all);
  const second = new RwLock(buffer, SECOND, all);
  const table = new LockTable(buffer, ROW, 4, { allowMainThread: true });
  const words = new Int32Array(buffer, 0, BYTES / 4);
  return { buffer, mutex, first, second, table, row: table.at(0), isFree: () => words.every((word) => word === 0) };
};
for (const [name, lock] of Object.entries(forms)) {
  test(`${name}() holds mutexes, rows of tables, and RwLocks as their modes say`, async () => {
    const { mutex, first, second, row, isFree } = create();
    const guard = await lock([row, second.write, first.read, mutex]);
    assert.deepEqual([guard.locked, guard.abandoned], [true, []]);
    assert.deepEqual(
      [mutex, first.read, first.write, second.read, second.write, row].map((one) => one.isHeldByThisThread),
      [true, true, false, false, true, true],
    );
    assert.deepEqual([first.readers, first.isWriteLocked, second.isWriteLocked], [1, false, true]);
    for (const one of [mutex, first.read, second.write, row]) assert.throws(() => one.unlock(), /belongs to a guard/);
    assert.deepEqual([guard.unlock(), guard.unlock(), guard.locked], [true, false, false]);
    assert.ok(isFree());
  });

  test(`${name}() of read and write of one RwLock holds it to write, once`, async () => {
    const { buffer, first, isFree } = create();
    const twin = new RwLock(buffer, FIRST, { allowMainThread: true });
    for (const list of [
      [first.read, first.write],
      [first.write, first.read, first.read],
      [twin.read, first.write, first.read, twin.write],
    ]) {
      const guard = await lock(list);
      assert.deepEqual([first.isWriteLocked, first.readers, first.inspect().holders[0].count], [true, 0, 1]);
      assert.equal(first.read.isHeldByThisThread, false);
      assert.equal(guard.unlock(), true);
      assert.ok(isFree());
    }
  });

  test(`${name}() of read that is named twice is one hold`, async () => {
    const { buffer, first, isFree } = create();
    const twin = new RwLock(buffer, FIRST, { allowMainThread: true });
    const guard = await lock([first.read, twin.read, first.read]);
    assert.equal(first.readers, 1);
    assert.equal(guard.unlock(), true);
    assert.ok(isFree());
  });

  test(`${name}() enters beside readers, and out of time for a writer holds none`, async () => {
    const { mutex, first, second, isFree } = create({ name: 'mine' });
    const inside = await lock([first.read, second.read]);
    const beside = await lock([first.read, second.read]);
    assert.deepEqual([first.readers, second.readers], [2, 2]);
    for (const options of [0, 5, { timeout: 5 }]) {
      await assert.rejects(lock([mutex, first.read, second.write], options), {
        name: 'TimeoutError',
        code: 'ERR_LOCK_TIMEOUT',
        message: new RegExp(
          `^${name}\\(\\) timed out .* the rwlock 'mine' at byte offset 24.* held now, shared, by this thread`,
        ),
      });
      assert.deepEqual([first.readers, second.readers, mutex.isLocked], [2, 2, false]);
    }
    beside.unlock();
    assert.deepEqual([first.readers, second.readers], [1, 1]);
    inside.unlock();
    assert.ok(isFree());
  });

  test(`${name}() refuses an RwLock, a table, and what only looks like a lock`, async () => {
    const { mutex, first, table, isFree } = create();
    const pretended = [Object.create(first.read), Object.create(Object.getPrototypeOf(first.write)), { ...first.read }];
    for (const other of [first, table, ...pretended]) {
      await assert.rejects(lock([mutex, first.read, other]), {
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_TYPE',
        message: /"lockables\[2\]" argument must be a Mutex, or read or write of an RwLock/,
      });
      assert.ok(isFree());
    }
  });

  test(`${name}() of an RwLock that no sablock wrote holds none`, async () => {
    const { buffer, mutex, first, second } = create();
    new Int32Array(buffer)[SECOND / 4] = 3;
    for (const mode of ['read', 'write']) {
      await assert.rejects(lock([mutex, first.read, second[mode]]), { code: 'ERR_LOCK_CORRUPT', message: /offset 24/ });
      assert.deepEqual([mutex.isLocked, first.readers], [false, 0]);
    }
  });

  test(
    `the end of a writer inside marks what ${name}() gets, to read too, until markConsistent`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const messages = listen(t, 'sablock:abandoned');
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      const { buffer, mutex, first, second } = create();
      const [doomed] = await threads.puppets(1, buffer);
      await doomed.call('lockAll', [MUTEX, [FIRST, 'write'], [SECOND, 'write']]);
      await terminate.end(doomed);
      const guard = await lock([first.read, second.write]);
      assert.deepEqual(guard.abandoned, [first.read, second.write]);
      assert.deepEqual([first.abandoned, second.abandoned], [true, true]);
      second.markConsistent();
      assert.deepEqual(guard.abandoned, [first.read]);
      guard.unlock();
      assert.deepEqual(guard.abandoned, []);
      const message = (byteOffset) => ({ byteOffset, ownerThreadId: doomed.threadId, mode: 'exclusive' });
      assert.deepEqual(messages, [message(FIRST), message(SECOND)], 'each is published once');
      await nextTurn();
      assert.deepEqual(
        warnings.map(({ message }) => /offset (\d+).*now (reads|belongs)/.exec(message).slice(1)),
        [
          [String(FIRST), 'reads'],
          [String(SECOND), 'belongs'],
        ],
      );
      assert.equal(mutex.isLocked, true, 'nobody has come for it');
    }),
  );

  test(
    `onAbandoned repairs what ${name}() gets to write, with the RwLock, and not what it gets to read`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const repaired = [];
      const { buffer, first, second } = create({ onAbandoned: (lock) => repaired.push(lock) });
      const [doomed] = await threads.puppets(1, buffer);
      await doomed.call('lockAll', [
        [FIRST, 'write'],
        [SECOND, 'write'],
      ]);
      await terminate.end(doomed);
      const guard = await lock([first.read, second.write]);
      assert.deepEqual([repaired, guard.abandoned], [[second], [first.read]]);
      guard.unlock();
      (await lock([first.write])).unlock();
      assert.deepEqual(repaired, [second, first]);
    }),
  );

  test(
    `if onAbandoned throws, ${name}() gives its read holds back too`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      let isThrowing = true;
      const onAbandoned = () => {
        if (isThrowing) throw new Error('cannot repair');
      };
      const { buffer, mutex, first, second, isFree } = create({ onAbandoned });
      const [doomed] = await threads.puppets(1, buffer);
      await doomed.call('lockAll', [[SECOND, 'write']]);
      await terminate.end(doomed);
      await assert.rejects(lock([mutex, first.read, second.write]), /cannot repair/);
      assert.deepEqual([mutex.isLocked, first.readers, second.write.isHeldByThisThread], [false, 0, false]);
      isThrowing = false;
      const guard = await lock([second.write]);
      assert.deepEqual(guard.abandoned, []);
      guard.unlock();
      assert.ok(isFree());
    }),
  );

  test(
    `the end of readers is published by the ${name}() that gets in because of it, for each lock`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const messages = listen(t, 'sablock:abandoned');
      const { buffer, mutex, first, second, isFree } = create();
      const [doomed] = await threads.puppets(1, buffer);
      await doomed.call('lockAll', [
        [FIRST, 'read'],
        [SECOND, 'read'],
      ]);
      await terminate.end(doomed);
      assert.ok(isFree(), 'what it read has gone back');
      mutex.tryLock();
      const pending = lockAllAsync([mutex, second.write, first.write]);
      mutex.unlock();
      const guard = await (name === 'lockAll' ? pending.then((held) => held.unlock() && lock([first.write])) : pending);
      guard.unlock();
      const message = (byteOffset) => ({ byteOffset, ownerThreadId: doomed.threadId, mode: 'shared' });
      assert.deepEqual(messages, [message(SECOND), message(FIRST)]);
    }),
  );
}

test('the main thread must not block for several locks if it may not for an RwLock', () => {
  const { mutex, isFree } = create();
  const other = new RwLock(new SharedArrayBuffer(8), 0, { name: 'other' });
  for (const mode of ['read', 'write']) {
    assert.throws(() => lockAll([mutex, other[mode]]), {
      code: 'ERR_LOCK_MAIN_THREAD',
      message: /the rwlock 'other' at byte offset 0.*lockAllAsync\(\).*create the RwLock with/,
    });
  }
  assert.ok(isFree());
});

test('lockAll() of an RwLock that this thread holds is a deadlock where the wait could not end, and holds no other', () => {
  const { mutex, first, second } = create();
  for (const [held, wanted, isDeadlock] of [
    ['write', 'write', true],
    ['write', 'read', true],
    ['read', 'write', true],
    ['read', 'read', false],
  ]) {
    second[held].lock();
    const lock = () => lockAll([mutex, first.read, second[wanted]]);
    if (isDeadlock) {
      assert.throws(lock, (error) => {
        assert.deepEqual([error.name, error.cycle], ['DeadlockError', [{ threadId: 0, byteOffset: SECOND }]]);
        return true;
      });
    } else {
      lock().unlock();
    }
    assert.deepEqual([mutex.isLocked, first.readers], [false, 0]);
    assert.throws(() => lockAll([second.write], 1), { code: 'ERR_LOCK_TIMEOUT' }, 'with a timeout');
    second[held].unlock();
  }
});

test('what lockAllAsync() has got is held by its thread while it waits for the others, to read too', async () => {
  const { buffer, mutex, first, second, isFree } = create();
  const twin = new RwLock(buffer, FIRST);
  second.write.tryLock();
  const pending = lockAllAsync([mutex, first.read, second.read]);
  const locks = [mutex, first.read, twin.read, second.read, first.write];
  assert.deepEqual(
    locks.map(({ isHeldByThisThread }) => isHeldByThisThread),
    [true, true, true, false, false],
  );
  for (const lock of [mutex, first.read, first.write, twin.read]) {
    const message = lock === first.write ? /does not hold it to write/ : /belongs to .* pending lockAllAsync\(\)/;
    assert.throws(() => lock.unlock(), { code: 'ERR_LOCK_NOT_OWNER', message });
  }
  second.write.unlock();
  (await pending).unlock();
  assert.deepEqual(
    locks.map(({ isHeldByThisThread }) => isHeldByThisThread),
    [false, false, false, false, false],
  );
  assert.ok(isFree());
});

test('an abort of lockAllAsync() gives back its read holds, and the next get in', async () => {
  const { mutex, first, second, isFree } = create();
  second.write.tryLock();
  const controller = new AbortController();
  const pending = lockAllAsync([mutex, first.read, second.read], { signal: controller.signal });
  const behind = first.write.lockAsync();
  assert.deepEqual([mutex.isLocked, first.readers], [true, 1]);
  controller.abort();
  await assert.rejects(pending, { name: 'AbortError' });
  assert.equal(await behind, true);
  assert.deepEqual([mutex.isLocked, first.isWriteLocked], [false, true]);
  first.write.unlock();
  second.write.unlock();
  assert.ok(isFree());
});

test('lockAllAsync() out of time behind a writer gives back its read holds', async () => {
  const { first, second, isFree } = create();
  second.write.tryLock();
  await assert.rejects(lockAllAsync([first.read, second.read], 20), { code: 'ERR_LOCK_TIMEOUT', message: /offset 24/ });
  assert.equal(first.write.tryLock(), true);
  first.write.unlock();
  second.write.unlock();
  assert.ok(isFree());
});

test(
  'several threads read by lockAll() at once, and a writer comes in between them',
  watched(async (_, threads) => {
    const { buffer, first, second, isFree } = create();
    const readers = await threads.puppets(3, buffer);
    const places = [
      [FIRST, 'read'],
      [SECOND, 'read'],
    ];
    await Promise.all(readers.map((reader, index) => reader.call(index ? 'lockAll' : 'lockAllAsync', places)));
    assert.deepEqual([first.readers, second.readers], [3, 3]);
    const writing = lockAllAsync([second.write, first.write]);
    await threads.queued(first, 1);
    assert.equal(first.read.tryLock(), false, 'behind the writer');
    await Promise.all(readers.map((reader) => reader.call('unlockAll')));
    const guard = await writing;
    assert.deepEqual([first.isWriteLocked, second.isWriteLocked], [true, true]);
    guard.unlock();
    assert.ok(isFree());
  }),
);

for (const ending of endings) {
  test(
    `the end by ${ending.name} of a thread that holds several locks marks those that it had to write`,
    needs('prompt ends', ...ending.needs),
    watched(async (_, threads) => {
      const { buffer, mutex, first, second, isFree } = create();
      const [doomed] = await threads.puppets(1, buffer, ending.options);
      await doomed.call('lockAll', [MUTEX, [FIRST, 'read'], [SECOND, 'write']]);
      const pending = lockAllAsync([mutex, first.write, second.read]);
      await ending.end(doomed);
      const guard = await pending;
      assert.deepEqual(guard.abandoned, [mutex, second.read]);
      mutex.markConsistent();
      guard.unlock();
      second.write.lock();
      second.markConsistent();
      second.write.unlock();
      assert.ok(isFree());
    }),
  );

  test(
    `the end by ${ending.name} of a thread that awaits several locks gives back what it had, unmarked`,
    needs(...ending.needs),
    watched(async (_, threads) => {
      const { buffer, mutex, first, second, isFree } = create();
      const [doomed] = await threads.puppets(1, buffer, ending.options);
      second.write.tryLock();
      doomed.call('lockAllAsync', [MUTEX, [FIRST, 'read'], [SECOND, 'read']], { ref: false });
      await threads.queued(second, 1);
      assert.deepEqual([mutex.isLocked, first.readers], [true, 1]);
      const pending = lockAllAsync([mutex, first.write]);
      await ending.end(doomed);
      const guard = await pending;
      assert.deepEqual([guard.abandoned, second.inspect().waiters], [[], []]);
      guard.unlock();
      second.write.unlock();
      assert.ok(isFree());
    }),
  );
}

test(
  'terminate() ends a blocked lockAll(), and frees what it read and wrote, unmarked',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const { buffer, mutex, first, second, row, isFree } = create();
    const [doomed] = await threads.puppets(1, buffer);
    row.tryLock();
    doomed.call('lockAll', [MUTEX, [FIRST, 'read'], [SECOND, 'write'], ROW]);
    await threads.queued(row, 1);
    assert.deepEqual([mutex.isLocked, first.readers, second.isWriteLocked], [true, 1, true]);
    await terminate.end(doomed);
    row.unlock();
    const guard = await lockAllAsync([mutex, first.write, second.read]);
    assert.deepEqual(guard.abandoned, []);
    guard.unlock();
    assert.ok(isFree());
  }),
);
