// A guard's hold while it is away in Condition.waitAsync(), and once the function whose hold it is has ended.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { isMainThread } = require('node:worker_threads');
const { Condition, Mutex } = require('../..');
const { binding, thread } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { notOwner } = require('../helpers/expected.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const create = (options = { allowMainThread: true }) => {
  const buffer = new SharedArrayBuffer(16);
  const words = new Int32Array(buffer);
  return {
    buffer,
    mutex: new Mutex(buffer, 0, options),
    condition: new Condition(buffer, 4),
    other: new Condition(buffer, 8),
    waiting: () => binding.waiting(words, 1),
  };
};

/** Runs `body` and fails if a rejection was not handled. */
const handled = (body, milliseconds) =>
  watched(async (...args) => {
    const unhandled = [];
    const note = (reason) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      await body(...args);
      await nextTurn();
      await nextTurn();
      assert.deepEqual(unhandled, []);
    } finally {
      process.off('unhandledRejection', note);
    }
  }, milliseconds);

/** Nothing is left of waits that are over: guards need not look. */
const isForgotten = () => !thread.hasAway && thread.lent.size === 0 && thread.record[binding.Field.HasAway] === 0;

const ways = {
  'unlock()': (guard) => guard.unlock(),
  'dispose()': (guard) => guard[Symbol.dispose](),
  'leave()': (guard) => guard.mutex.leave(guard),
};

for (const [way, free] of Object.entries(ways)) {
  test(
    `${way} of a guard whose hold is away does not free another guard's hold`,
    watched(async () => {
      const { mutex, condition } = create();
      const first = await mutex.acquireAsync();
      const answered = condition.waitAsync(mutex);
      const second = await mutex.acquireAsync();
      assert.throws(() => free(first), notOwner(0));
      assert.deepEqual([first.locked, second.locked, mutex.isLocked], [true, true, true]);
      assert.equal(second.unlock(), true);
      assert.equal(mutex.isLocked, false);
      assert.throws(() => free(first), notOwner(0));
      condition.notifyOne();
      assert.equal(await answered, true);
      free(first);
      assert.deepEqual([first.locked, mutex.isLocked, isForgotten()], [false, false, true]);
    }),
  );
}

test(
  'a guard that a subscriber has lent, while another call was on its way, does not free the hold of the next either',
  watched(async (_, threads) => {
    const { buffer, mutex } = create();
    mutex.tryLock();
    const [waiter] = await startActors(threads, 1, buffer);
    const freed = waiter.do((here) => {
      const { Condition, Mutex } = here.sablock;
      const other = new Mutex(here.buffer, 12);
      const seen = [];
      const subscriber = () => {
        here.guard = other.acquire();
        here.answered = new Condition(here.buffer, 8).waitAsync(other);
      };
      here.require('node:diagnostics_channel').subscribe('sablock:contended', subscriber);
      new Mutex(here.buffer, 0).lock();
      for (let count = 0; count < 2; count++) {
        try {
          seen.push(here.guard.unlock());
        } catch ({ code }) {
          seen.push(code);
        }
        here.next ??= other.acquire();
      }
      return [...seen, here.next.locked, other.isLocked];
    });
    await threads.queued(mutex, 1);
    mutex.unlock();
    assert.deepEqual(await freed, ['ERR_LOCK_NOT_OWNER', 'ERR_LOCK_NOT_OWNER', true, true]);
  }),
);

test(
  'a guard whose hold did not come back is spent by its first unlock(), and nothing is left of it',
  watched(async () => {
    const { buffer, mutex, condition } = create();
    const guard = await mutex.acquireAsync();
    const answered = condition.waitAsync(mutex);
    const word = new Int32Array(buffer, 0, 1);
    Atomics.store(word, 0, 3);
    condition.notifyOne();
    await assert.rejects(answered, { code: 'ERR_LOCK_CORRUPT' });
    Atomics.store(word, 0, 0);
    assert.deepEqual([guard.locked, isForgotten()], [false, false]);
    assert.equal(guard.unlock(), false);
    assert.equal(isForgotten(), true);
  }),
);

