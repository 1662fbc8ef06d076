const assert = require('node:assert/strict');
const { test } = require('node:test');
const { notify, waitAsync } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { endings } = require('../helpers/endings.js');
const { startRunning } = require('../helpers/running.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const createArray = () => new Int32Array(new SharedArrayBuffer(16));
const startWaiter = (threads) => threads.start('waiter', { face: 'sablock' });
const inLine = (threads, array, count) => threads.until(`${count} wait`, () => binding.waiting(array, 0) === count);

for (const { name, end } of endings.filter(({ name }) => name !== 'its resource limits')) {
  test(
    `a thread with a pending wait that ends by ${name} leaves the line, and the next one is notified`,
    watched(async (_, threads) => {
      const array = createArray();
      const leaver = startWaiter(threads);
      assert.equal(await leaver.call('beginToWait', array, 0, 0, undefined, { ref: false }), true);
      const next = waitAsync(array, 0, 0).value;
      await end(leaver);
      await inLine(threads, array, 1);
      assert.equal(notify(array, 0, 1), 1);
      assert.equal(await next, 'ok');
    }),
  );
}

test(
  'terminate() ends a blocked wait soon, and the thread leaves the line',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const array = createArray();
    const leaver = startWaiter(threads);
    leaver.call('wait', array, 0, 0);
    await inLine(threads, array, 1);
    const { ran } = await startRunning(threads);
    const startedAt = ran();
    await leaver.terminate();
    const ms = ran() - startedAt;
    assert.ok(ms < 2000, `${ms} ms`);
    assert.equal(notify(array, 0), 0);
  }),
);

test(
  'a notification for a thread whose code never learns of it goes to the next in line',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const array = createArray();
    const doomed = startWaiter(threads);
    // It is notified while it is busy, and ended before its loop turns.
    await doomed.run([
      ['beginToWait', array, 0, 0],
      ['beginToWait', array, 0, 0],
    ]);
    doomed.call('spinUntil', 0);
    const next = waitAsync(array, 0, 0).value;
    assert.equal(notify(array, 0, 1), 1);
    await doomed.terminate();
    assert.equal(await next, 'ok');
    assert.equal(notify(array, 0), 0);
  }),
);

test(
  'a notification for a blocked thread that is being terminated goes to the next in line',
  needs('termination when busy'),
  watched(async (_, threads) => {
    for (let round = 0; round < 10; round++) {
      const array = createArray();
      const doomed = startWaiter(threads);
      doomed.call('wait', array, 0, 0);
      await inLine(threads, array, 1);
      const next = waitAsync(array, 0, 0).value;
      const ended = doomed.terminate();
      assert.equal(notify(array, 0, 1), 1);
      await ended;
      assert.equal(notify(array, 0), 0, 'nobody is left in line');
      assert.equal(await next, 'ok');
    }
  }),
);

test(
  'a notification at the moment of which its thread is terminated wakes either that thread or the next in line',
  needs('termination when busy'),
  watched(async (t, threads) => {
    const ROUNDS = 20;
    let doubts = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const array = createArray();
      const log = createArray();
      const leaver = startWaiter(threads);
      leaver.call('waitAndNote', array, 0, log, 1);
      await inLine(threads, array, 1);
      const next = waitAsync(array, 0, 0).value;
      assert.equal(notify(array, 0, 1), 1);
      for (let pause = round * 2000; pause > 0; pause--) Math.sqrt(pause);
      await leaver.terminate();
      const wokeLeaver = log[0] === 1;
      const wokeNext = notify(array, 0) === 0;
      assert.ok(!(wokeLeaver && wokeNext), 'one notification woke two');
      // V8 may end a thread between the return of wait() and the next line of its code.
      if (!wokeLeaver && !wokeNext) doubts += 1;
      assert.equal(await next, 'ok');
    }
    t.diagnostic(`${doubts} ended between the two`);
    assert.ok(doubts <= ROUNDS / 4, `${doubts} notifications were lost`);
  }),
);

test(
  'process.exit() of a process whose workers are blocked in wait() ends it',
  needs('short slices'),
  watched(async () => {
    const { runProgram } = require('../helpers/processes.js');
    const { code, signal, stdout } = await runProgram('exit-with-blocked-waits');
    assert.deepEqual({ code, signal, stdout: stdout.trim() }, { code: 3, signal: null, stdout: 'all wait' });
  }),
);
