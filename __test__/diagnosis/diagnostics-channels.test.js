const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { threadId } = require('node:worker_threads');
const { Condition, Mutex } = require('../..');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const clock = require('../../lib/load/clock.js');

const CONTENDED = 'sablock:contended';
const LONG_HOLD = 'sablock:long-hold';
const terminate = endings.find(({ name }) => name === 'terminate()');

/** Compares all but the time, which it checks against bounds. */
const checkContended = (message, expected, [least, most]) => {
  const { waitedMs, ...rest } = message;
  assert.deepEqual(rest, { byteOffset: OFFSET, ...expected });
  assert.ok(waitedMs >= least && waitedMs <= most, `${least} <= ${waitedMs} <= ${most}`);
};

for (const verb of ['lock', 'acquire']) {
  for (const isFirst of [true, false]) {
    test(
      `a blocking ${verb}() that had to wait is published with holder and time, subscribed ${isFirst ? 'before' : 'after'} the first wait`,
      watched(async (_, threads) => {
        const { buffer, mutex, holder } = await createHeld(threads);
        const [worker] = await threads.puppets(1, buffer);
        if (!isFirst) await worker.call('lock', 1);
        await worker.call('listen', CONTENDED);
        const startedAt = performance.now();
        const waiting = worker.call(verb);
        await threads.queued(mutex, 1);
        const [{ waitedMs }] = mutex.inspect().waiters;
        await holder.call('unlock');
        await waiting;
        const messages = await worker.call('heard', CONTENDED);
        assert.equal(messages.length, 1);
        const bounds = [waitedMs, performance.now() - startedAt];
        checkContended(messages[0], { kind: 'blocking', ownerThreadId: holder.threadId, outcome: 'acquired' }, bounds);
      }),
    );
  }
}

test(
  'a blocking wait whose time is over is published as timed out',
  watched(async (_, threads) => {
    const { buffer, holder } = await createHeld(threads);
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('listen', CONTENDED);
    const startedAt = performance.now();
    assert.equal(await worker.call('lock', 20), false);
    const messages = await worker.call('heard', CONTENDED);
    assert.equal(messages.length, 1);
    const expected = { kind: 'blocking', ownerThreadId: holder.threadId, outcome: 'timed-out' };
    checkContended(messages[0], expected, [20, performance.now() - startedAt]);
  }),
);

test(
  'pending promises are published however they end, each once',
  watched(async (t, threads) => {
    const messages = listen(t, CONTENDED);
    const { mutex, holder } = await createHeld(threads);
    const controller = new AbortController();
    const startedAt = performance.now();
    const aborted = mutex.lockAsync({ signal: controller.signal });
    controller.abort();
    await assert.rejects(aborted);
    const calledAt = performance.now();
    const timedOut = mutex.lockAsync(20);
    // The time of a message begins somewhere inside the call.
    const leastTimedOut = 20 - (performance.now() - calledAt);
    assert.equal(await timedOut, false);
    const acquired = mutex.lockAsync();
    const queuedAt = performance.now();
    await sleep(5);
    const leastAcquired = performance.now() - queuedAt;
    await holder.call('unlock');
    assert.equal(await acquired, true);
    const most = performance.now() - startedAt;
    const expected = { kind: 'async', ownerThreadId: holder.threadId };
    assert.equal(messages.length, 3);
    checkContended(messages[0], { ...expected, outcome: 'aborted' }, [0, most]);
    checkContended(messages[1], { ...expected, outcome: 'timed-out' }, [leastTimedOut, most]);
    checkContended(messages[2], { ...expected, outcome: 'acquired' }, [leastAcquired, most]);
    mutex.unlock();
  }),
);