test(
  'a guard is abandoned only while its hold is here, not while another has the mutex and its mark',
  watched(async () => {
    const { buffer, mutex, condition } = create({
      allowMainThread: true,
      onAbandoned() {
        throw new Error('no repair');
      },
    });
    const other = new Mutex(buffer, 0, { allowMainThread: true });
    const guard = await mutex.acquireAsync();
    Atomics.or(new Int32Array(buffer), 0, binding.ABANDONED);
    assert.equal(guard.abandoned, true);
    const answered = condition.waitAsync(mutex);
    const next = await other.acquireAsync();
    assert.deepEqual([guard.abandoned, next.abandoned], [false, true], 'away');
    next.unlock();
    condition.notifyOne();
    await assert.rejects(answered, { message: 'no repair' });
    const last = await other.acquireAsync();
    assert.deepEqual([guard.locked, guard.abandoned, last.abandoned], [false, false, true], 'lost');
    last.unlock();
    guard.unlock();
    assert.equal(isForgotten(), true);
  }),
);

for (const order of [
  [0, 1],
  [1, 0],
]) {
  test(
    `two guards of one mutex away at once, back in the order ${order}, each free their own hold only`,
    watched(async () => {
      const { mutex, condition, other } = create();
      const conditions = [condition, other];
      const guards = [];
      const answered = [];
      for (const each of conditions) {
        guards.push(await mutex.acquireAsync());
        answered.push(each.waitAsync(mutex));
      }
      const third = await mutex.acquireAsync();
      for (const guard of guards) assert.throws(() => guard.unlock(), notOwner(0));
      assert.equal(third.unlock(), true);
      for (const [nth, index] of order.entries()) {
        conditions[index].notifyOne();
        assert.equal(await answered[index], true);
        if (nth === 0) assert.throws(() => guards[1 - index].unlock(), notOwner(0));
        assert.equal(mutex.isHeldByThisThread, true);
        assert.equal(guards[index].unlock(), true);
        assert.equal(mutex.isLocked, false);
      }
      assert.equal(isForgotten(), true);
    }),
  );
}

test(
  'a guard that was away goes away again, beside another that stays away',
  watched(async () => {
    const { mutex, condition, other } = create();
    const staying = await mutex.acquireAsync();
    const stays = other.waitAsync(mutex);
    const going = await mutex.acquireAsync();
    for (let round = 0; round < 3; round++) {
      const answered = condition.waitAsync(mutex);
      const between = mutex.tryAcquire();
      assert.throws(() => going.unlock(), notOwner(0));
      assert.throws(() => staying.unlock(), notOwner(0));
      between.unlock();
      condition.notifyOne();
      await answered;
    }
    going.unlock();
    // A new guard in the place of the one that was freed.
    const fresh = mutex.tryAcquire();
    const answered = condition.waitAsync(mutex);
    const between = mutex.tryAcquire();
    assert.throws(() => fresh.unlock(), notOwner(0));
    assert.equal(between.unlock(), true);
    condition.notifyOne();
    await answered;
    fresh.unlock();
    other.notifyOne();
    await stays;
    staying.unlock();
    assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
  }),
);

test(
  'guards of another mutex, and holds without a guard, do not mind what is away',
  watched(async () => {
    const { buffer, mutex, condition } = create();
    const neighbour = new Mutex(buffer, 12);
    const early = neighbour.tryAcquire();
    const guard = mutex.tryAcquire();
    const answered = condition.waitAsync(mutex);
    assert.equal(early.unlock(), true);
    assert.equal(await neighbour.executeLocked(() => 7), 7);
    mutex.tryLock();
    assert.throws(() => guard.unlock(), notOwner(0));
    mutex.unlock();
    condition.notifyOne();
    await answered;
    guard.unlock();
    mutex.tryLock();
    const raw = condition.waitAsync(mutex);
    const late = mutex.tryAcquire();
    assert.equal(late.unlock(), true);
    condition.notifyOne();
    assert.equal(await raw, true);
    mutex.unlock();
    assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
  }),
);

