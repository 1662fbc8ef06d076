// The core of what the package promises under test runners, which load modules in realms of their own, put fake clocks in the place
// of timers, and make a browser of the process: each sees what a plain program does.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');
const { home, write } = require('../helpers/doctored-programs.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const PROGRAMS = path.join(__dirname, '..', 'programs');
const runners = createRequire(path.join(__dirname, '..', 'runners', 'package.json'));

/** The file of a package that `npm run test:runners` installs, which is not for everybody; undefined without it. */
function fileOf(name, file = 'package.json') {
  try {
    return path.join(path.dirname(runners.resolve(`${name}/package.json`)), file);
  } catch {
    return undefined;
  }
}

/** A test that writes what it sees. `prepare` runs once the package is loaded. */
const testThat = (prepare = '') => `
  const fs = require('node:fs');
  const sablock = require('sablock');
  const { core } = require(${JSON.stringify(path.join(PROGRAMS, 'core-verbs.js'))});
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
      // jsdom has an abort controller of its own, and none of its signals is one of Node.js.
      args: ['--env', fileOf(`jest-environment-${environment}`, '') ?? environment, '--rootDir', home],
      source: testThat(prepare),
      differs: environment === 'jsdom' ? /: aborted: / : undefined,
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

let plain;
const seenWithout = () => {
  plain ??= promisify(execFile)(process.execPath, [path.join(PROGRAMS, 'surrounded.js'), 'nothing']).then(
    ({ stdout }) => stdout.trimEnd().split('\n'),
  );
  return plain;
};

for (const [index, [title, { tool, program, args, source, differs }]] of Object.entries(CASES).entries()) {
  const file = fileOf(tool, program);
  test(`${title}: each verb comes to the same`, {
    ...needs('preloading'),
    ...(file === undefined && { skip: 'npm run test:runners installs it' }),
    timeout: limit(120_000),
  }, async () => {
    const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...env } = process.env;
    const seen = path.join(home, `seen-${index}.txt`);
    const name = write(`core-${index}.test.js`, source);
    const ran = await promisify(execFile)(process.execPath, [file, ...args, name], {
      cwd: home,
      env: { ...env, SEEN: seen, CI: '1' },
    }).catch((error) => error);
    assert.ok(fs.existsSync(seen), `${ran.stdout}\n${ran.stderr}`);
    const same = (line) => differs === undefined || !differs.test(line);
    const lines = fs.readFileSync(seen, 'utf8').split('\n');
    assert.deepEqual(lines.filter(same), (await seenWithout()).filter(same));
    assert.ok(lines.length > 80);
  });
}