test(
  'the mutex is held when its acquisition is published, and executeLocked() and guards publish too',
  watched(async (t, threads) => {
    const { mutex, holder } = await createHeld(threads);
    const { subscribe, unsubscribe } = require('node:diagnostics_channel');
    const held = [];
    const note = (message) => held.push(message.mutex === mutex && message.mutex.isHeldByThisThread);
    subscribe(CONTENDED, note);
    t.after(() => unsubscribe(CONTENDED, note));
    const run = mutex.executeLocked(() => 'ran');
    const guard = mutex.acquireAsync();
    await holder.call('unlock');
    assert.equal(await run, 'ran');
    (await guard).unlock();
    assert.deepEqual(held, [true, true]);
  }),
);

for (const verb of ['waitFor', 'waitForAsync']) {
  test(
    `locking again after a condition's ${verb}() is published with the time of that alone`,
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      const condition = new Condition(buffer, OFFSET + 4);
      await worker.call('listen', CONTENDED);
      await worker.call('lock');
      const waiting = worker.call(verb, OFFSET + 4);
      await threads.until('the condition is waited for', () => !mutex.isLocked);
      await sleep(50);
      assert.equal(mutex.tryLock(), true);
      const startedAt = performance.now();
      condition.notifyOne();
      await threads.queued(mutex, 1);
      mutex.unlock();
      assert.equal(await waiting, true);
      const ms = performance.now() - startedAt;
      const messages = await worker.call('heard', CONTENDED);
      assert.equal(messages.length, 1);
      const kind = verb === 'waitFor' ? 'blocking' : 'async';
      checkContended(messages[0], { kind, ownerThreadId: threadId, outcome: 'acquired' }, [0, ms]);
    }),
  );
}

test(
  'what need not wait is not published: free, tried in vain, marked as abandoned',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = [...[CONTENDED, LONG_HOLD].map((channel) => listen(t, channel))];
    const { mutex, holder } = await createHeld(threads);
    assert.equal(mutex.tryLock(), false);
    assert.equal(await mutex.lockAsync(0), false);
    await terminate.end(holder);
    for (const lock of [() => mutex.lockAsync(), () => mutex.lockAsync(50), () => mutex.tryLock()]) {
      assert.equal(await lock(), true);
      mutex.unlock();
    }
    const blocking = new Mutex(mutex.buffer, OFFSET, { allowMainThread: true });
    assert.equal(blocking.lock(), true);
    blocking.unlock();
    assert.deepEqual(messages, [[], []]);
  }),
);

for (const verb of ['lock', 'lockAsync']) {
  test(
    `a hold that lasts is published in a thread that waits in ${verb}(), again and again, and names its holder`,
    watched(async (_, threads) => {
      const { buffer } = createMutex();
      const [holder, worker] = await threads.puppets(2, buffer);
      await worker.call('listen', LONG_HOLD, 0);
      const startedAt = performance.now();
      await holder.call('lock');
      const waiting = worker.call(verb);
      await threads.raised(1);
      await holder.call('unlock');
      await waiting;
      const ms = performance.now() - startedAt;
      const messages = await worker.call('heard', LONG_HOLD);
      let least = 100;
      for (const { heldAtLeastMs, ...rest } of messages) {
        assert.deepEqual(rest, { byteOffset: OFFSET, ownerThreadId: holder.threadId });
        assert.ok(heldAtLeastMs >= least && heldAtLeastMs <= ms, JSON.stringify(messages));
        least *= 2;
      }
    }),
  );
}

test(
  'many short holds are no long one, however long somebody waits behind them',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('listen', LONG_HOLD);
    let longest = 0;
    const hold = async () => {
      const since = performance.now();
      await sleep(30);
      mutex.unlock();
      longest = Math.max(longest, performance.now() - since);
    };
    mutex.tryLock();
    const holds = Array.from({ length: 8 }, () => mutex.lockAsync().then(hold));
    const waiting = worker.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 9);
    await hold();
    await Promise.all([...holds, waiting]);
    for (const { heldAtLeastMs } of await worker.call('heard', LONG_HOLD)) {
      assert.ok(heldAtLeastMs <= longest + 1, `${heldAtLeastMs} ms published, ${longest} ms held`);
    }
  }),
);

