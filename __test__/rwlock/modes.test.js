// downgrade() and tryUpgrade(), and what cannot be waited for.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, lockAllAsync } = require('../..');
const expected = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { createRwLock, readersWord, rwPuppets } = require('../helpers/rwlock.js');
const { watched } = require('../helpers/threads.js');

/** Raw holds and holds of guards, in one form. */
const holders = {
  'the thread': {
    write: (rw) => {
      rw.write.tryLock();
      return {
        downgrade: () => rw.downgrade(),
        tryUpgrade: () => rw.tryUpgrade(),
        unlock: (mode) => rw[mode].unlock(),
      };
    },
    read: (rw) => {
      rw.read.tryLock();
      return {
        downgrade: () => rw.downgrade(),
        tryUpgrade: () => rw.tryUpgrade(),
        unlock: (mode) => rw[mode].unlock(),
      };
    },
  },
  'a guard': {
    write: (rw) => rw.write.tryAcquire(),
    read: (rw) => rw.read.tryAcquire(),
  },
};

for (const [who, take] of Object.entries(holders)) {
  test(`${who}: downgrade() and tryUpgrade() turn one hold into the other and back`, () => {
    const { rw, word } = createRwLock();
    const hold = take.write(rw);
    for (let round = 0; round < 3; round++) {
      assert.equal(hold.downgrade(), undefined);
      assert.equal(word(), readersWord(1));
      assert.deepEqual(rw.inspect().holders, [{ threadId: 0, mode: 'shared', count: 1 }]);
      assert.equal(hold.tryUpgrade(), true);
      assert.equal(rw.isWriteLocked, true);
      assert.deepEqual(rw.inspect().holders, [{ threadId: 0, mode: 'exclusive', count: 1 }]);
    }
    hold.unlock('write');
    assert.equal(word(), 0);
    assert.equal(rw.read.isHeldByThisThread, false);
  });

  test(`${who}: in the wrong mode both are ERR_LOCK_NOT_OWNER, and nothing changes`, () => {
    const { rw, word } = createRwLock();
    for (const [mode, wrong] of [
      ['write', 'tryUpgrade'],
      ['read', 'downgrade'],
    ]) {
      const hold = take[mode](rw);
      const before = word();
      assert.throws(() => hold[wrong](), expected.notOwner(OFFSET));
      assert.equal(word(), before);
      hold.unlock(mode);
      for (const verb of ['tryUpgrade', 'downgrade']) assert.throws(() => hold[verb](), expected.notOwner(OFFSET));
      assert.equal(word(), 0);
    }
  });

  test(
    `${who}: downgrade() lets the readers at the head of the queue in, and not the writer behind them`,
    watched(async (_, threads) => {
      const { buffer, rw } = createRwLock();
      const [first, second, writer] = await rwPuppets(threads, 3, buffer);
      const hold = take.write(rw);
      const reads = [first.call('read.lock'), second.call('read.acquireAsync')];
      await threads.queued(rw, 2);
      const written = writer.call('write.lock');
      await threads.queued(rw, 3);
      hold.downgrade();
      await Promise.all(reads);
      assert.equal(rw.readers, 3);
      assert.deepEqual(
        rw.inspect().waiters.map(({ threadId }) => threadId),
        [writer.threadId],
      );
      assert.equal(hold.tryUpgrade(), false, 'others read, and a writer waits');
      hold.unlock('read');
      await first.call('read.unlock');
      await second.call('ofGuard', 'unlock');
      assert.equal(await written, true);
      assert.equal(rw.isWriteLocked, true);
    }),
  );

  test(
    `${who}: downgrade() lets a reader of the same event loop in`,
    watched(async () => {
      const { rw } = createRwLock();
      const hold = take.write(rw);
      const read = rw.read.acquireAsync();
      hold.downgrade();
      assert.equal((await read).unlock(), true);
      hold.unlock('read');
    }),
  );

  test(`${who}: tryUpgrade() is false beside another reader of the same thread`, () => {
    const { rw } = createRwLock();
    const hold = take.read(rw);
    const other = rw.read.tryAcquire();
    assert.equal(hold.tryUpgrade(), false);
    assert.equal(rw.readers, 2);
    other.unlock();
    assert.equal(hold.tryUpgrade(), true);
    assert.equal(rw.write.isHeldByThisThread, true);
  });
}

