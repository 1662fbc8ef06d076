const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Once, RwLock } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const expected = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { listen, warningsOf } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { createRwLock, readersWord, rwPuppets } = require('../helpers/rwlock.js');
const { watched } = require('../helpers/threads.js');
const { storm } = require('../../tests/torture/storm.js');

const readHolds = {
  'read.lock()': ['read.lock'],
  'read.lockAsync()': ['read.lockAsync'],
  'a guard': ['read.acquire'],
  'executeLocked()': ['stayInside', 'read'],
};

for (const { name, end, options, needs: needed } of endings) {
  test(
    `a reader that ends by ${name} gives its holds back, unmarked, and the writer that waits gets in`,
    needs(...needed),
    watched(async (t, threads) => {
      const warnings = warningsOf(t);
      const { buffer, rw } = createRwLock();
      const [reader] = await rwPuppets(threads, 1, buffer, options);
      for (const step of Object.values(readHolds)) await reader.call(...step);
      assert.equal(rw.readers, 4);
      const writer = rw.write.acquireAsync();
      assert.equal(rw.inspect().waiters.length, 1);
      await end(reader);
      const guard = await writer;
      assert.equal(guard.abandoned, false);
      assert.deepEqual(rw.inspect().holders, [{ threadId: 0, mode: 'exclusive', count: 1 }]);
      guard.unlock();
      assert.deepEqual(warnings, []);
    }),
  );

  test(
    `a writer that ends by ${name} leaves the mark until markConsistent(); readers see it`,
    needs(...needed),
    watched(async (t, threads) => {
      const warnings = warningsOf(t);
      const { buffer, rw } = createRwLock();
      const [writer] = await rwPuppets(threads, 1, buffer, options);
      await writer.call('write.acquire');
      const reader = rw.read.acquireAsync();
      await end(writer);
      const guard = await reader;
      assert.equal(guard.abandoned, true);
      assert.equal(rw.abandoned, true);
      const [elsewhere] = await rwPuppets(threads, 1, buffer);
      assert.equal(await elsewhere.call('get', 'abandoned'), false, 'for a thread that does not hold it');
      assert.throws(() => rw.markConsistent(), expected.notOwner(OFFSET), 'not under read');
      await threads.until('the warning has come', () => warnings.length > 0);
      assert.equal(warnings.length, 1);
      assert.equal(warnings[0].code, 'SABLOCK_ABANDONED');
      assert.match(warnings[0].message, /which this thread now reads/);
      const beside = rw.read.tryAcquire();
      assert.equal(beside.abandoned, true);
      beside.unlock();
      assert.equal(guard.tryUpgrade(), true);
      assert.equal(guard.abandoned, true);
      rw.markConsistent();
      assert.equal(guard.abandoned, false);
      guard.unlock();
      assert.equal(rw.abandoned, false);
      const after = rw.read.tryAcquire();
      assert.equal(after.abandoned, false);
    }),
  );
}

test(
  'a thread that has read before and ends while another writes takes nothing from the writer',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [reader] = await rwPuppets(threads, 1, buffer);
    await reader.run([['read.lock'], ['read.unlock']]);
    const guard = rw.write.tryAcquire();
    await reader.terminate();
    assert.equal(rw.isWriteLocked, true);
    assert.equal(rw.write.isHeldByThisThread, true);
    assert.equal(guard.unlock(), true);
    assert.equal(rw.write.tryLock(), true);
  }),
);

test(
  'one of several readers that ends gives back its own holds only',
  watched(async (_, threads) => {
    const { buffer, rw, word } = createRwLock();
    const [doomed, other] = await rwPuppets(threads, 2, buffer);
    await doomed.run([['read.lock'], ['read.lock'], ['read.acquire']]);
    await other.run([['read.lock'], ['read.acquire']]);
    rw.read.tryLock();
    assert.equal(rw.readers, 6);
    await doomed.terminate();
    await threads.until('its holds are back', () => rw.readers === 3);
    assert.equal(word(), readersWord(3));
    assert.deepEqual(
      rw
        .inspect()
        .holders.map(({ threadId, count }) => [threadId, count])
        .sort(([one], [two]) => one - two),
      [
        [0, 1],
        [other.threadId, 2],
      ],
    );
  }),
);

for (const [name, step] of Object.entries({
  'blocked in read.lock()': ['read.lock'],
  'blocked in write.lock()': ['write.lock'],
  'with a pending read.lockAsync()': ['pend', 'read', 'lockAsync'],
  'with a pending write.acquireAsync()': ['pend', 'write', 'acquireAsync'],
})) {
  test(
    `a thread that ends ${name} leaves the queue, and those behind it go on`,
    needs(...(name.startsWith('blocked') ? ['termination when busy'] : [])),
    watched(async (_, threads) => {
      const { buffer, rw } = createRwLock();
      const [doomed, behind] = await rwPuppets(threads, 2, buffer);
      const guard = rw.write.tryAcquire();
      doomed.call(...step);
      await threads.queued(rw, 1);
      const read = behind.call('read.lock');
      await threads.queued(rw, 2);
      await doomed.terminate();
      await threads.until('it has left', () => rw.inspect().waiters.length === 1);
      guard.unlock();
      assert.equal(await read, true);
      assert.deepEqual(rw.inspect().holders, [{ threadId: behind.threadId, mode: 'shared', count: 1 }]);
    }),
  );
}

