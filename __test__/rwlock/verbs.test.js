const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { LockGuard, Mutex, RwLock, RwLockGuard, stats } = require('../..');
const expected = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { createRwLock, readersWord, rwPuppets } = require('../helpers/rwlock.js');
const { DEPTHS } = require('../helpers/stack.js');
const { watched } = require('../helpers/threads.js');
const { wayNamed, ways } = require('../helpers/ways.js');

const MODES = ['read', 'write'];
// enter() is the mutex's alone.
const WAYS = ways.filter(({ name }) => name !== 'enter and leave');

test('an RwLock takes eight aligned bytes, and zeroed memory is an unlocked one', () => {
  assert.equal(RwLock.BYTES, 8);
  assert.equal(RwLock.ALIGN, 4);
  assert.ok(RwLock.MAX_READERS >= 2 ** 24);
  const { buffer, rw, words } = createRwLock({ name: 'cache' });
  assert.equal(rw.buffer, buffer);
  assert.equal(rw.byteOffset, OFFSET);
  assert.equal(rw.name, 'cache');
  assert.equal(rw.isWriteLocked, false);
  assert.equal(rw.readers, 0);
  assert.equal(rw.abandoned, false);
  assert.deepEqual(rw.inspect(), { name: 'cache', holders: [], waiters: [] });
  assert.deepEqual([...words], [0, 0]);
});

test('read and write are always the same two objects', () => {
  const { rw } = createRwLock();
  assert.equal(rw.read, rw.read);
  assert.equal(rw.write, rw.write);
  assert.notEqual(rw.read, rw.write);
});

for (const mode of MODES) {
  for (const { name, hold } of WAYS) {
    test(`${mode}: ${name} holds while the body runs, and not afterwards`, async () => {
      const { rw, word } = createRwLock({ allowMainThread: true });
      let seen;
      await hold(rw[mode], () => {
        seen = [rw.readers, rw.isWriteLocked, rw.read.isHeldByThisThread, rw.write.isHeldByThisThread];
      });
      assert.deepEqual(seen, mode === 'read' ? [1, false, true, false] : [0, true, false, true]);
      assert.equal(word(), 0);
      assert.equal(rw[mode].isHeldByThisThread, false);
    });
  }

  for (const verb of ['executeLocked', 'executeLockedSync']) {
    test(`${mode}.${verb}() returns what the function returns, and unlocks when it throws`, async () => {
      const { rw, word } = createRwLock({ allowMainThread: true });
      assert.equal(await rw[mode][verb](() => 'result'), 'result');
      const error = new Error('on purpose');
      const run = async () =>
        rw[mode][verb](() => {
          throw error;
        });
      await assert.rejects(run, error);
      assert.equal(word(), 0);
    });
  }

  test(`${mode}.executeLocked() holds until the promise of the function is settled`, async () => {
    const { rw, word } = createRwLock();
    let finish;
    const done = rw[mode].executeLocked(() => new Promise((resolve) => (finish = resolve)));
    await nextTurn();
    assert.equal(rw[mode].isHeldByThisThread, true);
    finish('late');
    assert.equal(await done, 'late');
    assert.equal(word(), 0);
  });

  test(`${mode}.executeLockedSync() refuses a promise, and has unlocked`, () => {
    const { rw, word } = createRwLock({ allowMainThread: true });
    assert.throws(() => rw[mode].executeLockedSync(async () => {}), expected.invalidArgType(OFFSET));
    assert.equal(word(), 0);
  });

  test(`${mode}.executeLockedSync() unlocks though its function used up the stack`, needs('stack ends'), () => {
    const { rw, word } = createRwLock({ allowMainThread: true });
    const overflow = () => overflow();
    const errors = [];
    let frames = 0;
    const dive = () => {
      try {
        dive();
      } catch {}
      // At each of the last depths of the stack, down to where nothing can be called any more.
      if (frames++ >= DEPTHS) return;
      try {
        rw[mode].executeLockedSync(overflow);
      } catch (error) {
        errors[errors.length] = error;
      }
    };
    dive();
    assert.equal(errors.length, DEPTHS);
    for (const error of errors) assert.ok(error instanceof RangeError, error);
    assert.equal(word(), 0);
    assert.equal(rw[mode].isHeldByThisThread, false);
  });
}