test('a hold of the thread is not changed by a guard, nor that of a guard by the thread', () => {
  const { rw, word } = createRwLock();
  const writer = rw.write.tryAcquire();
  assert.throws(() => rw.downgrade(), expected.notOwner(OFFSET));
  writer.downgrade();
  assert.throws(() => rw.tryUpgrade(), expected.notOwner(OFFSET));
  assert.throws(() => rw.read.unlock(), expected.notOwner(OFFSET));
  assert.equal(word(), readersWord(1));
  assert.equal(writer.lock, rw.read);
  assert.equal(writer.mode, 'shared');
  writer.unlock();
  assert.equal(word(), 0);
});

const blocking = {
  'write inside read': ['read', 'write'],
  'write inside write': ['write', 'write'],
  'read inside write': ['write', 'read'],
};

for (const [name, [outer, inner]] of Object.entries(blocking)) {
  test(`${name}: a blocking wait without a timeout is a DeadlockError, and the hold goes on`, () => {
    for (const take of [(lock) => lock.tryLock(), (lock) => lock.tryAcquire()]) {
      const { rw, word } = createRwLock({ allowMainThread: true });
      take(rw[outer]);
      const before = word();
      assert.throws(() => rw[inner].lock(), expected.deadlock(OFFSET));
      assert.throws(() => rw[inner].acquire(), expected.deadlock(OFFSET));
      assert.throws(() => rw[inner].executeLockedSync(() => assert.fail('ran')), expected.deadlock(OFFSET));
      assert.equal(rw[inner].lock(5), false, 'with a timeout it just takes that');
      assert.equal(word(), before);
      assert.deepEqual(rw.inspect().waiters, []);
    }
  });
}

test('read inside read with nobody waiting is granted', () => {
  const { rw } = createRwLock({ allowMainThread: true });
  rw.read.lock();
  assert.equal(rw.read.lock(), true);
  assert.equal(rw.readers, 2);
});

test(
  'read inside read while a writer of another thread waits in between is a DeadlockError',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader, writer] = await rwPuppets(threads, 2, buffer);
    await reader.call('read.lock');
    const { error, waiting } = await threads.closeCircle(
      rw,
      () => writer.call('write.lock'),
      () => reader.call('read.lock'),
      () => reader.call('read.unlock'),
    );
    await assert.rejects(Promise.reject(error), expected.deadlock(OFFSET));
    assert.equal(rw.readers, 1);
    await reader.call('read.unlock');
    assert.equal(await waiting, true);
  }),
);

test('a pending write.lockAsync() without timeout and signal counts as the writer in between', async () => {
  const { rw } = createRwLock({ allowMainThread: true });
  rw.read.tryLock();
  const written = rw.write.lockAsync();
  assert.throws(() => rw.read.lock(), expected.deadlock(OFFSET));
  rw.read.unlock();
  assert.equal(await written, true);
});

for (const [name, pend] of [
  ['write.lockAsync({ signal })', (rw, signal) => rw.write.lockAsync({ signal })],
  ['write.acquireAsync({ signal })', (rw, signal) => rw.write.acquireAsync({ signal })],
  ['lockAllAsync() with a signal', (rw, signal) => lockAllAsync([rw.write], { signal })],
]) {
  test(
    `a pending ${name} in between is waited for: it may be aborted`,
    watched(async (_, threads) => {
      const { buffer, rw } = createRwLock();
      const [reader] = await rwPuppets(threads, 1, buffer);
      await reader.call('read.lock');
      const controller = new AbortController();
      const written = pend(rw, controller.signal);
      const read = reader.call('read.lock');
      await threads.queued(rw, 2);
      controller.abort();
      await assert.rejects(written, { name: 'AbortError' });
      assert.equal(await read, true);
      assert.equal(rw.readers, 2);
    }),
  );
}

