// `onAbandoned` repairs what a thread that ended has left, before anybody else sees it.

const assert = require('node:assert/strict');
const diagnostics = require('node:diagnostics_channel');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Condition, Mutex } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET, overwrite } = require('../helpers/memory.js');
const { listen, subscribe } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');
const CONDITION = OFFSET + 4;

/** Buffers with a mutex each, in which one thread ended, for the tests to come. */
const left = [];
const MUTEXES_OF_ONE = 20;

/** A mutex whose holder has ended inside, with `onAbandoned`. */
const createAbandoned = async (threads, onAbandoned) => {
  if (left.length === 0) {
    const buffers = Array.from({ length: MUTEXES_OF_ONE }, () => createMutex().buffer);
    const [holder] = await startActors(threads, 1);
    const holdAll = (here, all, offset) => {
      here.held = all.map((buffer) => new here.sablock.Mutex(buffer, offset));
      for (const mutex of here.held) mutex.lock();
    };
    await holder.do(holdAll, buffers, OFFSET);
    await terminate.end(holder);
    left.push(...buffers);
  }
  return new Mutex(left.pop(), OFFSET, { allowMainThread: true, onAbandoned });
};

/** Collects of each wait that is published as acquired whether this thread holds the lock meanwhile. */
const listenToHolds = (t) => {
  const holds = [];
  const note = ({ lock, outcome }) => {
    if (outcome === 'acquired') holds.push(lock.isHeldByThisThread);
  };
  subscribe('sablock:contended', note);
  t.after(() => diagnostics.unsubscribe('sablock:contended', note));
  return holds;
};

/** Each way to acquire: `run` calls `inside` once the mutex is held, and has freed it when it is done. */
const ways = {
  tryLock(mutex, inside) {
    assert.equal(mutex.tryLock(), true);
    inside();
    mutex.unlock();
  },
  lock(mutex, inside) {
    assert.equal(mutex.lock(), true);
    inside();
    mutex.unlock();
  },
  async lockAsync(mutex, inside) {
    assert.equal(await mutex.lockAsync(), true);
    inside();
    mutex.unlock();
  },
  tryAcquire(mutex, inside) {
    const guard = mutex.tryAcquire();
    inside();
    guard.unlock();
  },
  acquire(mutex, inside) {
    const guard = mutex.acquire();
    inside();
    guard.unlock();
  },
  async acquireAsync(mutex, inside) {
    const guard = await mutex.acquireAsync();
    inside();
    guard.unlock();
  },
  executeLocked: (mutex, inside) => mutex.executeLocked(inside),
  executeLockedSync: (mutex, inside) => mutex.executeLockedSync(inside),
};

for (const [verb, run] of Object.entries(ways)) {
  test(
    `${verb}() runs onAbandoned with the lock held, before it is done, and the mutex is consistent`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const log = [];
      const mutex = await createAbandoned(threads, (...args) => {
        assert.deepEqual(args, [mutex]);
        log.push(['repair', mutex.isHeldByThisThread, mutex.abandoned]);
      });
      const inside = () => {
        log.push(['inside', mutex.isHeldByThisThread, mutex.abandoned]);
      };
      await run(mutex, inside);
      await run(mutex, inside);
      assert.deepEqual(log, [
        ['repair', true, true],
        ['inside', true, false],
        ['inside', true, false],
      ]);
      assert.equal(mutex.isLocked, false);
    }),
  );

  test(
    `${verb}() throws what onAbandoned throws, holds nothing, and leaves the mark to the next`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const error = new Error('Cannot be repaired');
      let calls = 0;
      const mutex = await createAbandoned(threads, () => {
        calls += 1;
        if (calls === 1) throw error;
      });
      const inside = () => {
        calls += 100;
      };
      await assert.rejects(
        async () => run(mutex, inside),
        (thrown) => thrown === error,
      );
      assert.equal(calls, 1);
      assert.equal(mutex.isLocked, false);
      assert.equal(mutex.inspect().abandoned, true);
      await run(mutex, inside);
      assert.equal(calls, 102);
      assert.equal(mutex.inspect().abandoned, false);
    }),
  );

  test(
    `${verb}() throws what onAbandoned throws, and holds nothing, while the hold of another guard is lent to a wait`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const lent = createMutex();
      const condition = new Condition(lent.buffer, CONDITION);
      const guard = lent.mutex.tryAcquire();
      const away = condition.waitAsync(lent.mutex);
      const error = new Error('Cannot be repaired');
      const mutex = await createAbandoned(threads, () => {
        throw error;
      });
      await assert.rejects(
        async () => run(mutex, () => assert.fail('ran')),
        (thrown) => thrown === error,
      );
      assert.deepEqual([mutex.isLocked, mutex.inspect().abandoned], [false, true]);
      condition.notifyAll();
      assert.equal(await away, true);
      assert.equal(guard.unlock(), true);
    }),
  );

  test(
    `${verb}() fails if onAbandoned writes over the word, which stays so`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const mutex = await createAbandoned(threads, () => overwrite(mutex, 255));
      await assert.rejects(async () => run(mutex, () => assert.fail('ran')), expected.corrupt(OFFSET));
      assert.throws(() => mutex.tryLock(), expected.corrupt(OFFSET));
    }),
  );

  test(
    `${verb}() refuses an onAbandoned that returns a promise`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const mutex = await createAbandoned(threads, async () => {});
      await assert.rejects(async () => run(mutex, () => assert.fail('ran')), {
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_TYPE',
        message: new RegExp(`onAbandoned.*\\b${OFFSET}\\b`),
      });
      assert.equal(mutex.isLocked, false);
      assert.equal(mutex.inspect().abandoned, true);
    }),
  );
}

