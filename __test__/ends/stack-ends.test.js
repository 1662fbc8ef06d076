// A verb may throw a RangeError anywhere where the stack of JS ends; but then it holds nothing.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { SHORT_STACK } = require('../helpers/stack.js');

const VERBS = [
  'tryLock',
  'lock',
  'tryAcquire',
  'acquire',
  'executeLockedSync',
  'executeLockedSync for which somebody waits',
  'executeLocked',
  'acquireAsync',
  'lockAsync',
  'lockAsync with options',
  'acquireAsync with a signal',
  'lock of a table',
  'lockAsync of a table',
  'executeLockedSync of a table',
  'lockAll',
  'lockAll of a lock named twice',
  'lockAllAsync',
  'lockAllAsync with a signal',
  'lockAll with one to read',
  'lockAllAsync with one to write',
];

const STATES = ['free', 'abandoned', 'abandoned, with onAbandoned'];

for (const verb of VERBS) {
  test(`${verb} of a mutex, be it free or abandoned, holds nothing when the stack ends inside it`, async (t) => {
    const { code, signal, stdout, stderr } = await runProgram('stack-ends', [verb], { nodeArgs: SHORT_STACK });
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
    const results = JSON.parse(stdout);
    assert.deepEqual(Object.keys(results), STATES);
    for (const [state, { called, failed, leaked }] of Object.entries(results)) {
      assert.ok(failed > 0 && failed < called, `${state}: ${failed} of ${called} failed`);
      assert.equal(leaked, 0, state);
      t.diagnostic(`${state}: ${failed} of ${called} calls failed`);
    }
  });
}

test('enter() holds nothing when the stack ends inside it, and its callback runs when it does not', {
  ...needs('stack ends'),
}, async () => {
  const { code, signal, stdout, stderr } = await runProgram('enter-stack-ends', [], { nodeArgs: SHORT_STACK });
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
  const { called, failed, leaked, silent } = JSON.parse(stdout);
  assert.ok(failed > 0 && failed < called, `${failed} of ${called} failed`);
  assert.deepEqual({ leaked, silent }, { leaked: 0, silent: 0 });
});

test('a patched then() for which the stack is too short is no uncaught error of a call that is out of time', {
  ...needs('stack ends'),
}, async () => {
  const { code, signal, stdout, stderr } = await runProgram('deep-then', [], { nodeArgs: SHORT_STACK });
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
  const { rejected, uncaught } = JSON.parse(stdout);
  assert.ok(rejected > 0);
  assert.equal(uncaught, 0);
});

test('no verb that runs a function keeps what it holds where the stack ends and V8 has just deoptimized it', {
  ...needs("V8's flags"),
}, async () => {
  const nodeArgs = ['--allow-natives-syntax', '--stack-size=80'];
  const { code, signal, stdout, stderr } = await runProgram('deoptimized', [], { nodeArgs });
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
  for (const [verb, { called, failed, leaked }] of Object.entries(JSON.parse(stdout))) {
    assert.ok(failed > 0 && failed < called, `${failed} of ${called} failed`);
    assert.equal(leaked, 0, verb);
  }
});
