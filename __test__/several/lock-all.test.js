// Several locks at once: all or none.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Condition, lockAll, LockAllGuard, lockAllAsync, LockTable, Mutex } = require('../..');
const { needs } = require('../helpers/runtime.js');
const { ALL, NONE, OFFSETS, createMutexes, forms, held } = require('../helpers/several.js');
const { watched } = require('../helpers/threads.js');

for (const [name, lock] of Object.entries(forms)) {
  test(`${name}() holds all until its guard frees them, once`, async () => {
    const { mutexes } = createMutexes();
    const guard = await lock([mutexes[2], mutexes[0], mutexes[3], mutexes[1]]);
    assert.ok(guard instanceof LockAllGuard);
    assert.deepEqual(held(mutexes), ALL);
    assert.deepEqual([guard.locked, guard.abandoned], [true, []]);
    assert.throws(() => mutexes[0].unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.equal(guard.unlock(), true);
    assert.deepEqual(held(mutexes), NONE);
    mutexes[1].lock();
    assert.deepEqual([guard.unlock(), guard.locked, guard.abandoned], [false, false, []]);
    assert.equal(mutexes[1].isHeldByThisThread, true);
  });

  test(`${name}() counts a lock that is named twice once, whichever objects and buffers name it`, async () => {
    const { buffer, mutexes } = createMutexes();
    const twins = OFFSETS.map((offset) => new Mutex(buffer, offset, { allowMainThread: true }));
    const table = new LockTable(buffer, 8, 4, { allowMainThread: true });
    const guard = await lock([...mutexes, ...twins, mutexes[0], table.at(2)]);
    assert.deepEqual(held(mutexes), ALL);
    assert.equal(guard.unlock(), true);
    assert.deepEqual(held(mutexes), NONE);
  });

  test(`${name}() of nothing is a guard of nothing`, async () => {
    const guard = await lock([]);
    assert.deepEqual([guard.locked, guard.abandoned, guard.unlock()], [false, [], false]);
  });

  test(`${name}() takes any iterable`, async () => {
    const { mutexes } = createMutexes();
    const guard = await lock(new Set(mutexes));
    assert.deepEqual(held(mutexes), ALL);
    guard[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
    assert.deepEqual(held(mutexes), NONE);
  });

  test(`${name}() out of time holds none`, async () => {
    const { mutexes } = createMutexes({ allowMainThread: true, name: 'mine' });
    mutexes[2].lock();
    for (const options of [0, 5, { timeout: 5 }]) {
      await assert.rejects(lock(mutexes, options), {
        name: 'TimeoutError',
        code: 'ERR_LOCK_TIMEOUT',
        message: new RegExp(`^${name}\\(\\) timed out .*'mine' at byte offset 24.*This call holds none of the locks`),
      });
      assert.deepEqual(held(mutexes), [false, false, true, false]);
      assert.equal(mutexes[0].tryLock(), true, 'others get what was given back');
      mutexes[0].unlock();
    }
  });

  test(`${name}() refuses what is no lock, before it takes any`, async () => {
    const { buffer, mutexes } = createMutexes();
    const refused = (argument) => ({
      name: 'TypeError',
      code: 'ERR_INVALID_ARG_TYPE',
      message: new RegExp(`"${argument}"`),
    });
    for (const lockables of [undefined, null, 5, 'locks', mutexes[0], { length: 0 }]) {
      await assert.rejects(lock(lockables), refused('lockables'));
    }
    const others = [
      undefined,
      null,
      5,
      {},
      new Int32Array(buffer),
      new Condition(buffer),
      Object.create(Mutex.prototype),
    ];
    for (const other of others) {
      await assert.rejects(lock([mutexes[0], other]), refused('lockables\\[1\\]'));
    }
    await assert.rejects(lock(mutexes, 'soon'), refused('timeout'));
    await assert.rejects(lock(mutexes, { timeout: '5' }), refused('options.timeout'));
    assert.deepEqual(held(mutexes), NONE);
  });

  test(`${name}() of a word that no sablock wrote holds none`, async () => {
    const { buffer, mutexes } = createMutexes();
    new Int32Array(buffer)[6] = 3;
    await assert.rejects(lock(mutexes), { code: 'ERR_LOCK_CORRUPT', message: /offset 24/ });
    assert.deepEqual(held(mutexes), NONE);
    assert.equal(mutexes[0].tryLock(), true);
  });

  test(`a hold of ${name}() may wait for a condition, and is not freed meanwhile`, async () => {
    const { buffer, mutexes } = createMutexes();
    const condition = new Condition(buffer, 0);
    const guard = await lock(mutexes);
    const waiting = condition.waitAsync(mutexes[1]);
    assert.throws(() => guard.unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.deepEqual([guard.locked, held(mutexes)], [true, NONE], 'the others are free');
    condition.notifyAll();
    await waiting;
    assert.deepEqual(held(mutexes), [false, true, false, false]);
    assert.deepEqual([guard.unlock(), guard.unlock(), guard.locked], [true, false, false]);
    assert.deepEqual(held(mutexes), NONE);
  });
}

test('the main thread must not block for several locks if it may not for one of them', () => {
  const { buffer, mutexes } = createMutexes();
  const other = new Mutex(buffer, 40, { name: 'other' });
  assert.throws(() => lockAll([...mutexes, other]), {
    code: 'ERR_LOCK_MAIN_THREAD',
    message: /'other' at byte offset 40.*lockAllAsync/,
  });
  const another = new Mutex(buffer, 44, { name: 'another' });
  assert.throws(() => lockAll([another, mutexes[0], other]), { message: /'another' at byte offset 44/ });
  assert.deepEqual(held(mutexes), NONE);
});

test('lockAll() of a lock that this thread holds is a deadlock, and holds no other', () => {
  const { mutexes } = createMutexes();
  for (const verb of ['lock', 'tryAcquire']) {
    const guard = mutexes[3][verb]();
    assert.throws(
      () => lockAll(mutexes),
      (error) => {
        assert.deepEqual([error.name, error.code], ['DeadlockError', 'ERR_LOCK_DEADLOCK']);
        assert.deepEqual(error.cycle, [{ threadId: 0, byteOffset: 32 }]);
        return true;
      },
    );
    assert.deepEqual(held(mutexes), [false, false, false, true]);
    if (guard === true) mutexes[3].unlock();
    else guard.unlock();
  }
});

test('a table locks several of its locks by their numbers', async () => {
  const table = new LockTable(new SharedArrayBuffer(400), 0, 100, { allowMainThread: true });
  for (const verb of ['lockAll', 'lockAllAsync']) {
    const guard = await table[verb]([7, 99, 7, 0]);
    const isHeld = () => [0, 1, 7, 99].map((index) => table.isHeldByThisThread(index));
    assert.deepEqual(isHeld(), [true, false, true, true]);
    assert.equal(guard.unlock(), true);
    assert.deepEqual(isHeld(), NONE);
  }
  assert.throws(() => table.lockAll(5), { code: 'ERR_INVALID_ARG_TYPE', message: /"indices"/ });
  await assert.rejects(table.lockAllAsync(), { code: 'ERR_INVALID_ARG_TYPE', message: /"indices"/ });
});

test(
  'a blocked lockAll() holds those before the one that it waits for, and gets them all in the end',
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes();
    const [worker] = await threads.puppets(1, buffer);
    mutexes[2].lock();
    const locked = worker.call('lockAll', [...OFFSETS].reverse());
    await threads.queued(mutexes[2], 1);
    assert.deepEqual(
      mutexes.map((mutex) => mutex.tryLock()),
      [false, false, false, true],
    );
    mutexes[3].unlock();
    mutexes[2].unlock();
    assert.deepEqual(await locked, []);
    assert.ok(mutexes.every(({ isLocked }) => isLocked));
    assert.equal(await worker.call('unlockAll'), true);
    assert.ok(mutexes.every((mutex) => mutex.tryLock()));
  }),
);

test(
  'a wait for several locks is published for each of them',
  needs('short slices'),
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes({ allowMainThread: true, name: 'mine' });
    const [holder, blocked] = await threads.puppets(2, buffer);
    const messages = [];
    const note = ({ mutex, byteOffset, kind, ownerThreadId, waitedMs, outcome, name }) => {
      assert.ok(mutexes.includes(mutex) && waitedMs >= 0 && name === 'mine');
      messages.push([byteOffset, kind, ownerThreadId, outcome]);
    };
    subscribe('sablock:contended', note);
    try {
      await holder.call(8, 'lock');
      await holder.call(32, 'lock');
      const pending = lockAllAsync(mutexes, { timeout: 30_000 });
      await holder.call(8, 'unlock');
      await threads.queued(mutexes[3], 1);
      await holder.call(32, 'unlock');
      (await pending).unlock();
      await holder.call(24, 'lock');
      assert.throws(() => lockAll(mutexes, 5), { code: 'ERR_LOCK_TIMEOUT' });
    } finally {
      unsubscribe('sablock:contended', note);
    }
    assert.deepEqual(messages, [
      [8, 'async', holder.threadId, 'acquired'],
      [32, 'async', holder.threadId, 'acquired'],
      [24, 'blocking', holder.threadId, 'timed-out'],
    ]);
    await blocked.call('listen', 'sablock:contended');
    // It gets the first, and never the other, which it holds itself.
    await holder.call(8, 'lock');
    await blocked.call(32, 'lock');
    const inVain = blocked.call('lockAll', [8, 32]);
    await threads.queued(
      mutexes.find(({ byteOffset }) => byteOffset === 8),
      1,
    );
    await holder.call(8, 'unlock');
    await assert.rejects(inVain, { code: 'ERR_LOCK_DEADLOCK' });
    assert.deepEqual(await blocked.call('heard', 'sablock:contended'), [], 'both waits have ended by an error');
    await blocked.call(32, 'unlock');
    // It gets the first, and runs out of time at the other.
    await holder.run([
      [8, 'lock'],
      [32, 'lock'],
    ]);
    const late = blocked.call('lockAll', [8, 32], 500);
    await threads.queued(mutexes[0], 1);
    await holder.call(8, 'unlock');
    await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT' });
    await holder.call(32, 'unlock');
    const outcomes = (await blocked.call('heard', 'sablock:contended')).map(({ outcome }) => outcome);
    assert.deepEqual([...new Set(outcomes)], ['timed-out'], 'the first has gone back');
    await blocked.call('listen', 'sablock:long-hold', 5);
    const all = blocked.call('lockAll', OFFSETS);
    await threads.raised(5);
    await holder.call(24, 'unlock');
    await all;
    const message = (await blocked.call('heard', 'sablock:contended')).at(-1);
    assert.deepEqual([message.byteOffset, message.kind, message.outcome], [24, 'blocking', 'acquired']);
    const long = await blocked.call('heard', 'sablock:long-hold');
    assert.deepEqual([...new Set(long.map(({ byteOffset }) => byteOffset))], [24]);
  }),
);

