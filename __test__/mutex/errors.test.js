const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Condition, DeadlockError, Mutex, TimeoutError } = require('../..');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET, overwrite } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const thrownBy = (call) => {
  try {
    call();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
};

const rejectionOf = (promise) =>
  promise.then(
    () => assert.fail('nothing was rejected'),
    (error) => error,
  );

test('a message names the lock by its name, if it has one, and by its byte offset, 0 too', () => {
  const buffer = new SharedArrayBuffer(8);
  for (const [byteOffset, options, place] of [
    [0, undefined, 'the mutex at byte offset 0'],
    [0, { name: 'tables' }, "the mutex 'tables' at byte offset 0"],
    [4, { name: '' }, "the mutex '' at byte offset 4"],
  ]) {
    const { message } = thrownBy(() => new Mutex(buffer, byteOffset, options).unlock());
    assert.ok(message.startsWith(`Cannot unlock ${place}: `), message);
  }
});

test('the DeadlockError of a thread alone says that it holds the mutex itself', () => {
  const { mutex } = createMutex({ allowMainThread: true });
  mutex.tryLock();
  const { message } = thrownBy(() => mutex.lock());
  assert.match(message, /^Deadlock: thread \d+ would wait for ever for the mutex .*, which it holds itself/);
  mutex.unlock();
});

test('unlock() of a free mutex throws ERR_LOCK_NOT_OWNER and changes nothing', () => {
  const { mutex, word } = createMutex();
  assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
  assert.equal(word(), 0);
  assert.equal(mutex.tryLock(), true);
  mutex.unlock();
  assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
  assert.equal(word(), 0);
});

test(
  "unlock() of another thread's mutex throws ERR_LOCK_NOT_OWNER and changes nothing",
  watched(async (_, threads) => {
    const { buffer, mutex, word } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const held = word();
    await assert.rejects(worker.call('unlock'), expected.notOwner(OFFSET));
    assert.equal(word(), held);
    assert.equal(mutex.isHeldByThisThread, true);
    mutex.unlock();
    await worker.call('lock');
    assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
    assert.equal(await worker.call('get', 'isHeldByThisThread'), true);
  }),
);

test(
  'unlock() of a mutex with waiters by a thread that does not hold it leaves the queue alone',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [holder, stranger] = await threads.puppets(2, buffer);
    await holder.call('lock');
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 1);
    await assert.rejects(stranger.call('unlock'), expected.notOwner(OFFSET));
    assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
    assert.equal(mutex.inspect().waiters.length, 1);
    await holder.call('unlock');
    assert.equal(await pending, true);
    mutex.unlock();
  }),
);

test(
  'ERR_LOCK_NOT_OWNER asks for a forgotten await where this thread waits for that lock, and only there',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex({ allowMainThread: true });
    const same = new Mutex(buffer, OFFSET);
    const condition = new Condition(buffer, OFFSET + 8);
    const [worker] = await threads.puppets(1, buffer);
    await worker.run([['lock'], [OFFSET + 4, 'lock']]);
    const elsewhere = new Mutex(buffer, OFFSET + 4).lockAsync();
    // At the same place of other memory.
    const other = new Mutex(new SharedArrayBuffer(buffer.byteLength), OFFSET);
    other.tryLock();
    const beside = other.lockAsync();
    const calls = [
      () => mutex.unlock(),
      () => same.unlock(),
      () => mutex.markConsistent(),
      () => condition.wait(mutex),
    ];
    for (const call of calls) assert.doesNotMatch(thrownBy(call).message, /await/);
    const pending = mutex.lockAsync();
    for (const call of calls) {
      const error = thrownBy(call);
      assert.equal(error.code, 'ERR_LOCK_NOT_OWNER');
      assert.match(error.message, /did you forget `await`\?/);
    }
    await worker.run([['unlock'], [OFFSET + 4, 'unlock']]);
    other.unlock();
    assert.deepEqual(await Promise.all([pending, elsewhere, beside]), [true, true, true]);
    mutex.unlock();
    for (const call of calls) assert.doesNotMatch(thrownBy(call).message, /await/);
  }),
);

test('ERR_LOCK_NOT_OWNER asks for a forgotten await behind very many waits for other locks too', async () => {
  const [busy, mutex] = [new Mutex(new SharedArrayBuffer(4)), new Mutex(new SharedArrayBuffer(4))];
  busy.tryLock();
  const guard = mutex.tryAcquire();
  const controller = new AbortController();
  // Enough for three chunks of the table of waits.
  const others = Array.from({ length: 600 }, () => busy.lockAsync({ signal: controller.signal }));
  assert.doesNotMatch(thrownBy(() => mutex.unlock()).message, /await/);
  const pending = mutex.lockAsync();
  assert.match(thrownBy(() => mutex.unlock()).message, /did you forget `await`\?/);
  controller.abort();
  await Promise.allSettled(others);
  assert.match(thrownBy(() => mutex.unlock()).message, /did you forget `await`\?/);
  guard.unlock();
  assert.equal(await pending, true);
  mutex.unlock();
});

const blockingVerbs = {
  'lock()': (mutex) => mutex.lock(),
  'lock(0)': (mutex) => mutex.lock(0),
  'lock({ timeout: 10 })': (mutex) => mutex.lock({ timeout: 10 }),
  'acquire()': (mutex) => mutex.acquire(),
  'acquire({ timeout: 0 })': (mutex) => mutex.acquire({ timeout: 0 }),
  'executeLockedSync()': (mutex) => mutex.executeLockedSync(() => assert.fail('ran')),
  'executeLockedSync() with a timeout': (mutex) => mutex.executeLockedSync(() => assert.fail('ran'), { timeout: 0 }),
};

