// npm run test:js-mutants -- FILE TEST ...: Stryker changes a file of `lib`, one place at a time, and runs these test files with
// each change, on Node.js 22. What survives is shown: a gap in the tests, or a change that nobody can see.
//
//   npm run test:js-mutants -- lib/primitives/event.js __test__/events/events.test.js

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { RUNTIMES, install } = require('./runtimes.js');

const root = path.join(__dirname, '..');
const TOOLS = path.join(root, 'target', 'stryker');
const STRYKER = '@stryker-mutator/core';
const VERSION = '^9.6.1';
/** For all test files. */
const ONE_PROCESS = '--experimental-test-isolation=none';
/** Not copied for each run. */
const UNUSED = ['target', 'bench', 'demo', 'docs', 'examples', 'model', 'src', 'tests', 'torture'];

function npm(...args) {
  const { status } = spawnSync('npm', args, { cwd: TOOLS, stdio: 'ignore', shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}`);
}

function main([file, ...tests]) {
  if (file === undefined || tests.length === 0) throw new Error('Name a file of lib, and the test files that watch it');
  fs.mkdirSync(TOOLS, { recursive: true });
  npm(
    'install',
    '--no-save',
    '--no-package-lock',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--prefix',
    TOOLS,
    `${STRYKER}@${VERSION}`,
  );
  const node = install(RUNTIMES.find(({ name }) => name === 'node22'));
  const config = path.join(TOOLS, 'stryker.json');
  const options = {
    mutate: [file],
    testRunner: 'command',
    commandRunner: { command: `"${node}" ${ONE_PROCESS} --test ${tests.join(' ')}` },
    ignorePatterns: UNUSED,
    tempDirName: path.join(TOOLS, 'tmp'),
    concurrency: os.availableParallelism(),
    // A lock that does not come is what many of these changes make.
    timeoutMS: 20_000,
    reporters: ['clear-text'],
    clearTextReporter: { logTests: false, allowColor: false },
    allowEmpty: false,
    checkers: [],
    plugins: [],
  };
  fs.writeFileSync(config, JSON.stringify(options));
  const stryker = path.join(TOOLS, 'node_modules', STRYKER, 'bin', 'stryker.js');
  const { status } = spawnSync(node, [stryker, 'run', config], { cwd: root, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}

main(process.argv.slice(2));