test(
  'nothing is left of watching holds once the waits are over',
  needs('mocked timers'),
  watched(async (t) => {
    listen(t, LONG_HOLD);
    const { mutex } = createMutex();
    mutex.tryLock();
    const waits = [mutex.lockAsync(), mutex.lockAsync(), mutex.lockAsync(1)];
    const { clearInterval: original } = clock;
    const cleared = [];
    t.mock.method(clock, 'clearInterval', (timer) => {
      cleared.push(timer);
      return original(timer);
    });
    assert.equal(await waits[2], false);
    assert.equal(cleared.length, 0, 'two are still waiting');
    mutex.unlock();
    await waits[0];
    mutex.unlock();
    await waits[1];
    mutex.unlock();
    assert.equal(cleared.length, 1);
  }),
);

test(
  'the acquisition of an abandoned mutex is published with the thread that ended',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, 'sablock:abandoned');
    const { mutex, holder } = await createHeld(threads);
    await terminate.end(holder);
    for (let count = 0; count < 2; count++) {
      mutex.tryLock();
      mutex.unlock();
    }
    assert.deepEqual(messages, [{ byteOffset: OFFSET, ownerThreadId: holder.threadId, mode: 'exclusive' }]);
  }),
);

test(
  'a deadlock is published with its cycle, in the thread that gets the error',
  watched(async (t, threads) => {
    const messages = listen(t, 'sablock:deadlock');
    const { buffer, mutex } = createMutex({ allowMainThread: true });
    const other = new Mutex(buffer, OFFSET + 4);
    const [worker] = await threads.puppets(1, buffer);
    other.tryLock();
    const { error, waiting } = await threads.closeCircle(
      other,
      () =>
        worker.run([
          ['listen', 'sablock:deadlock'],
          ['lockInside', OFFSET + 4],
        ]),
      async () => mutex.lock(),
      async () => mutex.unlock(),
    );
    assert.equal(error.code, 'ERR_LOCK_DEADLOCK');
    assert.deepEqual(messages, [{ byteOffset: OFFSET, cycle: error.cycle }]);
    assert.deepEqual(error.cycle, [
      { threadId, byteOffset: OFFSET },
      { threadId: worker.threadId, byteOffset: OFFSET + 4 },
    ]);
    other.unlock();
    await waiting;
    assert.deepEqual(await worker.call('heard', 'sablock:deadlock'), []);
  }),
);

test(
  'without subscribers no clock is read and no timer started, with one it is',
  needs('mocked timers'),
  watched(async (t) => {
    const { mutex } = createMutex({ allowMainThread: true });
    const now = t.mock.method(clock, 'now');
    const start = t.mock.method(clock, 'setInterval');
    const wait = async () => {
      mutex.tryLock();
      assert.equal(mutex.lock(30), false);
      assert.equal(await mutex.lockAsync(1), false);
      const pending = mutex.lockAsync();
      mutex.unlock();
      await pending;
      mutex.unlock();
      return [now.mock.callCount() > 0, start.mock.callCount() > 0];
    };
    assert.deepEqual(await wait(), [false, false]);
    listen(t, CONTENDED);
    assert.deepEqual(await wait(), [true, false]);
    listen(t, LONG_HOLD);
    assert.deepEqual(await wait(), [true, true]);
  }),
);

test('a subscriber that throws is an uncaught error, and every lock is as it should be', async () => {
  const { code, stdout, stderr } = await runProgram('throwing-subscriber');
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), {
    blocked: false,
    awaited: true,
    aborted: 'AbortError',
    abandoned: true,
    deadlock: 'ERR_LOCK_DEADLOCK',
    isLocked: false,
    uncaught: ['sablock:abandoned', 'sablock:contended', 'sablock:deadlock', 'sablock:long-hold'],
  });
});

test('what is for diagnosis is not loaded before somebody waits', async () => {
  const { code, stdout, stderr } = await runProgram('loads-diagnosis');
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { builtins: [], before: false, after: true });
});
