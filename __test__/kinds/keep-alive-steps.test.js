// The option `ref` of waits that have several steps: it holds in the last of them too.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { startPeers } = require('../helpers/peers.js');
const { runProgram } = require('../helpers/processes.js');
const { CASES, lastOf } = require('../programs/keep-alive-steps.js');

const ELSEWHERE = CASES.filter((name) => name.endsWith('elsewhere'));

/** Runs these cases in one process, and returns the lines that it prints. `onAwaited` gets each name of another process that is waited for. */
const run = async (ref, directory, names, onAwaited = () => {}) => {
  const awaited = new Set(ELSEWHERE);
  const { code, signal, stdout, stderr } = await runProgram('keep-alive-steps', [String(ref), directory, ...names], {
    onOutput(text) {
      for (const name of awaited) {
        if (text.includes(`${name}: waiting`) && awaited.delete(name)) onAwaited(lastOf(name));
      }
    },
  });
  assert.equal(stderr, '');
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stdout);
  return stdout.trim().split('\n');
};

/** A directory, and a process that holds the last name of each case there. */
const holdElsewhere = async (t) => {
  const { directory, peers } = await startPeers(t, 1);
  const hold = async (here, names) => {
    here.held = new Map();
    for (const name of names) here.held.set(name, await here.manager.acquireAsync(name));
  };
  await peers[0].do(hold, ELSEWHERE.map(lastOf));
  const unlock = (name) => peers[0].do((here, last) => here.held.get(last).unlock(), name);
  return { directory, unlock };
};

test('the last step of every wait keeps the process alive', async (t) => {
  const { directory, unlock } = await holdElsewhere(t);
  const lines = await run(true, directory, CASES, (name) => setTimeout(unlock, 200, name));
  assert.deepEqual(lines, [...CASES.flatMap((name) => [`${name}: waiting`, `${name}: granted`]), 'exit']);
});

test('with ref: false the last step of no wait keeps the process alive', async (t) => {
  const { directory } = await holdElsewhere(t);
  for (const name of CASES) {
    assert.deepEqual(await run(false, directory, [name]), [`${name}: waiting`, 'exit']);
  }
});