for (const verb of ['lock', 'lockAsync', 'acquireAsync']) {
  test(
    `${verb}() that waits when the holder ends runs onAbandoned, too`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const { buffer, mutex, holder } = await createHeld(threads);
      const log = [];
      const repairing = new Mutex(buffer, OFFSET, {
        allowMainThread: true,
        onAbandoned: () => log.push(mutex.isHeldByThisThread),
      });
      if (verb === 'lock') {
        const [ender] = await threads.puppets(1, buffer);
        ender.run([['waitForFlag', 0]]);
        holder.run([
          ['raise', 0],
          ['exit', 0],
        ]);
        assert.equal(repairing.lock(), true);
        mutex.unlock();
      } else {
        const waiting = repairing[verb]();
        await terminate.end(holder);
        const held = await waiting;
        assert.equal(repairing.abandoned, false);
        if (held === true) repairing.unlock();
        else held.unlock();
      }
      assert.deepEqual(log, [true]);
    }),
  );
}

for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked']) {
  test(
    `${verb}() that waits for a holder who leaves the mark holds nothing once onAbandoned has thrown`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const messages = listen(t, 'sablock:abandoned');
      const holds = listenToHolds(t);
      const error = new Error('Cannot be repaired');
      const repairing = await createAbandoned(threads, () => {
        throw error;
      });
      const holding = new Mutex(repairing.buffer, OFFSET);
      // The end is reported here, and not again.
      assert.equal(holding.tryLock(), true);
      assert.equal(messages.length, 1);
      const waiting = repairing[verb](...(verb === 'executeLocked' ? [() => assert.fail('ran')] : []));
      holding.unlock();
      await assert.rejects(waiting, (thrown) => thrown === error);
      assert.deepEqual([holding.isLocked, holding.inspect().abandoned], [false, true]);
      assert.equal(messages.length, 1);
      assert.deepEqual(holds, [], 'it was not acquired');
    }),
  );
}

for (const [verb, hold] of ['wait', 'waitAsync'].flatMap((each) => [
  [each, 'tryLock'],
  [each, 'tryAcquire'],
])) {
  test(
    `locking again after Condition.${verb}() by ${hold}() runs onAbandoned, and is rejected with what it throws`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const holds = listenToHolds(t);
      const { buffer, mutex } = createMutex();
      const [dying] = await threads.puppets(1, buffer);
      const error = new Error('Cannot be repaired');
      const log = [];
      const repairing = new Mutex(buffer, OFFSET, {
        allowMainThread: true,
        onAbandoned() {
          log.push(mutex.isHeldByThisThread);
          if (log.length === 2) throw error;
        },
      });
      const condition = new Condition(buffer, CONDITION);
      let held;
      const waitWhileHolderEnds = async (holder) => {
        held = repairing[hold]();
        assert.ok(held);
        if (verb === 'wait') {
          holder.run([['lock'], ['notifyAll', CONDITION], ['exit', 0]]);
          return condition.wait(repairing);
        }
        const waiting = condition.waitAsync(repairing);
        waiting.catch(() => {});
        await holder.run([['lock'], ['notifyAll', CONDITION]]);
        await threads.queued(mutex, 1);
        await terminate.end(holder);
        return waiting;
      };
      assert.equal(await waitWhileHolderEnds(dying), true);
      assert.deepEqual(log, [true]);
      assert.equal(repairing.abandoned, false);
      if (held === true) repairing.unlock();
      else assert.equal(held.unlock(), true);

      const [second] = await threads.puppets(1, buffer);
      await assert.rejects(waitWhileHolderEnds(second), (thrown) => thrown === error);
      assert.equal(mutex.isLocked, false);
      assert.equal(mutex.inspect().abandoned, true);
      assert.ok(!holds.includes(false), 'what is published as acquired is held');
      if (held === true) return;
      // Its guard has nothing to free: the hold of the next one stays.
      assert.equal(held.locked, false);
      const next = repairing.tryAcquire();
      assert.deepEqual([held.unlock(), next.locked, mutex.isLocked], [false, true, true]);
      assert.equal(next.unlock(), true);
      assert.equal(mutex.isLocked, false);
    }),
  );
}

