// The core of what the package promises under test runners, which load modules in realms of their own, put fake clocks in the place
// of timers, and make a browser of the process: each sees what a plain program does.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { home, run, write } = require('../helpers/doctored-programs.js');
const { folderOf, withTool } = require('../helpers/runners.js');
const { expectTheSame } = require('../helpers/surrounded.js');

const CORE = path.join(__dirname, '..', 'programs', 'core-verbs.js');

/** A test that writes what it sees. `prepare` runs once the package is loaded. */
const testThat = (prepare = '') => `
  const fs = require('node:fs');
  const sablock = require('sablock');
  const { core } = require(${JSON.stringify(CORE)});
  test('core', async () => {
    ${prepare}
    const seen = await core(sablock, () => new AbortController());
    fs.writeFileSync(process.env.SEEN, seen.join('\\n'));
  }, 60_000);`;

const JEST_CLOCKS = {
  'its own timers': '',
  'its fake timers': 'jest.useFakeTimers();',
  'its legacy fake timers': 'jest.useFakeTimers({ legacyFakeTimers: true });',
};
const VITEST_CLOCKS = { 'its own timers': '', 'its fake timers': 'vi.useFakeTimers();' };

/** By title: the program of a runner, its arguments, and the test. */
const CASES = {};
for (const [clock, prepare] of Object.entries(JEST_CLOCKS)) {
  for (const environment of ['node', 'jsdom']) {
    CASES[`Jest, ${environment}, ${clock}`] = {
      tool: 'jest',
      program: 'bin/jest.js',
      args: ['--env', folderOf(`jest-environment-${environment}`), '--rootDir', home],
      source: testThat(prepare),
    };
  }
}
for (const [clock, prepare] of Object.entries(VITEST_CLOCKS)) {
  for (const pool of ['threads', 'forks', 'vmThreads']) {
    CASES[`Vitest, ${pool}, ${clock}`] = {
      tool: 'vitest',
      program: 'vitest.mjs',
      args: ['run', '--globals', '--pool', pool, '--root', home],
      source: testThat(prepare),
    };
  }
}

write('jest.config.js', 'module.exports = {};');

for (const [index, [title, { tool, program, args, source }]] of Object.entries(CASES).entries()) {
  const folder = folderOf(tool);
  test(`${title}: each verb comes to the same`, withTool(folder), async () => {
    const seen = path.join(home, `seen-${index}.txt`);
    const file = write(`core-${index}.test.js`, source);
    const env = { SEEN: seen, CI: '1' };
    const { stdout, stderr } = await run([path.join(folder, program), ...args, file], { env });
    assert.ok(fs.existsSync(seen), `${stdout}\n${stderr}`);
    await expectTheSame(fs.readFileSync(seen, 'utf8').split('\n'));
  });
}