test(
  'a writer with a timeout in between is waited for: the reader gets in when that is over',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader] = await rwPuppets(threads, 1, buffer);
    await reader.call('read.lock');
    const begun = performance.now();
    const written = rw.write.lockAsync(300);
    await threads.queued(rw, 1);
    assert.equal(await reader.call('read.lock'), true);
    // The clock lets it in, be it before this loop learns that its wait is over. Clocks differ by what they round.
    const waited = performance.now() - begun;
    assert.ok(waited > 295, `after ${waited} ms`);
    assert.equal(await written, false);
    assert.equal(rw.readers, 2);
  }),
);

test(
  'a cycle through two locks and several readers is found, and one of it gets the DeadlockError',
  watched(async (_, threads) => {
    const { buffer } = createRwLock();
    const [A, B] = [0, 8];
    const [one, two, both] = await rwPuppets(threads, 3, buffer);
    // Two read A, one writes B; then the readers of A want B, and the writer of B wants to write A.
    await one.call(A, 'read.lock');
    await two.call(A, 'read.lock');
    await both.call(B, 'write.lock');
    // The one that gives up frees what it holds, so that the others go on.
    const climb = (worker, [held, heldMode], [wanted, mode]) =>
      worker
        .run([
          [wanted, `${mode}.lock`],
          [wanted, `${mode}.unlock`],
        ])
        .finally(() => worker.call(held, `${heldMode}.unlock`));
    const results = await Promise.allSettled([
      climb(one, [A, 'read'], [B, 'read']),
      climb(two, [A, 'read'], [B, 'read']),
      climb(both, [B, 'write'], [A, 'write']),
    ]);
    const errors = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.code);
    assert.ok(errors.length >= 1, 'somebody gave up');
    assert.ok(
      errors.every((code) => code === 'ERR_LOCK_DEADLOCK'),
      String(errors),
    );
  }),
);

const notEmpty = (buffer) => new Condition(buffer, 1600);

test('a Condition waits with write, and holds it again afterwards, in the same way', async () => {
  const { buffer, rw } = createRwLock({ allowMainThread: true });
  const condition = notEmpty(buffer);
  rw.write.lock();
  assert.equal(condition.wait(rw.write, 5), false);
  assert.equal(rw.write.isHeldByThisThread, true);
  rw.write.unlock();
  const guard = rw.write.acquire();
  assert.equal(condition.wait(rw.write, 5), false);
  const notified = condition.waitAsync(rw.write);
  assert.equal(guard.locked, true);
  assert.throws(() => guard.unlock(), expected.notOwner(OFFSET));
  assert.throws(() => guard.downgrade(), expected.notOwner(OFFSET));
  const other = rw.write.tryAcquire();
  other.downgrade();
  assert.equal(condition.notifyAll(), 1);
  assert.equal(other.unlock(), true);
  assert.equal(await notified, true);
  assert.equal(rw.isWriteLocked, true);
  guard.downgrade();
  assert.equal(guard.mode, 'shared');
  assert.equal(guard.unlock(), true);
  assert.equal(rw.readers, 0);
});

test('a write guard that came back and was downgraded is not taken for the next one that goes away', async () => {
  const { buffer, rw } = createRwLock({ allowMainThread: true });
  const condition = notEmpty(buffer);
  const [first, firstBack] = [await rw.write.acquireAsync(), condition.waitAsync(rw.write)];
  const [staying, stayingBack] = [await rw.write.acquireAsync(), condition.waitAsync(rw.write)];
  condition.notifyOne();
  await firstBack;
  first.downgrade();
  first.unlock();
  const [going, goingBack] = [await rw.write.acquireAsync(), condition.waitAsync(rw.write)];
  const between = await rw.write.acquireAsync();
  assert.throws(() => going.unlock(), expected.notOwner(OFFSET));
  assert.equal(between.unlock(), true);
  condition.notifyAll();
  await stayingBack;
  staying.unlock();
  await goingBack;
  going.unlock();
  assert.deepEqual([rw.isWriteLocked, rw.readers], [false, 0]);
});