test('many read at the same time, by the thread, by guards and by functions; each hold counts', async () => {
  const { rw, word } = createRwLock({ allowMainThread: true });
  rw.read.lock();
  assert.equal(rw.read.tryLock(), true);
  assert.equal(await rw.read.lockAsync(), true);
  const guards = [rw.read.acquire(), rw.read.tryAcquire(), await rw.read.acquireAsync()];
  await rw.read.executeLocked(() => assert.equal(rw.readers, 7));
  rw.read.executeLockedSync(() => assert.equal(rw.readers, 7));
  assert.equal(rw.readers, 6);
  assert.equal(word(), readersWord(6));
  assert.deepEqual(rw.inspect().holders, [{ threadId: 0, mode: 'shared', count: 6 }]);
  for (const guard of guards) assert.equal(guard.unlock(), true);
  for (let left = 3; left > 0; left--) rw.read.unlock();
  assert.equal(word(), 0);
  assert.throws(() => rw.read.unlock(), expected.notOwner(OFFSET));
});

for (const mode of MODES) {
  test(`${mode}: a hold belongs to whom its verb says, whatever options were given, and whether the thread waits elsewhere`, async () => {
    const busy = new RwLock(new SharedArrayBuffer(RwLock.BYTES));
    busy.write.tryLock();
    for (const isWaiting of [false, true]) {
      const waits = isWaiting ? busy.write.lockAsync() : undefined;
      for (const options of [
        undefined,
        {},
        { timeout: 50 },
        { signal: new AbortController().signal },
        { ref: false },
      ]) {
        const { rw, word } = createRwLock();
        const lock = rw[mode];
        assert.equal(await lock.lockAsync(options), true);
        lock.unlock();
        assert.equal(word(), 0);
        const refused = () =>
          assert.throws(() => lock.unlock(), { code: 'ERR_LOCK_NOT_OWNER', message: /belongs to a guard/ });
        const guard = await lock.acquireAsync(options);
        refused();
        assert.deepEqual([guard.locked, guard.unlock(), word()], [true, true, 0]);
        await lock.executeLocked(refused, options);
        assert.equal(word(), 0);
      }
      if (isWaiting) busy.write.unlock();
      await waits;
    }
  });
}

test(
  'read holds of other threads are none of this one, nor is its own write one, while it waits elsewhere too',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader] = await rwPuppets(threads, 1, buffer);
    await reader.call('read.lock');
    const busy = new RwLock(new SharedArrayBuffer(RwLock.BYTES));
    busy.write.tryLock();
    const waits = busy.write.lockAsync();
    assert.equal(rw.read.isHeldByThisThread, false);
    assert.throws(() => rw.read.unlock(), { code: 'ERR_LOCK_NOT_OWNER', message: /does not hold it to read/ });
    await reader.call('read.unlock');
    const guard = rw.write.tryAcquire();
    assert.deepEqual([rw.read.isHeldByThisThread, rw.write.isHeldByThisThread], [false, true]);
    guard.downgrade();
    assert.deepEqual([rw.read.isHeldByThisThread, rw.write.isHeldByThisThread], [true, false]);
    guard.unlock();
    busy.write.unlock();
    await waits;
  }),
);

test('two RwLocks on the same bytes are one lock', () => {
  const { buffer, rw, word } = createRwLock({ allowMainThread: true });
  const other = new RwLock(buffer, OFFSET);
  rw.read.lock();
  assert.equal(other.read.isHeldByThisThread, true);
  assert.equal(other.write.tryLock(), false);
  other.read.unlock();
  assert.equal(word(), 0);
  other.write.tryLock();
  assert.equal(rw.write.isHeldByThisThread, true);
  rw.write.unlock();
  assert.equal(word(), 0);
});

test('a writer keeps all others out, and readers keep writers out', async () => {
  const { rw } = createRwLock({ allowMainThread: true });
  assert.equal(rw.write.tryLock(), true);
  for (const mode of MODES) {
    assert.equal(rw[mode].tryLock(), false);
    assert.equal(rw[mode].tryAcquire(), null);
    assert.equal(rw[mode].lock(1), false);
    assert.equal(await rw[mode].lockAsync(1), false);
  }
  rw.write.unlock();
  rw.read.lock();
  assert.equal(rw.write.tryLock(), false);
  assert.equal(rw.write.tryAcquire(), null);
  assert.equal(rw.write.lock(1), false);
  assert.equal(await rw.write.lockAsync(1), false);
  assert.equal(rw.read.tryLock(), true);
});

