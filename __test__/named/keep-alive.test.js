// A request that is pending keeps a process alive, unless it says otherwise. A hold does not.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runProgram } = require('../helpers/processes.js');

const linesOf = async (...args) => {
  const { code, signal, stdout, stderr } = await runProgram('keep-alive-names', args);
  assert.equal(stderr, '');
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stdout);
  return stdout.trim().split('\n');
};

for (const verb of ['request', 'acquireAsync']) {
  test(`a pending ${verb}() keeps the process alive until it is granted, and no longer`, async () => {
    assert.deepEqual(await linesOf(verb, 'true'), ['waiting', 'granted', 'exit']);
  });

  test(`a pending ${verb}() with ref: false does not keep the process alive`, async () => {
    assert.deepEqual(await linesOf(verb, 'false'), ['waiting', 'exit']);
  });
}

test('a lock that is held does not keep the process alive', async () => {
  assert.deepEqual(await linesOf('hold'), ['held', 'exit']);
});
