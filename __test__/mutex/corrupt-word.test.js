const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET, overwrite } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

/** Values that no sablock can have written: ids start above 2 ** 16, and all values are below 2 ** 30. */
const FOREIGN = [1, 2, 3, 255, 2 ** 16 - 1, -1, -2, 0x7fffffff, -0x80000000, 2 ** 30, 0x40000000 + 77];
const SINGLE_BITS = Array.from({ length: 32 }, (_, bit) => (1 << bit) | 0);

/** Numbers that look random and are the same in every run. */
const scattered = (count) => {
  let state = 0x2545f491;
  return Array.from({ length: count }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state | 0;
  });
};

const hex = (value) => `0x${(value >>> 0).toString(16)}`;

for (const value of FOREIGN) {
  test(
    `a word of ${hex(value)} is ERR_LOCK_CORRUPT for every verb that would take it, and stays`,
    watched(async (_, threads) => {
      const { buffer, mutex, word } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      overwrite(mutex, value);
      for (const verb of ['tryLock', 'tryAcquire']) assert.throws(() => mutex[verb](), expected.corrupt(OFFSET), verb);
      assert.throws(() => mutex.tryLock(), { message: new RegExp(` holds ${hex(value)} in its first word`) });
      for (const verb of ['lockAsync', 'acquireAsync'])
        await assert.rejects(mutex[verb]({ timeout: 50 }), expected.corrupt(OFFSET), verb);
      await assert.rejects(
        mutex.executeLocked(() => assert.fail('ran'), { timeout: 50 }),
        expected.corrupt(OFFSET),
      );
      await assert.rejects(mutex.lockAsync(), expected.corrupt(OFFSET));
      await assert.rejects(worker.call('lock', 50), expected.corrupt(OFFSET));
      await assert.rejects(worker.call('lock'), expected.corrupt(OFFSET));
      await assert.rejects(worker.call('acquire', { timeout: 50 }), expected.corrupt(OFFSET));
      assert.equal(word(), value);
    }),
  );
}

/** Everything that may be asked of a mutex, whatever is in its word: a result or one of our errors, and within its time. */
const askEverything = async (mutex, worker) => {
  const allowed = ['ERR_LOCK_CORRUPT', 'ERR_LOCK_TIMEOUT', 'ERR_LOCK_NOT_OWNER', 'ERR_LOCK_DEADLOCK'];
  const attempts = [
    () => mutex.tryLock() && mutex.unlock(),
    () => mutex.tryAcquire()?.unlock(),
    () => mutex.unlock(),
    () => mutex.leave(undefined),
    () => mutex.markConsistent(),
    () => [mutex.isLocked, mutex.isHeldByThisThread, mutex.abandoned],
    () => mutex.inspect(),
    async () => (await mutex.lockAsync(2)) && mutex.unlock(),
    async () => (await mutex.acquireAsync({ timeout: 2 })).unlock(),
    () => mutex.executeLocked(() => {}, { timeout: 2 }),
    async () => (await worker.call('lock', 2)) && worker.call('unlock'),
    async () => (await worker.call('tryLock')) && worker.call('unlock'),
  ];
  for (const attempt of attempts) {
    try {
      await attempt();
    } catch (error) {
      if (!allowed.includes(error.code)) throw error;
    }
  }
};

for (const [kind, values] of [
  ['a single bit', SINGLE_BITS],
  ['a scattered value', scattered(60)],
  ['flags without an owner', scattered(20).map((value) => value & (0xf << 26))],
  ['flags with an owner that never was', scattered(20).map((value) => (value & (0xf << 26)) | 5)],
]) {
  test(
    `a word that is ${kind} gives errors or timeouts, and free again it is a mutex`,
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      for (const value of values) {
        overwrite(mutex, value);
        await askEverything(mutex, worker);
        overwrite(mutex, 0);
        assert.equal(mutex.tryLock(), true, `after ${hex(value)}`);
        mutex.unlock();
        assert.deepEqual(await worker.run([['lock', 1000], ['unlock']]), [true, undefined], `after ${hex(value)}`);
      }
    }),
  );
}

test(
  'a word that is overwritten under waiters with a timeout lets them end',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    for (const value of [1, -1, 0x7fffffff, 2 ** 28 + 5, 2 ** 29 + 5]) {
      mutex.tryLock();
      const waits = [worker.call('lock', 250), mutex.lockAsync(250)];
      let isOver = false;
      const ended = Promise.allSettled(waits).finally(() => {
        isOver = true;
      });
      await threads.until('both wait, or are done already', () => isOver || mutex.inspect().waiters.length === 2);
      overwrite(mutex, value);
      for (const { value: isHeld, reason } of await ended) {
        assert.ok(isHeld === false || reason?.code === 'ERR_LOCK_CORRUPT', `${hex(value)}: ${isHeld ?? reason}`);
      }
      overwrite(mutex, 0);
      assert.equal(mutex.tryLock(), true);
      mutex.unlock();
    }
  }),
);

test('unlock() of a word that was overwritten is an error, not a crash', () => {
  for (const value of [0, 1, -1, 0x7fffffff, 2 ** 26]) {
    const { mutex } = createMutex();
    mutex.tryLock();
    overwrite(mutex, value);
    assert.throws(
      () => mutex.unlock(),
      (error) => ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_CORRUPT'].includes(error.code),
      hex(value),
    );
  }
});

test('a guard whose word was overwritten frees nothing', () => {
  for (const [value, code] of [
    [0, 'ERR_LOCK_NOT_OWNER'],
    [1, 'ERR_LOCK_CORRUPT'],
    [-1, 'ERR_LOCK_CORRUPT'],
  ]) {
    const { mutex, word } = createMutex();
    const guard = mutex.tryAcquire();
    overwrite(mutex, value);
    assert.throws(() => guard.unlock(), { code });
    assert.equal(word(), value);
  }
});

test('a corrupt word does not disturb its neighbour', async () => {
  const { buffer, mutex } = createMutex();
  const neighbour = new Mutex(buffer, OFFSET + 4);
  overwrite(mutex, -1);
  neighbour.tryLock();
  const pending = neighbour.lockAsync();
  await assert.rejects(mutex.lockAsync(5), expected.corrupt(OFFSET));
  neighbour.unlock();
  assert.equal(await pending, true);
  neighbour.unlock();
});