test(
  'a reader that comes while a writer waits queues behind it, and tryLock() is false',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader, writer, late] = await rwPuppets(threads, 3, buffer);
    await reader.call('read.lock');
    const written = writer.call('write.lock');
    await threads.queued(rw, 1);
    assert.equal(rw.read.tryLock(), false);
    assert.equal(rw.read.tryAcquire(), null);
    assert.equal(await late.call('read.lock', 1), false);
    const read = late.call('read.lock');
    await threads.queued(rw, 2);
    const { holders, waiters } = rw.inspect();
    assert.deepEqual(holders, [{ threadId: reader.threadId, mode: 'shared', count: 1 }]);
    assert.deepEqual(
      waiters.map(({ waitedMs, ...waiter }) => [waiter, waitedMs >= 0]),
      [
        [{ threadId: writer.threadId, kind: 'blocking', mode: 'exclusive' }, true],
        [{ threadId: late.threadId, kind: 'blocking', mode: 'shared' }, true],
      ],
    );
    await reader.call('read.unlock');
    assert.equal(await written, true);
    assert.deepEqual(rw.inspect().holders, [{ threadId: writer.threadId, mode: 'exclusive', count: 1 }]);
    await writer.call('write.unlock');
    assert.equal(await read, true);
    assert.deepEqual(rw.inspect().holders, [{ threadId: late.threadId, mode: 'shared', count: 1 }]);
  }),
);

test(
  'readers that wait side by side go in together, blocked ones and promises',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const readers = await rwPuppets(threads, 3, buffer);
    assert.equal(rw.write.tryLock(), true);
    const blocked = readers.slice(0, 2).map((reader) => reader.call('read.lock'));
    const awaited = readers[2].call('read.lockAsync');
    const own = rw.read.lockAsync();
    await threads.queued(rw, 4);
    rw.write.unlock();
    assert.deepEqual(await Promise.all([...blocked, awaited, own]), [true, true, true, true]);
    assert.equal(rw.readers, 4);
    assert.deepEqual(
      rw.inspect().holders.map(({ count }) => count),
      [1, 1, 1, 1],
    );
  }),
);

test(
  'a writer that gives up lets the readers behind it in',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader, late] = await rwPuppets(threads, 2, buffer);
    await reader.call('read.lock');
    const controller = new AbortController();
    const written = rw.write.lockAsync({ signal: controller.signal });
    const read = late.call('read.lock');
    await threads.queued(rw, 2);
    controller.abort(new Error('given up'));
    await assert.rejects(written, { message: 'given up' });
    assert.equal(await read, true);
    assert.equal(rw.readers, 2);
  }),
);

