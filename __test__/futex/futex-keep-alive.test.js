const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runProgram } = require('../helpers/processes.js');

for (const [name, title, lines] of [
  ['notified', 'a pending waitAsync() keeps the process alive until it is notified, and no longer', ['ok', 'exit']],
  ['unreferenced', 'a pending waitAsync() with ref: false does not keep the process alive', ['exit']],
  ['mixed', 'one pending wait keeps the process alive beside others that do not', ['ok', 'exit']],
  ['timed-out', 'a wait that timed out keeps nothing alive', ['timed-out', 'exit']],
  ['aborted', 'a wait that was aborted keeps nothing alive', ['aborted', 'exit']],
  ['by itself', 'a wait that its own thread notified keeps nothing alive', ['ok', 'exit']],
]) {
  test(title, async () => {
    const { code, signal, stdout, stderr } = await runProgram('futex-keep-alive', [name]);
    assert.equal(stderr, '');
    assert.deepEqual({ code, signal, lines: stdout.trim().split('\n') }, { code: 0, signal: null, lines });
  });
}