test('a guard of several locks of which some are away frees the others, and throws why the first of them is not free', async () => {
  const { buffer, mutexes } = createMutexes();
  const guard = lockAll(mutexes);
  const condition = new Condition(buffer, 40);
  const waits = [mutexes[1], mutexes[2]].map((mutex) => condition.waitAsync(mutex));
  for (let time = 0; time < 2; time++) {
    assert.throws(() => guard.unlock(), {
      code: 'ERR_LOCK_NOT_OWNER',
      message: /at byte offset 16: the hold of this guard is away/,
    });
    assert.deepEqual([held(mutexes), guard.locked], [NONE, true]);
  }
  condition.notifyAll();
  assert.deepEqual(await Promise.all(waits), [true, true]);
  assert.deepEqual(held(mutexes), [false, true, true, false]);
  assert.deepEqual([guard.locked, guard.unlock(), guard.locked], [true, true, false]);
  assert.deepEqual(held(mutexes), NONE);
});

test('a guard of several locks shows itself', () => {
  const { mutexes } = createMutexes();
  const guard = lockAll(mutexes.slice(0, 1));
  assert.match(inspect(guard), /^LockAllGuard \{\s+locked: true,\s+locks: \[\s*Mutex/);
  assert.match(inspect({ guard }, { depth: 0 }), /guard: \[LockAllGuard\]/);
  guard.unlock();
  assert.match(inspect(guard), /^LockAllGuard \{\s+locked: false,/);
  assert.throws(() => new LockAllGuard(), { name: 'TypeError' });
});