for (const [verb, call] of Object.entries(blockingVerbs)) {
  test(
    `${verb} on the main thread throws ERR_LOCK_MAIN_THREAD, contended or not`,
    watched(async (_, threads) => {
      const { buffer, mutex, word } = createMutex();
      assert.throws(() => call(mutex), expected.mainThread(OFFSET));
      assert.throws(() => call(mutex), TypeError);
      assert.equal(word(), 0);

      const [worker] = await threads.puppets(1, buffer);
      await worker.call('lock');
      const held = word();
      assert.throws(() => call(mutex), expected.mainThread(OFFSET));
      assert.equal(word(), held);
    }),
  );
}

test(
  'allowMainThread lets the main thread block until a worker unlocks',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex({ allowMainThread: true });
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('lock');
    worker.run([['waitForFlag', 0], ['unlock']]);
    threads.raise(0);
    assert.equal(mutex.lock(20_000), true);
    mutex.unlock();
  }),
);

test('allowMainThread: false is as good as leaving it out', () => {
  const { mutex } = createMutex({ allowMainThread: false });
  assert.throws(() => mutex.lock(), expected.mainThread(OFFSET));
});

test('allowMainThread of one Mutex does not let another on the same word block', () => {
  const { buffer, mutex } = createMutex({ allowMainThread: true });
  assert.equal(mutex.lock(0), true);
  mutex.unlock();
  assert.throws(() => new Mutex(buffer, OFFSET).lock(0), expected.mainThread(OFFSET));
});

test(
  'a worker may block without being allowed to',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    assert.deepEqual(await worker.run([['lock'], ['unlock'], ['acquire'], ['unlockGuard']]), [
      true,
      undefined,
      'a guard',
      true,
    ]);
  }),
);

test(
  'waits that end in an error or in false leave the word as they found it',
  watched(async (_, threads) => {
    const { buffer, mutex, word } = createMutex({ allowMainThread: true });
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    const held = word();
    assert.throws(() => mutex.lock(), expected.deadlock(OFFSET));
    assert.equal(mutex.lock(5), false);
    await assert.rejects(mutex.acquireAsync({ timeout: 5 }), expected.timeout(OFFSET));
    await assert.rejects(mutex.lockAsync({ signal: AbortSignal.timeout(5) }));
    await assert.rejects(worker.call('acquire', { timeout: 5 }), expected.timeout(OFFSET));
    assert.equal(mutex.tryLock(), false);
    assert.equal(word(), held);
    mutex.unlock();
    assert.equal(word(), 0);
  }),
);

test('each error is of its class, which is an Error', async () => {
  const { buffer, mutex } = createMutex({ allowMainThread: true });
  mutex.tryLock();
  const deadlock = thrownBy(() => mutex.lock());
  const timeout = await rejectionOf(mutex.acquireAsync({ timeout: 0 }));
  mutex.unlock();
  const notOwner = thrownBy(() => mutex.unlock());
  overwrite(mutex, 1);
  const corrupt = await rejectionOf(mutex.lockAsync(10));
  assert.ok(deadlock instanceof DeadlockError && deadlock instanceof Error);
  assert.ok(timeout instanceof TimeoutError && timeout instanceof Error);
  assert.equal(Object.getPrototypeOf(notOwner), Error.prototype);
  assert.equal(Object.getPrototypeOf(corrupt), Error.prototype);
  assert.equal(Object.getPrototypeOf(thrownBy(() => new Mutex(buffer, 2))), RangeError.prototype);
  assert.equal(Object.getPrototypeOf(thrownBy(() => new Mutex(null))), TypeError.prototype);
});

test('each error says what failed, where, and what to do', async () => {
  const { buffer, mutex } = createMutex();
  const allowed = new Mutex(buffer, OFFSET, { allowMainThread: true });
  mutex.tryLock();
  const errors = [
    thrownBy(() => new Mutex(null)),
    thrownBy(() => new Mutex(buffer, 2)),
    thrownBy(() => mutex.lock()),
    thrownBy(() => allowed.lock()),
    thrownBy(() => allowed.lock('5')),
    await rejectionOf(mutex.acquireAsync({ timeout: 0 })),
    await rejectionOf(mutex.lockAsync({ signal: {} })),
    await rejectionOf(mutex.executeLocked(null)),
    thrownBy(() => mutex.leave(7)),
  ];
  mutex.unlock();
  errors.push(thrownBy(() => mutex.unlock()));
  overwrite(mutex, 1);
  errors.push(await rejectionOf(mutex.lockAsync(10)));
  for (const { code, message } of errors) {
    assert.match(message, /^\p{Lu}|^\w+\(|^["'`]/u, `${code} begins like a sentence: ${message}`);
    assert.match(message, /[.:;,] \S/, `${code} goes on with advice: ${message}`);
    assert.ok(message.length >= 40, `${code} is not a bare phrase: ${message}`);
    assert.doesNotMatch(message, /undefined|\[object Object\]|NaN/, `${code} is filled in: ${message}`);
  }
  for (const error of errors) {
    assert.ok(inspect(error).includes(`code: '${error.code}'`), `${error.code} is printed with its error`);
  }
});

test('no two errors share an instance', () => {
  const { mutex } = createMutex();
  assert.notEqual(
    thrownBy(() => mutex.unlock()),
    thrownBy(() => mutex.unlock()),
  );
});

test("an error's stack names the caller's file", async () => {
  const { mutex } = createMutex();
  assert.ok(thrownBy(() => mutex.unlock()).stack.includes(__filename));
  mutex.tryLock();
  assert.ok(thrownBy(() => mutex.leave(undefined)).stack.includes(__filename));
});