test('a write guard that came back, was downgraded, upgraded and goes away again frees no hold but its own', async () => {
  const { buffer, rw } = createRwLock({ allowMainThread: true });
  const condition = notEmpty(buffer);
  const [guard, back] = [await rw.write.acquireAsync(), condition.waitAsync(rw.write)];
  const [staying, stayingBack] = [await rw.write.acquireAsync(), condition.waitAsync(rw.write)];
  condition.notifyOne();
  await back;
  guard.downgrade();
  assert.equal(guard.tryUpgrade(), true);
  const backAgain = condition.waitAsync(rw.write);
  const between = rw.write.tryAcquire();
  assert.throws(() => guard.unlock(), expected.notOwner(OFFSET));
  assert.equal(between.unlock(), true);
  condition.notifyAll();
  await stayingBack;
  assert.equal(staying.unlock(), true);
  await backAgain;
  assert.equal(guard.unlock(), true);
  assert.deepEqual([rw.isWriteLocked, rw.readers], [false, 0]);
});

test('a guard that was unlocked changes no mode, nor the hold of another', () => {
  const { rw, word } = createRwLock();
  for (const [mode, verb] of [
    ['read', 'tryUpgrade'],
    ['write', 'downgrade'],
  ]) {
    const spent = rw[mode].tryAcquire();
    spent.unlock();
    const other = rw[mode].tryAcquire();
    const before = word();
    assert.throws(() => spent[verb](), expected.notOwner(OFFSET), verb);
    assert.deepEqual([word(), other.locked, spent.unlock()], [before, true, false], verb);
    assert.equal(other.unlock(), true);
    assert.equal(word(), 0);
  }
});

test('tryUpgrade() repairs nothing that nobody left', () => {
  const { rw } = createRwLock({ onAbandoned: () => assert.fail('ran') });
  for (const { read } of Object.values(holders)) {
    const hold = read(rw);
    assert.equal(hold.tryUpgrade(), true);
    hold.unlock('write');
  }
});

test('a Condition takes no read, and no write that this thread does not hold', async () => {
  const { buffer, rw, word } = createRwLock({ allowMainThread: true });
  const condition = notEmpty(buffer);
  rw.read.lock();
  assert.throws(() => condition.wait(rw.read), expected.invalidArgType());
  await assert.rejects(condition.waitAsync(rw.read), expected.invalidArgType());
  assert.throws(() => condition.wait(rw), expected.invalidArgType());
  assert.throws(() => condition.wait(rw.write), expected.notOwner(OFFSET));
  await assert.rejects(condition.waitAsync(rw.write), expected.notOwner(OFFSET));
  assert.equal(word(), readersWord(1));
});

test('a wait for a condition that write.executeLocked() left behind does not lock again', async () => {
  const { buffer, rw, word } = createRwLock();
  const condition = notEmpty(buffer);
  let left;
  await rw.write.executeLocked(() => {
    left = condition.waitAsync(rw.write);
  });
  assert.equal(word(), 0);
  condition.notifyAll();
  await assert.rejects(left, expected.notOwner(OFFSET));
  assert.equal(word(), 0);
});

test(
  'a blocked waiter of a condition with write is notified by another thread',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [waiter] = await rwPuppets(threads, 1, buffer);
    const waited = waiter.run([['write.lock'], ['waitFor', 1600], ['write.unlock']]);
    const condition = notEmpty(buffer);
    await threads.until('it waits', () => condition.notifyAll() === 1);
    assert.deepEqual((await waited).slice(0, 2), [true, true]);
    assert.equal(rw.isWriteLocked, false);
  }),
);

for (const [waiter, wait] of [
  ['a writer', (rw) => rw.write.lockAsync()],
  ['a reader', (rw) => rw.read.lockAsync()],
]) {
  test(`read.tryLock() and read.tryAcquire() fail while ${waiter} that was offered the lock is on its way`, async () => {
    const { rw } = createRwLock();
    rw.write.tryLock();
    const waits = wait(rw);
    rw.write.unlock();
    assert.deepEqual([rw.isWriteLocked, rw.readers, rw.inspect().waiters.length], [false, 0, 1]);
    assert.equal(rw.read.tryLock(), false);
    assert.equal(rw.read.tryAcquire(), null);
    assert.equal(await waits, true);
    if (rw.isWriteLocked) rw.write.unlock();
    else rw.read.unlock();
    assert.equal(rw.read.tryLock(), true);
    rw.read.unlock();
  });
}