test(
  'those who wait behind a repair that fails are served',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder } = await createHeld(threads);
    let calls = 0;
    const repairing = new Mutex(mutex.buffer, OFFSET, {
      onAbandoned() {
        calls += 1;
        if (calls === 1) throw new Error('Cannot be repaired');
      },
    });
    const waits = [repairing.lockAsync(), repairing.lockAsync(), mutex.lockAsync()];
    const failed = assert.rejects(waits[0], { message: 'Cannot be repaired' });
    await terminate.end(holder);
    await failed;
    assert.equal(await waits[1], true);
    assert.equal(repairing.abandoned, false);
    mutex.unlock();
    assert.equal(await waits[2], true);
    mutex.unlock();
    assert.equal(calls, 2);
  }),
);

test(
  'a promise of the same thread is served when the repair of a blocking verb fails',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    const [worker] = waiters;
    await worker.call('lock');
    const repairing = new Mutex(buffer, OFFSET, {
      allowMainThread: true,
      onAbandoned() {
        throw new Error('Cannot be repaired');
      },
    });
    const pending = mutex.lockAsync();
    worker.run([
      ['waitForFlag', 0],
      ['holdFor', 20],
    ]);
    threads.raise(0);
    assert.throws(() => repairing.lock(), { message: 'Cannot be repaired' });
    assert.equal(await pending, true);
    mutex.unlock();
  }),
);

test(
  'onAbandoned takes the place of the warning; the channel has its one message',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = [];
    const note = ({ code }) => {
      if (code === 'SABLOCK_ABANDONED') warnings.push(code);
    };
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    const messages = listen(t, 'sablock:abandoned');
    let calls = 0;
    const mutex = await createAbandoned(threads, () => {
      calls += 1;
      if (calls === 1) throw new Error('Cannot be repaired');
    });
    assert.throws(() => mutex.tryLock());
    assert.equal(mutex.tryLock(), true);
    mutex.unlock();
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    assert.equal(calls, 2);
    assert.equal(messages.length, 1);
    assert.deepEqual(warnings, []);
  }),
);

test(
  'what onAbandoned cannot do is an error: to unlock the mutex, to lock it again',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const unlocking = await createAbandoned(threads, (mutex) => mutex.unlock());
    assert.throws(() => unlocking.tryLock(), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.equal(unlocking.isLocked, false);
    assert.throws(() => unlocking.tryAcquire(), { code: 'ERR_LOCK_NOT_OWNER' });
    assert.equal(unlocking.isLocked, false);
    assert.equal(unlocking.inspect().abandoned, true);
    const locking = await createAbandoned(threads, (mutex) => mutex.lock());
    assert.throws(() => locking.tryLock(), { code: 'ERR_LOCK_DEADLOCK' });
    assert.equal(locking.isLocked, false);
  }),
);

test(
  'an end is reported once, whatever an onAbandoned that throws has locked meanwhile',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, 'sablock:abandoned');
    const { buffer, holder } = await createHeld(threads);
    await holder.call(OFFSET + 4, 'lock');
    const { threadId } = holder;
    await terminate.end(holder);
    const other = new Mutex(buffer, OFFSET + 4, { onAbandoned() {} });
    const mutex = new Mutex(buffer, OFFSET, {
      onAbandoned() {
        if (other.tryLock()) throw new Error('Cannot be repaired');
      },
    });
    assert.throws(() => mutex.tryLock(), { message: 'Cannot be repaired' });
    assert.equal(mutex.tryLock(), true);
    mutex.unlock();
    other.unlock();
    assert.deepEqual(
      messages.map(({ byteOffset, ownerThreadId }) => [byteOffset, ownerThreadId]),
      [
        [OFFSET, threadId],
        [OFFSET + 4, threadId],
      ],
    );
  }),
);

for (const [verb, acquire] of Object.entries({
  tryAcquire: (mutex) => mutex.tryAcquire(),
  acquireAsync: (mutex) => mutex.acquireAsync({}),
  executeLockedSync: (mutex) => mutex.executeLockedSync(() => assert.fail('ran')),
})) {
  test(
    `a wait for a condition that the onAbandoned of ${verb}() leaves behind ends with its hold`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      let waiting;
      const condition = new Condition(new SharedArrayBuffer(4));
      const mutex = await createAbandoned(threads, () => {
        waiting ??= condition.waitAsync(mutex);
      });
      await assert.rejects(async () => acquire(mutex), { code: 'ERR_LOCK_NOT_OWNER', message: /onAbandoned/ });
      assert.equal(mutex.isLocked, false);
      condition.notifyAll();
      await assert.rejects(waiting, { code: 'ERR_LOCK_NOT_OWNER', message: /onAbandoned\(\) has ended/ });
      assert.equal(mutex.isLocked, false);
      const guard = mutex.tryAcquire();
      assert.equal(guard.unlock(), true);
    }),
  );
}

test(
  'a mutex that nobody left is not repaired',
  watched(async () => {
    const { buffer } = createMutex();
    const mutex = new Mutex(buffer, OFFSET, { allowMainThread: true, onAbandoned: () => assert.fail('ran') });
    for (const run of Object.values(ways)) await run(mutex, () => {});
    mutex.tryLock();
    const waiting = mutex.lockAsync();
    mutex.unlock();
    assert.equal(await waiting, true);
    mutex.unlock();
  }),
);
