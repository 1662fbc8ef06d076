// The option `ref` of waits that have several steps: it holds in the last of them too.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { holdIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { runProgram } = require('../helpers/processes.js');
const { CASES } = require('../programs/keep-alive-steps.js');

const LAST = 'then the last';

for (const name of CASES) {
  const isElsewhere = name.endsWith('elsewhere');
  for (const ref of [true, false]) {
    test(`${name}: the last step ${ref ? 'keeps' : 'with ref: false does not keep'} the process alive`, async (t) => {
      const { directory, peers } = await startPeers(t, isElsewhere ? 1 : 0);
      if (isElsewhere) await holdIn(peers[0], LAST);
      let isTold = false;
      const { code, signal, stdout, stderr } = await runProgram('keep-alive-steps', [name, String(ref), directory], {
        most: 15_000,
        onOutput(text) {
          if (!ref || !isElsewhere || isTold || !text.includes('waiting')) return;
          isTold = true;
          setTimeout(unlockIn, 200, peers[0]);
        },
      });
      assert.equal(stderr, '');
      assert.deepEqual({ code, signal }, { code: 0, signal: null }, stdout);
      assert.deepEqual(stdout.trim().split('\n'), ref ? ['waiting', 'granted', 'exit'] : ['waiting', 'exit']);
    });
  }
}
