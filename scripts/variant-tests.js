// npm run test:long-slices, npm run test:audit [-- --shard 0/3 | FILE ...]: JS tests and torture with a binary that has a cargo
// feature for tests.
//
// `long-slices`: blocked threads do not look up for a minute. A wake-up that is lost is found after 25 ms by the thread itself, and
// looks like a delay; here it is a hang. Nothing ends a thread that is blocked, so tests that need that are skipped
// (`needs('termination when busy')`), and no thread of the torture ends. The files are those that are packed, of which some are one.
//
// `audit`: each section of the engine looks at its queue when it begins; all queues and registers, and what the package's JavaScript
// keeps, are looked at when a program ends. What is left, or not consistent, is found though no test thought of it. Files that are
// named may be of any folder, as those of stores.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');
const { buildVariant } = require('./variant.js');

/** Folders of `__test__` whose subject is waiting and waking. */
const WAITING = [
  'barrier',
  'condition',
  'events',
  'exchanger',
  'futex',
  'kinds',
  'latch',
  'mutex',
  'once',
  'register',
  'rwlock',
  'semaphore',
  'several',
  'table',
];

const VARIANTS = {
  'long-slices': {
    folders: [...WAITING, 'binding'],
    env: { SABLOCK_LONG_SLICES: '1' },
    isPacked: true,
    torture: [['run.js', '--seconds', '20', '--seed', '1', '--deaths', '0', '--patience', '20000']],
  },
  audit: {
    folders: [...WAITING, 'binding', 'diagnosis', 'ends', 'named'],
    env: {
      SABLOCK_AUDIT: '1',
      NODE_OPTIONS: `--require ${JSON.stringify(path.join(__dirname, 'audit', 'preload.js'))}`,
    },
    torture: [
      ['run.js', '--seconds', '10', '--seed', '2'],
      ['storm.js', '--workers', '100', '--seed', '2'],
    ],
  },
};

const options = { shard: SHARD };
const { values, positionals } = parseArgs({ allowPositionals: true, options });
const [feature, ...chosen] = positionals;
const { folders, env, torture, isPacked } = VARIANTS[feature];
const folder = buildVariant(feature, {
  release: false,
  others: ['__test__', 'tests/torture', 'scripts/pack-core.js'],
  isPacked,
});

// A binary that is built for tests is slow: beside other work a program of theirs took 50 s, for which it has 30.
const SLOWNESS = '3';

const run = (...args) => {
  const { error, status, signal } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { SABLOCK_TEST_SLOWNESS: SLOWNESS, ...process.env, ...env },
    stdio: 'inherit',
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`node ${args.join(' ')}: ended with ${signal ?? status}`);
};

const testFiles = () =>
  folders.flatMap((name) =>
    fs
      .readdirSync(path.join(folder, '__test__', name))
      .filter((file) => file.endsWith('.test.js'))
      .map((file) => path.join('__test__', name, file)),
  );

const files = ofShard(chosen.length > 0 ? chosen : testFiles(), values.shard);
run('--test-reporter=spec', ...nodeTest(files));
if (chosen.length === 0) for (const [program, ...args] of torture) run(path.join('tests', 'torture', program), ...args);
