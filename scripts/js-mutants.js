// npm run test:js-mutants -- FILE TEST ... | --room ROOM [--shard 0/20]: Stryker changes a file of `lib`, or each file of a room, one
// place at a time, and runs these test files, or those of the room, with each change, on Node.js 22. What survives is shown: a gap in
// the tests, or a change that nobody can see.
//
//   npm run test:js-mutants -- lib/primitives/event.js __test__/events/events.test.js
//   npm run test:js-mutants -- --room named --shard 3/8

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');
const { RUNTIMES, install } = require('./runtimes.js');
const { SHARD, ofShard } = require('./shard.js');

const root = path.join(__dirname, '..');
const TOOLS = path.join(root, 'target', 'stryker');
const STRYKER = '@stryker-mutator/core';
const VERSION = '^9.6.1';
/** For the named test files. Those of a room need one for each. */
const ONE_PROCESS = '--experimental-test-isolation=none';
/** Not copied for each run. */
const UNUSED = ['target', 'bench', 'docs', 'examples', 'src', 'tests/model'];

/** The folders of `__test__` whose subject a folder of `lib` is. */
const ROOMS = {
  cli: ['cli'],
  doctor: ['doctor', 'diagnosis'],
  engine: ['binding', 'diagnosis', 'ends', 'mutex', 'register'],
  load: ['loading'],
  named: ['conformance', 'named'],
  primitives: [
    'barrier',
    'condition',
    'events',
    'exchanger',
    'futex',
    'latch',
    'layout',
    'mutex',
    'once',
    'rwlock',
    'semaphore',
    'several',
    'table',
  ],
  stores: ['stores'],
};

/** The files below this folder whose names end so. */
const filesBelow = (folder, ending) =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true })
    .filter((file) => file.endsWith(ending))
    .map((file) => path.posix.join(folder, file.replaceAll(path.sep, '/')));

/** Returns what to change, and which tests watch it, as Node.js is told. */
function chosen({ room, shard }, [file, ...tests]) {
  if (room === undefined) {
    if (tests.length === 0) throw new Error('Name a file of lib, and the test files that watch it, or a room');
    return { files: [file], tests: [ONE_PROCESS, '--test', ...tests] };
  }
  if (!Object.hasOwn(ROOMS, room)) throw new Error(`No room of lib: ${room}; ${Object.keys(ROOMS).join(', ')}`);
  return {
    files: ofShard(filesBelow(`lib/${room}`, '.js'), shard),
    tests: nodeTest(ROOMS[room].flatMap((folder) => filesBelow(`__test__/${folder}`, '.test.js'))),
  };
}

function npm(...args) {
  const { status } = spawnSync('npm', args, { cwd: TOOLS, stdio: 'ignore', shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}`);
}

function main() {
  const options = { room: { type: 'string' }, shard: SHARD };
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  const { files, tests } = chosen(values, positionals);
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
  const settings = {
    mutate: files,
    testRunner: 'command',
    commandRunner: { command: `"${node}" ${tests.join(' ')}` },
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
  fs.writeFileSync(config, JSON.stringify(settings));
  const stryker = path.join(TOOLS, 'node_modules', STRYKER, 'bin', 'stryker.js');
  const { status } = spawnSync(node, [stryker, 'run', config], { cwd: root, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}

main();