test(
  'a function that gives a wait up does not free the mutex of the next',
  handled(async () => {
    const { mutex, condition } = create();
    let inside = 0;
    let most = 0;
    const stay = async () => {
      inside += 1;
      most = Math.max(most, inside);
      for (let turn = 0; turn < 5; turn++) await nextTurn();
      inside -= 1;
    };
    const givesUp = mutex.executeLocked(async () => {
      await Promise.race([condition.waitAsync(mutex, 50), nextTurn()]);
    });
    await Promise.all([givesUp, mutex.executeLocked(stay), mutex.executeLocked(stay)]);
    assert.deepEqual([most, mutex.isLocked], [1, false]);
  }),
);

// The meaning of V8's own condition-async-wait-no-await.js, beside what becomes of the wait and of its notification.
for (const [name, run] of Object.entries({
  executeLocked: (mutex, fn) => mutex.executeLocked(fn),
  executeLockedSync: async (mutex, fn) => mutex.executeLockedSync(fn),
})) {
  test(
    `${name}() of a function that does not await its wait returns, and leaves the mutex free`,
    handled(async () => {
      const { mutex, condition } = create();
      const fn = () => {
        condition.waitAsync(mutex, 10);
        return 1;
      };
      assert.equal(await run(mutex, fn), 1);
      assert.equal(mutex.isLocked, false);
      while (binding.waiting(new Int32Array(condition.buffer), 1) > 0) await nextTurn();
      assert.deepEqual([mutex.isLocked, mutex.tryLock()], [false, true]);
      mutex.unlock();
      assert.equal(isForgotten(), true);
    }),
  );

  test(
    `a wait whose ${name}() has ended stays in line, passes its notification on, and rejects`,
    handled(async (_, threads) => {
      const { mutex, condition, waiting, buffer } = create();
      let wait;
      const fn = () => {
        wait = condition.waitAsync(mutex);
      };
      await run(mutex, fn);
      assert.equal(waiting(), 1);
      const worker = threads.start('conditional', { buffer });
      const answered = worker.call('wait');
      await threads.until('both wait', () => waiting() === 2);
      assert.equal(condition.notifyOne(), 1);
      assert.deepEqual(await answered, [true, true]);
      await assert.rejects(wait, { code: 'ERR_LOCK_NOT_OWNER', message: new RegExp(`\\b0\\b.*\\b${name}\\(\\)`) });
      assert.deepEqual([mutex.isLocked, waiting(), isForgotten()], [false, 0, true]);
    }),
  );

  test(
    `waitForAsync() that is not awaited is over with its ${name}()`,
    handled(async () => {
      const { mutex, condition, waiting } = create();
      let predicates = 0;
      const fn = () => {
        condition.waitForAsync(mutex, () => predicates++ > 5, 1000);
      };
      await run(mutex, fn);
      condition.notifyOne();
      while (waiting() > 0 || !isForgotten()) await nextTurn();
      await nextTurn();
      assert.deepEqual([predicates, mutex.isLocked], [1, false]);
    }),
  );
}

test(
  'waitForAsync() that nobody awaits, and whose function ends while it waits, is over, and nothing is unhandled',
  handled(async () => {
    const { mutex, condition, waiting } = create();
    let predicates = 0;
    await mutex.executeLocked(async () => {
      condition.waitForAsync(mutex, () => predicates++ > 5);
      while (waiting() === 0) await nextTurn();
    });
    assert.equal(condition.notifyOne(), 1);
    while (!isForgotten()) await nextTurn();
    assert.deepEqual([predicates, mutex.isLocked], [1, false]);
  }),
);

