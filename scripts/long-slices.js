// npm run test:long-slices [-- --shard 0/3 | FILE ...]: JS tests and torture with a binary whose blocked threads do not look up for a minute
// (the cargo feature `long-slices`). A wake-up that is lost is found after 25 ms by the thread itself, and looks like a delay;
// here it is a hang.
//
// In this build nothing ends a thread that is blocked, so tests that need that are skipped (`needs('termination when busy')`),
// and no thread of the torture ends.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { SHARD, ofShard } = require('./shard.js');
const { buildVariant } = require('./variant.js');

/** Folders of `__test__` whose subject is waiting and waking. */
const FOLDERS = [
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
const TORTURE = ['--seconds', '20', '--seed', '1', '--deaths', '0', '--patience', '20000'];

const folder = buildVariant('long-slices', { release: false, others: ['__test__', 'torture'] });

const run = (...args) => {
  const { error, status, signal } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, SABLOCK_LONG_SLICES: '1' },
    stdio: 'inherit',
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`node ${args.join(' ')}: ended with ${signal ?? status}`);
};

const testFiles = () =>
  FOLDERS.flatMap((name) =>
    fs
      .readdirSync(path.join(folder, '__test__', name))
      .filter((file) => file.endsWith('.test.js'))
      .map((file) => path.join('__test__', name, file)),
  );

const { values, positionals } = parseArgs({ allowPositionals: true, options: { shard: SHARD } });
const files = ofShard(positionals.length > 0 ? positionals : testFiles(), values.shard);
run('--test', '--test-concurrency=2', '--test-reporter=spec', ...files);
if (positionals.length === 0) run(path.join('torture', 'run.js'), ...TORTURE);