for (const mode of MODES) {
  test(`a pending ${mode}.lockAsync() times out, is aborted by its signal, and then holds nothing`, async () => {
    const { rw, word } = createRwLock();
    rw.write.tryLock();
    assert.equal(await rw[mode].lockAsync(5), false);
    await assert.rejects(rw[mode].acquireAsync(5), expected.timeout(OFFSET));
    await assert.rejects(
      rw[mode].executeLocked(() => assert.fail('ran'), { timeout: 5 }),
      expected.timeout(OFFSET),
    );
    const reason = new Error('aborted');
    const signal = AbortSignal.abort(reason);
    for (const verb of ['lockAsync', 'acquireAsync']) await assert.rejects(rw[mode][verb]({ signal }), reason);
    rw.write.unlock();
    assert.equal(word(), 0);
    assert.equal(rw[mode].isHeldByThisThread, false);
  });

  test(`${mode}: a guard is freed once, belongs to its mode's lock, and has no mutex`, () => {
    const { rw, word } = createRwLock();
    const guard = rw[mode].tryAcquire();
    assert.ok(guard instanceof RwLockGuard && guard instanceof LockGuard);
    assert.equal(guard.mutex, null);
    assert.equal(guard.lock, rw[mode]);
    assert.equal(guard.mode, mode === 'read' ? 'shared' : 'exclusive');
    assert.equal(guard.locked, true);
    assert.equal(guard.abandoned, false);
    assert.throws(() => rw[mode].unlock(), expected.notOwner(OFFSET), 'the hold is the guard’s');
    assert.equal(guard.unlock(), true);
    assert.equal(word(), 0);
    assert.equal(guard.locked, false);
    const next = rw[mode].tryAcquire();
    assert.equal(guard.unlock(), false);
    guard[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
    assert.equal(next.locked, true);
    assert.equal(rw[mode].isHeldByThisThread, true);
    next[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
    assert.equal(word(), 0);
  });

  test(`${mode}.unlock() of what this thread does not hold is an error, and changes nothing`, async () => {
    const { rw, word } = createRwLock();
    assert.throws(() => rw[mode].unlock(), expected.notOwner(OFFSET));
    assert.equal(word(), 0);
    rw[mode === 'read' ? 'write' : 'read'].tryLock();
    const before = word();
    assert.throws(() => rw[mode].unlock(), expected.notOwner(OFFSET));
    assert.equal(word(), before);
  });
}

test(
  'read.unlock() by a thread that does not read takes no hold of another, with waiters or without',
  watched(async (_, threads) => {
    const { buffer, rw, word } = createRwLock();
    const [reader, writer, stranger] = await rwPuppets(threads, 3, buffer);
    await reader.call('read.lock');
    for (const unlock of [() => stranger.call('read.unlock'), async () => rw.read.unlock()]) {
      await assert.rejects(unlock, { code: 'ERR_LOCK_NOT_OWNER' });
    }
    assert.equal(word(), readersWord(1));
    const written = writer.call('write.lock');
    await threads.queued(rw, 1);
    for (const unlock of [() => stranger.call('read.unlock'), async () => rw.read.unlock()]) {
      await assert.rejects(unlock, { code: 'ERR_LOCK_NOT_OWNER' });
    }
    assert.equal(rw.readers, 1);
    await reader.call('read.unlock');
    assert.equal(await written, true);
  }),
);

test('the guard of a mutex has lock, which is its mutex', () => {
  const mutex = new Mutex(new SharedArrayBuffer(4));
  const guard = mutex.tryAcquire();
  assert.equal(guard.lock, mutex);
  assert.equal(guard.lock, guard.mutex);
});

test('the guard of an RwLock is no token of a mutex', () => {
  const { rw } = createRwLock();
  const mutex = new Mutex(new SharedArrayBuffer(4));
  assert.throws(() => mutex.leave(rw.write.tryAcquire()), { code: 'ERR_LOCK_NOT_OWNER' });
});

test('a full lock lets no reader in until one leaves', async () => {
  const { rw, words } = createRwLock({ allowMainThread: true });
  Atomics.store(words, 0, readersWord(RwLock.MAX_READERS));
  assert.equal(rw.read.tryLock(), false);
  assert.equal(rw.read.lock(0), false);
  assert.equal(await rw.read.lockAsync(1), false);
  assert.equal(rw.readers, RwLock.MAX_READERS);
  Atomics.store(words, 0, readersWord(RwLock.MAX_READERS - 1));
  assert.equal(rw.read.tryLock(), true);
  assert.equal(rw.readers, RwLock.MAX_READERS);
  assert.equal(rw.read.tryLock(), false);
  rw.read.unlock();
  assert.equal(rw.readers, RwLock.MAX_READERS - 1);
});

test(
  'stats() counts the waits for it',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [worker] = await rwPuppets(threads, 1, buffer);
    const before = stats();
    rw.write.tryLock();
    const read = worker.call('read.lock');
    await threads.until('it is blocked', () => stats().blocked > before.blocked);
    rw.write.unlock();
    await read;
    assert.equal(stats().contended - before.contended, 1);
    assert.equal(stats().blocked, before.blocked);
  }),
);

test(
  'what a writer wrote is seen by the readers after it',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [worker] = await rwPuppets(threads, 1, buffer);
    const record = new Int32Array(buffer, 0, 2);
    let torn = 0;
    let done;
    // On a busy machine the worker may have ended before this thread reads beside it: the first read comes before it begins.
    do {
      await rw.read.executeLocked(() => {
        torn += record[0] === record[1] ? 0 : 1;
      });
      done ??= worker.call('rewriteUntil', 200);
    } while (record[0] < 200);
    await done;
    assert.equal(torn, 0);
  }),
);

test(
  'every way of reading and of writing, side by side in workers, leaves nothing behind',
  watched(async (_, threads) => {
    const { buffer, rw, word } = createRwLock();
    const workers = await rwPuppets(threads, 3, buffer);
    const loops = [
      workers[0].call('loop', 'read', 0, 0),
      workers[1].call('loop', 'read', 0, 1),
      workers[2].call('loop', 'write', 0, 2),
    ];
    const turns = new Int32Array(buffer, 0, 3);
    for (let round = 0; round < 30; round++) {
      for (const mode of MODES) {
        await wayNamed('lockAsync').hold(rw[mode], () => {});
        await wayNamed('executeLocked').hold(rw[mode], () => {});
      }
    }
    await threads.until('each worker had its turns', () => turns.every((count) => count >= 100));
    threads.raise(0);
    await Promise.all(loops);
    assert.equal(word(), 0);
    assert.deepEqual(rw.inspect(), { name: null, holders: [], waiters: [] });
  }),
);