test(
  'waitForAsync() that is not awaited does not take the hold of the next function',
  handled(async () => {
    const { mutex, condition, waiting } = create();
    let left;
    await mutex.executeLocked(() => {
      left = condition.waitForAsync(mutex, () => nextTurn(false));
    });
    const guard = await mutex.acquireAsync();
    await assert.rejects(left, notOwner(0));
    assert.deepEqual([waiting(), mutex.isHeldByThisThread, guard.unlock()], [0, true, true]);
    assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
  }),
);

for (const calls of [1, 2]) {
  for (const value of [true, false]) {
    test(
      `waitForAsync() is rejected if its function ends before call ${calls} of its predicate comes to ${value}`,
      handled(async () => {
        const { mutex, condition } = create();
        let left;
        await mutex.executeLocked(
          () =>
            new Promise((resolve) => {
              let called = 0;
              const predicate = () => {
                called += 1;
                if (called < calls) return false;
                resolve();
                return nextTurn(value);
              };
              left = condition.waitForAsync(mutex, predicate, 1);
            }),
        );
        await assert.rejects(left, notOwner(0));
        assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
      }),
    );
  }
}

/** By who ends: holds the mutex, calls `begin()`, and ends after so many microtasks. */
const ENDS = {
  function: (mutex, begin, microtasks) =>
    mutex.executeLocked(() => {
      begin();
      return pass(microtasks);
    }),
  guard: async (mutex, begin, microtasks) => {
    const guard = await mutex.acquireAsync();
    begin();
    await pass(microtasks);
    guard.unlock();
  },
};
const pass = async (microtasks) => {
  for (let count = 0; count < microtasks; count++) await undefined;
};

for (const [who, hold] of Object.entries(ENDS)) {
  test(
    `waitForAsync() calls its predicate only in the hold, whenever the ${who} of that ends without it`,
    handled(async () => {
      const outcomes = new Set();
      for (let microtasks = 0; microtasks < 80; microtasks++) {
        const { mutex, condition } = create();
        const held = [];
        // So long that the hold may end before it, whatever that takes.
        const predicate = () => {
          held.push(mutex.isHeldByThisThread);
          return pass(20);
        };
        let left;
        const begin = () => {
          left = condition.waitForAsync(mutex, predicate, 0).catch(({ code }) => code);
        };
        await hold(mutex, begin, microtasks);
        outcomes.add(await left);
        assert.ok(!held.includes(false), `${held}, after ${microtasks}`);
        assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
      }
      assert.deepEqual(outcomes, new Set(['ERR_LOCK_NOT_OWNER', false]));
    }),
  );
}

test(
  'a wait that is about to lock the mutex again gives up when its function ends, and passes its notification on',
  handled(async () => {
    const { mutex, condition, other } = create();
    let wait;
    let finish;
    const running = mutex.executeLocked(() => {
      wait = condition.waitAsync(mutex);
      return new Promise((resolve) => (finish = resolve));
    });
    while (finish === undefined) await nextTurn();
    mutex.tryLock();
    const next = condition.waitAsync(mutex);
    mutex.tryLock();
    assert.equal(condition.notifyOne(), 1);
    while (mutex.inspect().waiters.length === 0) await nextTurn();
    finish('done');
    assert.equal(await running, 'done');
    await assert.rejects(wait, notOwner(0));
    mutex.unlock();
    assert.equal(await next, true);
    mutex.unlock();
    assert.deepEqual([mutex.isLocked, isForgotten(), other.notifyAll()], [false, true, 0]);
  }),
);

test(
  'an abort of a wait whose function has ended rejects it, and does not lock the mutex',
  handled(async () => {
    const { mutex, condition } = create();
    const controller = new AbortController();
    let wait;
    await mutex.executeLocked(() => {
      wait = condition.waitAsync(mutex, { signal: controller.signal });
    });
    controller.abort(new Error('Enough'));
    await assert.rejects(wait, notOwner(0));
    assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
  }),
);

