const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const { setImmediate: nextTurn, setTimeout: sleep } = require('node:timers/promises');
const { Condition, lockAllAsync, Mutex, notify } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { startActors } = require('../helpers/actors.js');
const { invalidArgType, mainThread, notOwner, outOfRange } = require('../helpers/expected.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const create = (options) => {
  const buffer = new SharedArrayBuffer(16);
  const word = new Int32Array(buffer, 4, 1);
  return {
    buffer,
    mutex: new Mutex(buffer, 0, options),
    condition: new Condition(buffer, 4),
    value: new Int32Array(buffer, 8, 1),
    waiting: () => binding.waiting(word, 0),
  };
};
const startAll = (threads, count, buffer) =>
  Array.from({ length: count }, () => threads.start('conditional', { buffer }));

test('it stands for four bytes of shared memory, which are checked', () => {
  assert.deepEqual([Condition.BYTES, Condition.ALIGN], [4, 4]);
  const { buffer, condition } = create();
  assert.deepEqual([condition.buffer, condition.byteOffset], [buffer, 4]);
  assert.throws(() => new Condition(new ArrayBuffer(8)), invalidArgType());
  assert.throws(() => new Condition(buffer, 2), outOfRange());
  assert.throws(() => new Condition(buffer, 16), outOfRange());
});

test('a Mutex of another package, or of another copy, is refused with an error that says so', async () => {
  const { condition } = create();
  const other = new { Mutex: class {} }.Mutex();
  const refused = { code: 'ERR_INVALID_ARG_TYPE', message: /another copy of sablock/ };
  assert.throws(() => condition.wait(other), refused);
  await assert.rejects(lockAllAsync([other]), refused);
});

test('a predicate of waitFor() that returns a promise is refused, and the mutex stays held', () => {
  const { mutex, condition } = create({ allowMainThread: true });
  mutex.lock();
  for (const predicate of [async () => false, () => Promise.resolve(true)]) {
    assert.throws(() => condition.waitFor(mutex, predicate, 10), invalidArgType());
  }
  assert.equal(mutex.isHeldByThisThread, true);
});

