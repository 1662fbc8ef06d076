// JS may be interrupted anywhere, also in the middle of this package's functions.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

for (const interruption of ['timeout', 'overflow']) {
  for (const verb of ['lockAsync', 'unlock']) {
    // Elsewhere nobody but its caller can know that a promise, returned or about to be, was lost, and with it the lock.
    const needed = interruption === 'timeout' && verb === 'lockAsync' ? needs('interruptions at calls') : {};
    test(
      `${verb}() interrupted by a ${interruption} leaves a mutex that works, and no wait behind`,
      needed,
      async (t) => {
        // V8's optimiser would leave hardly any place at which a timeout can come.
        const nodeArgs = process.versions.bun || process.versions.deno ? [] : ['--no-opt'];
        const { code, signal, stdout, stderr } = await runProgram('interrupted', [interruption, verb], { nodeArgs });
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr);
        const { granted, answered, failed, lost, interrupted } = JSON.parse(stdout);
        assert.equal(granted + failed, answered);
        assert.ok(interrupted > 0);
        t.diagnostic(`${interrupted} interruptions, ${granted} granted, ${lost} lost by their callers`);
      },
    );
  }
}