test(
  'what the function throws is thrown, though its wait is away',
  handled(async () => {
    const { mutex, condition } = create();
    const error = new Error('Thrown inside');
    const fn = () => {
      condition.waitAsync(mutex, 10);
      throw error;
    };
    await assert.rejects(mutex.executeLocked(fn), (caught) => caught === error);
    assert.throws(
      () => mutex.executeLockedSync(fn),
      (caught) => caught === error,
    );
    assert.equal(mutex.isLocked, false);
    while (thread.lent.size > 0 || condition.notify(0) > 0 || !isForgotten()) await nextTurn();
  }),
);

test(
  'waiting with the bare mutex inside executeLocked() is allowed, and the hold comes back',
  handled(async () => {
    const { mutex, condition, waiting } = create();
    const running = mutex.executeLocked(async () => {
      const isNotified = await condition.waitAsync(mutex);
      return [isNotified, mutex.isHeldByThisThread];
    });
    while (waiting() === 0) await nextTurn();
    assert.equal(mutex.isLocked, false);
    condition.notifyOne();
    assert.deepEqual(await running, [true, true]);
    assert.deepEqual([mutex.isLocked, isForgotten()], [false, true]);
  }),
);

test(
  'a blocking wait that is over leaves nothing to look after, and its guard holds',
  { skip: !isMainThread },
  handled(async () => {
    const { mutex, condition } = create();
    const guard = mutex.acquire();
    assert.deepEqual([condition.wait(mutex, 5), guard.locked, isForgotten()], [false, true, true]);
    assert.equal(guard.unlock(), true);
  }),
);

test(
  'the guard of a blocking wait whose onAbandoned() throws is spent: it frees nothing that another holds later',
  { skip: !isMainThread, ...needs('prompt ends') },
  handled(async (_, threads) => {
    const error = new Error('beyond repair');
    const onAbandoned = () => {
      throw error;
    };
    const { buffer, mutex, condition } = create({ allowMainThread: true, onAbandoned });
    const [doomed] = await startActors(threads, 1, buffer);
    const guard = mutex.acquire();
    doomed.do((here) => {
      new here.sablock.Mutex(here.buffer, 0).lock();
      new here.sablock.Condition(here.buffer, 4).notifyAll();
      process.exit();
    });
    assert.throws(
      () => condition.wait(mutex),
      (thrown) => thrown === error,
    );
    assert.equal(mutex.isLocked, false);
    const next = new Mutex(buffer, 0, { allowMainThread: true }).acquire();
    assert.deepEqual([guard.locked, guard.unlock(), next.locked], [false, false, true]);
    assert.equal(next.unlock(), true);
  }),
);

test(
  'a wait for a predicate that is met leaves nothing to look after in the hold, which goes on',
  handled(async () => {
    const { mutex, condition } = create();
    await mutex.executeLocked(async () => {
      assert.equal(await condition.waitForAsync(mutex, () => true), true);
      assert.deepEqual([mutex.isHeldByThisThread, isForgotten()], [true, true]);
    });
  }),
);

test(
  'hundreds of functions that wait for each other in one thread come through, one at a time',
  handled(async () => {
    const { mutex, condition } = create();
    const COUNT = 300;
    let turn = 0;
    let inside = 0;
    const take = (number) =>
      mutex.executeLocked(async () => {
        await condition.waitForAsync(mutex, () => turn === number);
        assert.equal(++inside, 1);
        turn += 1;
        inside -= 1;
        condition.notifyAll();
      });
    await Promise.all(Array.from({ length: COUNT }, (_, index) => take(COUNT - 1 - index)).map((each) => each));
    assert.deepEqual([turn, mutex.isLocked, isForgotten()], [COUNT, false, true]);
  }, 120_000),
);
