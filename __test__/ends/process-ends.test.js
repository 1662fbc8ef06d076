const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createMutex } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { startRunning } = require('../helpers/running.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Generous: the aim is 100 ms, but this machine may be busy with something else. */
const END_MS = 5000;
const TERMINATE_MS = 2000;

for (const [ending, expectedCode] of [
  ['process.exit()', 3],
  ['an uncaught error', 1],
  ['an unhandled rejection', 1],
  ['an empty event loop', 0],
]) {
  test(`${ending} in main ends the process while workers are blocked in lock()`, async (t) => {
    const { code, signal, stdout } = await runProgram('end-with-blocked-workers', [ending]);
    assert.deepEqual({ code, signal }, { code: expectedCode, signal: null });
    const { endedAt, blocked } = JSON.parse(stdout);
    const ms = Date.now() - endedAt;
    assert.equal(blocked, 4);
    assert.ok(ms < END_MS, `${ms} ms`);
    t.diagnostic(`${ending}: ${ms} ms from the end of main to the end of the process`);
  });
}

test('process.exit() ends a process with waits of every kind pending everywhere', async () => {
  const { code, signal, stderr } = await runProgram('end-with-blocked-workers', ['process.exit()', 'waits everywhere']);
  assert.deepEqual({ code, signal, stderr }, { code: 3, signal: null, stderr: '' });
});

for (const [state, argument] of [
  ['without a timeout', undefined],
  ['with a timeout', 60_000],
]) {
  test(
    `terminate() of a worker blocked in lock() ${state} resolves promptly`,
    needs('termination when busy'),
    watched(async (t, threads) => {
      const { buffer, mutex } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      mutex.tryLock();
      worker.call('lock', argument);
      await threads.queued(mutex, 1);
      const { ran } = await startRunning(threads);
      const startedAt = ran();
      await worker.terminate();
      const ms = ran() - startedAt;
      assert.ok(ms < TERMINATE_MS, `${ms} ms`);
      assert.deepEqual(mutex.inspect().waiters, []);
      assert.equal(mutex.isHeldByThisThread, true);
      t.diagnostic(`terminate(): ${ms.toFixed(1)} ms`);
    }),
  );
}

test(
  'terminate() of many blocked workers ends them all promptly',
  needs('termination when busy'),
  watched(async (t, threads) => {
    const { buffer, mutex } = createMutex();
    const workers = await threads.puppets(12, buffer);
    mutex.tryLock();
    for (const worker of workers) worker.call('lock');
    await threads.queued(mutex, workers.length);
    const { ran } = await startRunning(threads);
    const startedAt = ran();
    await Promise.all(workers.map((worker) => worker.terminate()));
    const ms = ran() - startedAt;
    assert.ok(ms < 2 * TERMINATE_MS, `${ms} ms`);
    assert.deepEqual(mutex.inspect().waiters, []);
    t.diagnostic(`terminate() of ${workers.length}: ${ms.toFixed(1)} ms`);
  }),
);

test(
  'terminate() of a worker with a pending lockAsync() leaves the others in the queue',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [leaver, stayer] = await threads.puppets(2, buffer);
    mutex.tryLock();
    leaver.call('lockAsync');
    await threads.queued(mutex, 1);
    const served = stayer.call('lockAsync');
    await threads.queued(mutex, 2);
    await leaver.terminate();
    await threads.until('one is left', () => mutex.inspect().waiters.length === 1);
    mutex.unlock();
    assert.equal(await served, true);
  }),
);

test(
  'process.exit() in a worker with a pending lockAsync() ends that worker',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    mutex.tryLock();
    worker.call('lockAsync');
    await threads.queued(mutex, 1);
    worker.call('exit', 5);
    assert.equal((await worker.exited).code, 5);
    assert.deepEqual(mutex.inspect().waiters, []);
  }),
);
