const assert = require('node:assert/strict');
const { test } = require('node:test');
const { TimeoutError } = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');
const expected = require('../helpers/expected.js');

const GENEROUS_MS = 10_000;
const ONE_TRY = [0, -0, -1, -0.25, -1e12, -Infinity];
const FOR_EVER = [undefined, NaN, Infinity, 1e12, 2 ** 31, 2 ** 32 + 1, 2 ** 53, Number.MAX_VALUE];

const named = (value) => (Object.is(value, -0) ? '-0' : String(value));
const isWithin = (ms, from) => ms >= from && ms < from + GENEROUS_MS;

const raise = (error) => {
  throw error;
};

/** Measures a call on this thread. */
const timed = async (call) => {
  const startedAt = performance.now();
  const value = await call();
  return { value, ms: performance.now() - startedAt };
};

for (const [form, argument] of [
  ['a number', 30],
  ['options', { timeout: 30 }],
]) {
  test(
    `lock() with a timeout as ${form} returns false once it is over`,
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      mutex.tryLock();
      const { value, ms } = await worker.call('timed', 'lock', argument);
      assert.equal(value, false);
      assert.ok(isWithin(ms, 30), `${ms} ms`);
    }),
  );

  test(
    `lockAsync() with a timeout as ${form} resolves with false once it is over`,
    watched(async () => {
      const { mutex } = createMutex();
      mutex.tryLock();
      const { value, ms } = await timed(() => mutex.lockAsync(argument));
      assert.equal(value, false);
      assert.ok(isWithin(ms, 30), `${ms} ms`);
    }),
  );
}

for (const verb of ['acquireAsync', 'executeLocked']) {
  test(
    `${verb}() rejects with a TimeoutError once its timeout is over`,
    watched(async (t) => {
      const { mutex } = createMutex();
      mutex.tryLock();
      const run = t.mock.fn();
      const options = { timeout: 30 };
      const startedAt = performance.now();
      const pending = verb === 'acquireAsync' ? mutex.acquireAsync(options) : mutex.executeLocked(run, options);
      const error = await pending.catch((reason) => reason);
      const ms = performance.now() - startedAt;
      assert.ok(isWithin(ms, 30), `${ms} ms`);
      assert.ok(error instanceof TimeoutError && error instanceof Error);
      assert.throws(() => raise(error), expected.timeout(OFFSET));
      assert.equal(run.mock.callCount(), 0);
    }),
  );
}

for (const verb of ['acquire', 'executeLockedSync']) {
  test(
    `${verb}() throws a TimeoutError once its timeout is over`,
    watched(async (t, threads) => {
      const { buffer, mutex } = createMutex({ allowMainThread: true });
      const [worker] = await threads.puppets(1, buffer);
      await worker.call('lock');
      const run = t.mock.fn();
      const startedAt = performance.now();
      const options = { timeout: 30 };
      let error;
      try {
        if (verb === 'acquire') mutex.acquire(options);
        else mutex.executeLockedSync(run, options);
      } catch (caught) {
        error = caught;
      }
      const ms = performance.now() - startedAt;
      assert.ok(isWithin(ms, 30), `${ms} ms`);
      assert.ok(error instanceof TimeoutError && error instanceof Error);
      assert.throws(() => raise(error), expected.timeout(OFFSET));
      assert.equal(run.mock.callCount(), 0);
    }),
  );
}

test(
  'a timeout of zero or less is one try: false when the mutex is held',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    for (const timeout of ONE_TRY) {
      const blocking = await worker.call('timed', 'lock', timeout);
      assert.equal(blocking.value, false, named(timeout));
      assert.ok(isWithin(blocking.ms, 0), `${named(timeout)}: ${blocking.ms} ms`);
      const awaiting = await timed(() => mutex.lockAsync({ timeout }));
      assert.equal(awaiting.value, false, named(timeout));
      assert.ok(isWithin(awaiting.ms, 0), `${named(timeout)}: ${awaiting.ms} ms`);
    }
    assert.deepEqual(mutex.inspect().waiters, []);
  }),
);

test(
  'a timeout of zero or less is one try: true when the mutex is free',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    for (const timeout of ONE_TRY) {
      assert.deepEqual(await worker.run([['lock', timeout], ['unlock']]), [true, undefined], named(timeout));
      assert.equal(await mutex.lockAsync(timeout), true, named(timeout));
      mutex.unlock();
    }
  }),
);

