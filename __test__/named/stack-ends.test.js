// At the end of the stack a verb fails, and leaves nothing behind.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { startPeers } = require('../helpers/peers.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

/** Runs the program to its end. */
const run = async (t, ...args) => {
  const { code, signal, stdout, stderr } = await runProgram('names-stack-ends', args);
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
  const { called, failed } = JSON.parse(stdout);
  assert.ok(failed > 0 && failed < called, `${failed} of ${called} failed`);
  t.diagnostic(`${failed} of ${called} calls failed`);
};

for (const verb of [
  'request',
  'request with a signal',
  'request that waits',
  'request that waits, with a time limit',
  'request that steals',
  'acquireAsync',
  'acquire',
  'requestSync',
  'requestSync for which somebody waits',
]) {
  test(`${verb}: nothing is held or waited for when the stack ends inside it`, needs('stack ends'), (t) =>
    run(t, verb),
  );
}

for (const verb of ['request', 'request with a signal', 'acquireAsync', 'acquire', 'requestSync']) {
  test(
    `${verb}, of the machine: nothing is held in this process, nor outside, when the stack ends inside it`,
    needs('stack ends'),
    async (t) => {
      await run(t, verb, createFolder(t));
    },
  );
}

test('a file that is granted to a wait of which its thread does not know, since the stack ended there, is free again', {
  timeout: limit(60_000),
}, async (t) => {
  const { directory, peers, manager } = await startPeers(t, 1);
  const lockElsewhere = (name) =>
    peers[0].do(async (here, name) => {
      here.lock = await here.manager.acquireAsync(name);
    }, name);
  const unlockElsewhere = () => peers[0].do((here) => here.lock.unlock());
  await lockElsewhere('name');
  thread.add = () => {
    delete thread.add;
    throw new RangeError('Maximum call stack size exceeded');
  };
  await assert.rejects(manager.acquireAsync('name'), RangeError);
  await unlockElsewhere();
  assert.equal(await manager.request('name', ({ abandoned }) => abandoned), false);
  const other = new LockManager({ directory });
  assert.equal(await other.request('name', ({ abandoned }) => abandoned), false);
  await lockElsewhere('name');
});
