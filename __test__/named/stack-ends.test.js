// At the end of the stack a verb fails, and leaves nothing behind.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

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
  test(`${verb}: nothing is held or waited for when the stack ends inside it`, needs('stack ends'), async (t) => {
    const { code, signal, stdout, stderr } = await runProgram('names-stack-ends', [verb]);
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
    const { called, failed } = JSON.parse(stdout);
    assert.ok(failed > 0 && failed < called, `${failed} of ${called} failed`);
    t.diagnostic(`${failed} of ${called} calls failed`);
  });
}