test(
  'an upgrade repairs what was reported before without another report, of whatever else this thread has learnt since',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const buffer = new SharedArrayBuffer(64);
    const told = listen(t, 'sablock:abandoned');
    let repairs = 0;
    const onAbandoned = () => {
      repairs += 1;
    };
    const rw = new RwLock(buffer, 0, { onAbandoned });
    const once = new Once(buffer, 16);
    const [writer, runner] = await startActors(threads, 2, buffer);
    await writer.do((here) => new here.sablock.RwLock(here.buffer).write.lock());
    await runner.do((here) => {
      new here.sablock.Once(here.buffer, 16).run(() => new Promise(() => {}));
    });
    for (const actor of [writer, runner]) await actor.terminate();
    const guard = rw.read.tryAcquire();
    await once.run(() => {});
    const ids = [writer.threadId, runner.threadId];
    assert.deepEqual([told.map(({ ownerThreadId }) => ownerThreadId), repairs], [ids, 0]);
    assert.equal(guard.tryUpgrade(), true);
    assert.deepEqual([told.length, repairs], [2, 1]);
    guard.unlock();
  }),
);

test(
  'onAbandoned repairs before write gets in, by every verb, and takes the place of the warning',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = warningsOf(t);
    const { buffer, rw } = createRwLock({ allowMainThread: true });
    const calls = [];
    const repairing = new RwLock(buffer, OFFSET, {
      allowMainThread: true,
      onAbandoned: (lock) => calls.push([lock === repairing, lock.abandoned, lock.write.isHeldByThisThread]),
    });
    const ways = {
      tryLock: () => repairing.write.tryLock() && repairing.write.unlock(),
      lock: () => repairing.write.lock() && repairing.write.unlock(),
      acquire: () => repairing.write.acquire().unlock(),
      lockAsync: async () => (await repairing.write.lockAsync()) && repairing.write.unlock(),
      executeLocked: () => repairing.write.executeLocked(() => assert.equal(repairing.abandoned, false)),
      executeLockedSync: () => repairing.write.executeLockedSync(() => assert.equal(repairing.abandoned, false)),
      'tryUpgrade of a guard': () => {
        const guard = repairing.read.tryAcquire();
        assert.equal(guard.abandoned, true, 'who reads does not repair');
        assert.equal(guard.tryUpgrade(), true);
        guard.unlock();
      },
      tryUpgrade: () => {
        repairing.read.tryLock();
        assert.equal(repairing.tryUpgrade(), true);
        repairing.write.unlock();
      },
    };
    for (const [name, take] of Object.entries(ways)) {
      const [writer] = await rwPuppets(threads, 1, buffer);
      await writer.call('write.lock');
      await writer.terminate();
      await take();
      assert.deepEqual(calls.splice(0), [[true, true, true]], name);
      assert.equal(rw.write.tryLock(), true);
      assert.equal(rw.abandoned, false, name);
      rw.write.unlock();
    }
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(warnings, []);
  }),
);

test(
  'without onAbandoned tryUpgrade() keeps the mark, which every holder sees in either mode, and nobody else',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t);
    const { buffer, rw } = createRwLock({ allowMainThread: true });
    const [writer, other] = await rwPuppets(threads, 2, buffer);
    await writer.call('write.lock');
    await writer.terminate();
    assert.equal(rw.abandoned, false, 'nobody has come for it');
    for (const take of [() => rw.read.tryLock(), () => rw.read.tryAcquire()]) {
      const held = take();
      const hold = held === true ? rw : held;
      assert.equal(rw.abandoned, true);
      assert.equal(hold.tryUpgrade(), true);
      assert.deepEqual([rw.abandoned, rw.write.isHeldByThisThread], [true, true]);
      hold.downgrade();
      assert.equal(rw.abandoned, true);
      if (held === true) rw.read.unlock();
      else held.unlock();
      assert.equal(rw.abandoned, false);
    }
    await other.call('write.lock');
    assert.equal(rw.abandoned, false);
    await other.call('write.unlock');
    rw.write.lock();
    rw.markConsistent();
    assert.equal(rw.abandoned, false);
    rw.write.unlock();
  }),
);

test(
  'when onAbandoned throws, the hold is not kept, or is shared again after an upgrade; the mark stays',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t);
    const { buffer, rw, word } = createRwLock({ allowMainThread: true });
    const error = new Error('cannot repair');
    const repairing = new RwLock(buffer, OFFSET, {
      onAbandoned() {
        throw error;
      },
    });
    const [writer] = await rwPuppets(threads, 1, buffer);
    await writer.call('write.lock');
    await writer.terminate();
    assert.throws(() => repairing.write.tryLock(), error);
    await assert.rejects(repairing.write.acquireAsync(), error);
    assert.equal(rw.isWriteLocked, false);
    const guard = repairing.read.tryAcquire();
    assert.throws(() => guard.tryUpgrade(), error);
    assert.equal(guard.mode, 'shared');
    assert.equal(rw.readers, 1);
    assert.equal(guard.abandoned, true);
    guard.unlock();
    repairing.read.tryLock();
    assert.throws(() => repairing.tryUpgrade(), error);
    assert.equal(rw.readers, 1);
    repairing.read.unlock();
    rw.write.lock();
    assert.equal(rw.abandoned, true);
    rw.markConsistent();
    rw.write.unlock();
    assert.equal(word(), 0);
  }),
);

test(
  'workers that are terminated at random while they read and write lose no hold, and give none back twice',
  needs('prompt ends', 'termination when busy'),
  watched(async (t) => {
    warningsOf(t);
    const { turns, workers } = await storm({ workers: 30, seed: Date.now() % 2 ** 32, kinds: ['rwlock'] });
    // A quarter of them may be ended before their first turn.
    assert.ok(turns > workers / 4, `${turns} turns of ${workers} workers`);
  }, 400_000),
);
