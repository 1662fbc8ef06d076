// At the end of the stack a verb fails, and leaves nothing behind.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { lossOf, setOuter } = require('../../lib/named/held-lock.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { startPeers } = require('../helpers/peers.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { SHORT_STACK, atEachDepth } = require('../helpers/stack.js');

/** Runs the program to its end. */
const run = async (t, ...args) => {
  const { code, signal, stdout, stderr } = await runProgram('names-stack-ends', args, { nodeArgs: SHORT_STACK });
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

for (const how of ['warned', 'repairing']) {
  for (const verb of [
    'acquire of a marked name',
    'acquire of names, one of them marked',
    'acquireAsync of a marked name',
    'requestSync of a marked name',
    'requestSync of names, one of them marked',
  ]) {
    test(`${verb}, ${how}: nothing is held when the stack ends inside it`, needs('stack ends', 'prompt ends'), (t) =>
      run(t, `${verb}, ${how}`),
    );
  }
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

test('a name that was lost outside is free in this process, though the stack ends while its holder learns of it', {
  timeout: limit(60_000),
  ...needs('stack ends'),
}, async () => {
  let lock;
  let lost;
  const held = {
    get lost() {
      return lost;
    },
    unlock: () => lost === null,
    onLost: null,
    abandoned: false,
  };
  await atEachDepth(
    () => lock.locked,
    async (at) => {
      lock = await locks.acquireAsync('lost');
      lost = null;
      setOuter(lock, held);
      lost = { reason: 'closed', heldMs: 1 };
      await at();
      assert.equal(lock.locked, false);
      assert.equal(lossOf(lock).code, 'ERR_LOCK_LOST');
      assert.equal(await locks.request('lost', { ifAvailable: true }, (other) => other !== null), true);
    },
  );
});