test(
  'a blocked wait unlocks the mutex, returns true when it is notified, and holds the mutex again',
  watched(async (_, threads) => {
    const { buffer, mutex, condition, waiting } = create();
    const [worker] = startAll(threads, 1, buffer);
    const answered = worker.call('wait');
    await threads.until('it waits', () => waiting() === 1);
    assert.equal(await mutex.lockAsync(), true);
    assert.equal(condition.notifyOne(), 1);
    await nextTurn();
    mutex.unlock();
    assert.deepEqual(await answered, [true, true]);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'a pending wait unlocks the mutex, resolves with true when it is notified, and holds the mutex again',
  watched(async () => {
    const { mutex, condition } = create();
    mutex.tryLock();
    const answered = condition.waitAsync(mutex);
    assert.equal(mutex.isLocked, false);
    mutex.tryLock();
    assert.equal(condition.notifyOne(), 1);
    let isOver = false;
    answered.then(() => {
      isOver = true;
    });
    await nextTurn();
    await nextTurn();
    assert.equal(isOver, false, 'the mutex is held by somebody else');
    mutex.unlock();
    assert.equal(await answered, true);
    assert.equal(mutex.isHeldByThisThread, true);
    mutex.unlock();
  }),
);

test(
  'a wait that times out returns false and holds the mutex again',
  watched(async (_, threads) => {
    const { buffer, mutex, condition } = create();
    const [worker] = startAll(threads, 1, buffer);
    assert.deepEqual(await worker.call('wait', 20), [false, true]);
    mutex.tryLock();
    assert.equal(await condition.waitAsync(mutex, { timeout: 20 }), false);
    assert.equal(mutex.isHeldByThisThread, true);
    assert.equal(condition.notifyAll(), 0);
  }),
);

/** By the way to wait for `ms`: what the worker is asked, and what it has of a wait that was, or was not, notified. */
const TIMED = {
  wait: (ms) => [[ms], (isNotified) => [isNotified, true]],
  waitAsync: (ms) => [[{ timeout: ms }], (isNotified) => [isNotified, true]],
  waitFor: (ms) => [[0, ms], () => true],
};

for (const [verb, how] of Object.entries(TIMED)) {
  for (const isNotified of [false, true]) {
    test(
      `${verb}() that was ${isNotified ? '' : 'not '}notified in its time locks the mutex again, however long that takes`,
      watched(async (_, threads) => {
        const { buffer, mutex, condition, value, waiting } = create();
        const [worker] = startAll(threads, 1, buffer);
        const ms = 300;
        const [args, expected] = how(ms);
        const order = [];
        let answered;
        for (;;) {
          order.length = 0;
          value[0] = 1;
          answered = worker.call(verb, ...args).finally(() => order.push('answered'));
          await threads.until('it waits', () => waiting() === 1 || order.length > 0);
          await mutex.lockAsync();
          if (waiting() === 1) break;
          // This thread came too late.
          value[0] = 0;
          mutex.unlock();
          await answered;
        }
        value[0] = 0;
        const isTold = isNotified && condition.notifyOne() === 1;
        await threads.queued(mutex, 1);
        // The time is over, and more.
        await sleep(ms + 50);
        order.push('unlocked');
        mutex.unlock();
        assert.deepEqual(await answered, expected(isTold));
        assert.deepEqual(order, ['unlocked', 'answered']);
      }),
    );
  }
}

test('a timeout of zero returns false at once and keeps the mutex', async () => {
  const { mutex, condition } = create({ allowMainThread: true });
  mutex.tryLock();
  assert.equal(condition.wait(mutex, 0), false);
  assert.equal(await condition.waitAsync(mutex, -1), false);
  assert.equal(mutex.isHeldByThisThread, true);
});

test(
  'a notification between the unlock and the wait is not lost: there is no such moment',
  watched(async (_, threads) => {
    const { buffer, mutex, condition } = create();
    const [worker] = startAll(threads, 1, buffer);
    for (let round = 0; round < 200; round++) {
      mutex.tryLock();
      const answered = round % 2 === 0 ? worker.call('wait') : worker.call('waitAsync');
      // As soon as the mutex can be had, the worker has either not come yet, or it waits.
      mutex.unlock();
      let told = 0;
      for (let looks = 1; told === 0; looks++) {
        await mutex.lockAsync();
        told = condition.notifyOne();
        mutex.unlock();
        // The mutex is free nearly always, so that these waits end without a turn of the event loop.
        if (looks % 10_000 === 0) await nextTurn();
      }
      assert.deepEqual(await answered, [true, true]);
    }
  }),
);

test(
  'notify wakes as many as asked for, in order, whether blocked or awaiting',
  watched(async (_, threads) => {
    const { buffer, mutex, condition, waiting } = create();
    const workers = startAll(threads, 3, buffer);
    const order = [];
    const all = [];
    for (const [index, worker] of workers.entries()) {
      all.push(worker.call(index % 2 === 0 ? 'wait' : 'waitAsync').then(() => order.push(index)));
      await threads.until('it waits', () => waiting() === index + 1);
    }
    assert.equal(condition.notify(0), 0);
    assert.equal(condition.notifyOne(), 1);
    await all[0];
    assert.equal(condition.notify(1), 1);
    await all[1];
    assert.equal(condition.notify(), 1);
    await all[2];
    assert.deepEqual(order, [0, 1, 2]);
    assert.equal(mutex.isLocked, false);
  }),
);

test('the count of notify is checked', () => {
  const { condition } = create();
  for (const count of [null, '1', 1n, {}]) assert.throws(() => condition.notify(count), invalidArgType());
  for (const count of [-1, NaN, -Infinity]) assert.throws(() => condition.notify(count), outOfRange());
});

test('without the mutex every way of waiting is refused, and nothing changes', async () => {
  const { mutex, condition, waiting } = create({ allowMainThread: true });
  const always = () => true;
  assert.throws(() => condition.wait(mutex), notOwner(0));
  assert.throws(() => condition.wait(mutex, 0), notOwner(0));
  assert.throws(() => condition.waitFor(mutex, always), notOwner(0));
  await assert.rejects(condition.waitAsync(mutex), notOwner(0));
  await assert.rejects(condition.waitAsync(mutex, { signal: AbortSignal.abort() }), notOwner(0));
  await assert.rejects(condition.waitForAsync(mutex, always), notOwner(0));
  assert.equal(waiting(), 0);
  assert.equal(mutex.isLocked, false);
});

test(
  'with a mutex that another thread holds it is refused',
  watched(async (_, threads) => {
    const { buffer, mutex, condition } = create();
    const [worker] = startAll(threads, 1, buffer);
    await worker.call('lock');
    await assert.rejects(condition.waitAsync(mutex), notOwner(0));
    assert.equal(await worker.call('isHeld'), true);
  }),
);

test('a blocking wait on the main thread is refused unless the mutex allows it', () => {
  const { mutex, condition } = create();
  mutex.tryLock();
  assert.throws(() => condition.wait(mutex, 10), mainThread(0));
  assert.throws(() => condition.waitFor(mutex, () => false, 10), mainThread(0));
  assert.equal(mutex.isHeldByThisThread, true);
});

test('what is no mutex, no function or no option is refused', async () => {
  const { mutex, condition } = create({ allowMainThread: true });
  mutex.tryLock();
  for (const value of [undefined, null, {}, condition]) {
    assert.throws(() => condition.wait(value), invalidArgType());
    await assert.rejects(condition.waitAsync(value), invalidArgType());
  }
  assert.throws(() => condition.waitFor(mutex, 1), invalidArgType(0));
  await assert.rejects(condition.waitForAsync(mutex), invalidArgType(0));
  await assert.rejects(condition.waitAsync(mutex, { signal: 1 }), invalidArgType(0));
  assert.throws(() => condition.wait(mutex, '1'), invalidArgType(0));
  assert.equal(mutex.isHeldByThisThread, true);
});

test(
  "a guard's hold may wait, and the guard stays valid",
  watched(async (_, threads) => {
    const { buffer, mutex, condition, waiting } = create();
    const [worker] = startAll(threads, 1, buffer);
    const answered = worker.call('waitWithGuard');
    await threads.until('it waits', () => waiting() === 1);
    condition.notifyOne();
    assert.deepEqual(await answered, [true, true, true, false]);
    const guard = await mutex.acquireAsync();
    const mine = condition.waitAsync(mutex);
    assert.equal(condition.notifyOne(), 1);
    assert.equal(await mine, true);
    assert.equal(guard.locked, true);
    assert.throws(() => mutex.unlock(), notOwner(0));
    assert.equal(guard.unlock(), true);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'waitFor and waitForAsync wait until the predicate holds, or the time is over',
  watched(async (_, threads) => {
    const { buffer, mutex, condition, value, waiting } = create();
    const [worker] = startAll(threads, 1, buffer);
    const blocked = worker.call('waitFor', 3);
    const set = async (next) => {
      await mutex.executeLocked(() => {
        value[0] = next;
      });
      condition.notifyAll();
    };
    await mutex.lockAsync();
    const awaiting = condition
      .waitForAsync(mutex, async () => value[0] === 3)
      .then((answered) => {
        mutex.unlock();
        return answered;
      });
    for (const next of [1, 2, 3]) {
      await threads.until('both wait', () => waiting() === 2);
      await set(next);
    }
    assert.deepEqual(await Promise.all([blocked, awaiting]), [true, true]);
    assert.equal(await worker.call('waitFor', 4, 20), false);
    assert.equal(await worker.call('waitFor', 3, 0), true);
    await mutex.lockAsync();
    assert.equal(await condition.waitForAsync(mutex, () => false, { timeout: 10 }), false);
    assert.equal(mutex.isHeldByThisThread, true);
  }),
);

test(
  'waitFor() and waitForAsync() have one deadline, however often they are notified in vain',
  watched(async (t, threads) => {
    const LIMIT = 600_000;
    const { buffer, mutex, condition, waiting } = create();
    const time = new Int32Array(buffer, 12, 1);
    // The clock that says how much time is left, of this thread and of the one that blocks.
    t.mock.method(clock, 'now', () => Atomics.load(time, 0));
    const prepare = (here) => {
      here.require('../../lib/load/clock.js').now = () => Atomics.load(new Int32Array(here.buffer, 12, 1), 0);
    };
    const [actor] = await startActors(threads, 1, buffer, { prepare });
    const blocked = actor.do((here, limit) => {
      const mutex = new here.sablock.Mutex(here.buffer);
      const condition = new here.sablock.Condition(here.buffer, 4);
      let calls = 0;
      const isHeld = mutex.lock();
      const answer = condition.waitFor(mutex, () => ++calls === 0, limit);
      mutex.unlock();
      return [isHeld, answer, calls];
    }, LIMIT);
    await threads.until('it waits', () => waiting() === 1);
    await mutex.lockAsync();
    let calls = 0;
    const pending = condition
      .waitForAsync(mutex, () => ++calls === 0, LIMIT)
      .then((answer) => {
        mutex.unlock();
        return answer;
      });
    for (const now of [LIMIT / 2, LIMIT - 1]) {
      await threads.until('both wait', () => waiting() === 2);
      Atomics.store(time, 0, now);
      assert.equal(condition.notifyAll(), 2);
    }
    await threads.until('both wait', () => waiting() === 2 || calls > 3);
    Atomics.store(time, 0, LIMIT);
    condition.notifyAll();
    // Each is asked at first, after three notifications at most, and when the time is over.
    const [isHeld, answer, looks] = await blocked;
    assert.deepEqual([isHeld, answer, await pending], [true, false, false]);
    for (const count of [looks, calls]) assert.ok(count === 4 || count === 5, `${count}`);
  }),
);

test('waitFor() and waitForAsync() return a boolean, whatever the predicate returns, in time or when that is over', async () => {
  const { mutex, condition } = create({ allowMainThread: true });
  const answers =
    (...values) =>
    () =>
      values.shift();
  const waits = {
    waitFor: (predicate) => condition.waitFor(mutex, predicate, 5),
    waitForAsync: (predicate) => condition.waitForAsync(mutex, predicate, 5),
  };
  mutex.lock();
  for (const [verb, wait] of Object.entries(waits)) {
    assert.equal(await wait(answers('yes')), true, verb);
    assert.equal(await wait(answers(0, 'late')), true, `${verb}: it is asked once more when the time is over`);
    assert.equal(await wait(answers(null, '')), false, verb);
  }
  assert.equal(mutex.isHeldByThisThread, true);
});

test(
  "an abort rejects with the signal's reason once the mutex is held again",
  watched(async () => {
    const { mutex, condition, waiting } = create();
    const controller = new AbortController();
    mutex.tryLock();
    const answered = condition.waitAsync(mutex, { signal: controller.signal });
    controller.abort('enough');
    await assert.rejects(answered, (reason) => reason === 'enough');
    assert.equal(mutex.isHeldByThisThread, true);
    assert.equal(waiting(), 0);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    await assert.rejects(condition.waitAsync(mutex, { signal: controller.signal }), (reason) => reason === 'enough');
    assert.equal(mutex.isHeldByThisThread, true);
  }),
);

test(
  'a thread that ends before it holds the mutex again passes its notification on',
  needs('termination when busy'),
  watched(async (_, threads) => {
    for (const verb of ['wait', 'waitAsync']) {
      const { buffer, mutex, condition, waiting } = create();
      const [doomed, heir] = startAll(threads, 2, buffer);
      doomed.call(verb);
      await threads.until('it waits', () => waiting() === 1);
      const answered = heir.call('wait');
      await threads.until('both wait', () => waiting() === 2);
      await mutex.lockAsync();
      assert.equal(condition.notifyOne(), 1);
      await threads.queued(mutex, 1);
      await doomed.terminate();
      mutex.unlock();
      assert.deepEqual(await answered, [true, true], verb);
    }
  }),
);

test(
  'a thread that ends after it has held the mutex again takes its notification with it',
  watched(async (_, threads) => {
    for (const verb of ['wait', 'waitAsync']) {
      const { buffer, condition, waiting } = create();
      const [first, next] = startAll(threads, 2, buffer);
      const answered = first.call(verb);
      await threads.until('it waits', () => waiting() === 1);
      const answeredNext = next.call('wait');
      await threads.until('both wait', () => waiting() === 2);
      assert.equal(condition.notifyOne(), 1);
      assert.deepEqual(await answered, [true, true], verb);
      await first.terminate();
      assert.equal(condition.notifyOne(), 1, `${verb}: the other waits still`);
      assert.deepEqual(await answeredNext, [true, true], verb);
    }
  }),
);

test(
  'a condition and notify() of the same bytes are one',
  watched(async () => {
    const { buffer, mutex, condition } = create();
    mutex.tryLock();
    const answered = condition.waitAsync(mutex);
    assert.equal(notify(new Int32Array(buffer), 1), 1);
    assert.equal(await answered, true);
  }),
);

/**
 * One thread waits for the condition while it holds what another one, which holds the mutex, blocks for. Returns what comes of that
 * wait once it is the one that closes the circle: the other closes it if it was queued, and had not looked for circles yet.
 */
async function closeCircle(threads, buffer, { condition, waiting }, ...step) {
  const [worker, blocker] = startAll(threads, 2, buffer);
  for (;;) {
    const answered = worker.call(...step);
    await threads.until('it waits', () => waiting() === 1);
    const locked = blocker.call('lockOther');
    await threads.queued(new Mutex(buffer, 12), 1);
    condition.notifyOne();
    const answer = await answered;
    if ((await locked) !== 'ERR_LOCK_DEADLOCK') return answer;
  }
}

for (const way of ['executeLockedSync', 'executeLocked', 'guard']) {
  test(
    `the deadlock that ends a wait inside ${way} is what its caller gets`,
    watched(async (_, threads) => {
      const { buffer, mutex, ...rest } = create();
      const answered = await closeCircle(threads, buffer, rest, 'waitWithBoth', way);
      assert.deepEqual(answered, ['ERR_LOCK_DEADLOCK', false]);
      assert.equal(mutex.isLocked, false);
    }),
  );
}

test(
  'a guard whose wait could not lock the mutex again is spent, and frees no other hold',
  watched(async (_, threads) => {
    const { buffer, ...rest } = create();
    const answered = await closeCircle(threads, buffer, rest, 'loseGuard');
    assert.deepEqual(answered, ['ERR_LOCK_DEADLOCK', false, false, true, false]);
  }),
);