test(
  'the verbs that throw on timeout try once for a timeout of zero',
  watched(async (t, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    assert.equal(await worker.call('acquire', { timeout: 0 }), 'a guard');
    await assert.rejects(mutex.acquireAsync({ timeout: 0 }), expected.timeout(OFFSET));
    const run = t.mock.fn();
    await assert.rejects(mutex.executeLocked(run, { timeout: 0 }), expected.timeout(OFFSET));
    assert.equal(run.mock.callCount(), 0);
    await worker.call('unlockGuard');
    assert.equal(await mutex.executeLocked(() => 'ran', { timeout: 0 }), 'ran');
    const guard = await mutex.acquireAsync({ timeout: -1 });
    await assert.rejects(worker.call('acquire', { timeout: -1 }), expected.timeout(OFFSET));
    guard.unlock();
  }),
);

test(
  'fractions of a millisecond count for lock()',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    for (const timeout of [0.9, 1.9]) {
      const tries = await worker.run(Array(30).fill(['timed', 'lock', timeout]));
      for (const { value, ms } of tries) {
        assert.equal(value, false);
        assert.ok(isWithin(ms, timeout), `lock(${timeout}) took ${ms} ms`);
      }
    }
  }),
);

test(
  'fractions of a millisecond count for lockAsync()',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    for (const timeout of [0.9, 1.9]) {
      for (let round = 0; round < 30; round++) {
        const { value, ms } = await timed(() => mutex.lockAsync(timeout));
        assert.equal(value, false);
        assert.ok(isWithin(ms, timeout), `lockAsync(${timeout}) took ${ms} ms`);
      }
    }
  }),
);

for (const timeout of FOR_EVER) {
  test(
    `a timeout of ${named(timeout)} waits for ever`,
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [patient, other] = await threads.puppets(2, buffer);
      mutex.tryLock();
      const waits = [patient.run([['lock', timeout], ['unlock']]).then(([isHeld]) => isHeld)];
      for (const argument of [timeout, { timeout }]) {
        waits.push(
          mutex.lockAsync(argument).then((isHeld) => {
            mutex.unlock();
            return isHeld;
          }),
        );
      }
      await threads.queued(mutex, 3);
      assert.equal(await other.call('lock', 20), false);
      assert.equal(await mutex.lockAsync(20), false);
      assert.equal(mutex.inspect().waiters.length, 3, 'shorter waits were over, these are not');
      mutex.unlock();
      assert.deepEqual(await Promise.all(waits), [true, true, true]);
    }),
  );
}

test(
  'options without a timeout wait for ever',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const waits = [mutex.lockAsync({}), mutex.lockAsync({ timeout: undefined })];
    assert.equal(await mutex.lockAsync(20), false);
    assert.equal(mutex.inspect().waiters.length, 2);
    for (const wait of waits) {
      mutex.unlock();
      assert.equal(await wait, true);
    }
    mutex.unlock();
  }),
);

test(
  'changing the options after the call does not move the deadline',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const options = { timeout: 20 };
    const pending = mutex.lockAsync(options);
    options.timeout = Infinity;
    assert.equal(await pending, false);
  }),
);

test(
  'a step of the wall clock does not move a deadline',
  watched(async (t) => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const now = Date.now();
    const clock = t.mock.method(Date, 'now', () => now);
    const early = timed(() => mutex.lockAsync(40));
    clock.mock.mockImplementation(() => now + 3_600_000);
    const late = timed(() => mutex.lockAsync(20));
    clock.mock.mockImplementation(() => now - 3_600_000);
    const [first, second] = await Promise.all([early, late]);
    assert.deepEqual([first.value, second.value], [false, false]);
    assert.ok(isWithin(first.ms, 40) && isWithin(second.ms, 20), `${first.ms} ms, ${second.ms} ms`);
  }),
);

test(
  'a deadline that passes while its loop is busy is a timeout, not a longer wait',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('lock');
    const pending = timed(() => mutex.lockAsync(10));
    const busyUntil = performance.now() + 60;
    while (performance.now() < busyUntil);
    const { value, ms } = await pending;
    assert.equal(value, false);
    assert.ok(isWithin(ms, 60), `${ms} ms`);
  }),
);

test(
  'a wait that loses race after race ends at its one deadline',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [patient, ...busy] = await threads.puppets(3, buffer);
    const spinning = busy.map((puppet) => puppet.call('holdAgainAndAgain', 0));
    const tries = await patient.run(Array(20).fill(['timedHold', 5]));
    threads.raise(0);
    await Promise.all(spinning);
    for (const { value, ms } of tries) {
      assert.ok(value || ms >= 5, `false after ${ms} ms`);
      assert.ok(ms < GENEROUS_MS, `${value} after ${ms} ms`);
    }
    assert.equal(mutex.isLocked, false);
  }),
);
