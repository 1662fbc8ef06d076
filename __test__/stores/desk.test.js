// The binding's part of stores, by itself: this thread asks, and is its own lock worker.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { binding } = require('../../lib/engine/thread.js');
const { needs } = require('../helpers/runtime.js');

const { Exclusive } = binding.NameMode;
/** A grant that says nothing. */
const GRANT = { lease: 0, fence: 0n, abandoned: false, text: '' };

/** Kinds of tasks. */
const CANCEL = 1;
const RELEASE = 2;

test('what is granted by a lease that has ended meanwhile is lost at the first look', () => {
  const desk = binding.openDesk(false);
  binding.serveDesk(desk);
  const ask = () => {
    const question = { desk, store: 1, verb: 1, name: 'name', mode: Exclusive, flags: 0, payload: '' };
    assert.equal(binding.askStore(question, Infinity), binding.PENDING);
    return binding.nextTask(desk).number;
  };
  const [kept, ended, endless] = [ask(), ask(), ask()];
  const leases = [kept, ended].map(() => binding.beginLease(binding.leaseTime() + 60_000));
  binding.endLease(desk, leases[1], 0);
  for (const [number, lease] of [
    [kept, leases[0]],
    [ended, leases[1]],
    [endless, 0],
  ]) {
    assert.equal(binding.answerTask(desk, number, { ...GRANT, lease }), true);
    assert.equal(binding.next(), binding.GRANTED);
  }
  assert.deepEqual(
    [kept, ended, endless].map((number) => binding.lookAtHeld(number) === binding.GRANTED),
    [true, false, true],
  );
  for (const number of [kept, ended, endless]) binding.releaseHeld(number, false);
  binding.endDesk(desk, '{}');
});

test('what is granted to a blocked thread whose end has begun passes on unmarked', {
  ...needs('termination when busy'),
  timeout: 60_000,
}, async () => {
  const source = `
      const { workerData } = require('node:worker_threads');
      const { binding } = require(workerData.thread);
      const { Exclusive: mode } = binding.NameMode;
      const { desk } = workerData;
      const question = { desk, store: 1, verb: 1, name: 'name', mode, flags: 0, payload: '' };
      binding.askStoreBlocking(question, Infinity);
      for (;;) Atomics.add(workerData.returned, 0, 1);`;
  for (let round = 0; round < 10; round += 1) {
    const desk = binding.openDesk(false);
    binding.serveDesk(desk);
    const returned = new Int32Array(new SharedArrayBuffer(4));
    const thread = require.resolve('../../lib/engine/thread.js');
    const worker = new Worker(source, { eval: true, workerData: { desk, thread, returned } });
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    let task = null;
    for (; task === null; task = binding.nextTask(desk)) await nextTurn();
    // Long enough for it to block, in most rounds.
    await new Promise((resolve) => setTimeout(resolve, 5 * round));
    worker.terminate();
    const isTaken = binding.answerTask(desk, task.number, GRANT);
    await exited;
    assert.equal(returned[0], 0, 'its code went on');
    const last = binding.nextTask(desk);
    assert.deepEqual([last.kind, last.number], [isTaken ? RELEASE : CANCEL, task.number]);
    binding.endDesk(desk, '{}');
  }
});

/** As much as a machine may have slept. */
const SLEPT_SECONDS = 1_000_000;

test('the clock of leases counts the time in which the machine slept', {
  skip: (process.versions.bun ?? process.versions.deno) !== undefined && 'it starts a program of Node.js',
}, (t) => {
  // In a time namespace that clock alone is ahead, as after a sleep.
  const asleep = ['--time', '--boottime', String(SLEPT_SECONDS), process.execPath];
  if (spawnSync('unshare', [...asleep, '--version']).status !== 0)
    return t.skip('there are no time namespaces for this user');
  const source = `const { leaseTime } = require(${JSON.stringify(require.resolve('../../lib/load/binary.js'))}); console.log(leaseTime());`;
  const before = binding.leaseTime();
  const { stdout } = spawnSync('unshare', [...asleep, '-e', source], { encoding: 'utf8' });
  const ahead = Number(stdout) - before;
  assert.ok(ahead >= SLEPT_SECONDS * 1000 && ahead < SLEPT_SECONDS * 1000 + 60_000, `${ahead} ms`);
});
