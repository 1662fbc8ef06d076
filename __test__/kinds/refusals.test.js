// The system refuses threads and file descriptors: what needs one fails with a code, nothing of it stays, and the next is as ever.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { CC, withCompiler } = require('../helpers/compiler.js');
const { createFolder } = require('../helpers/folder.js');
const { holdIn, startPeers } = require('../helpers/peers.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const PROGRAM = path.join(__dirname, '..', 'programs', 'refused-threads.c');

test(
  'a wait for which the system refuses a thread fails, and leaves nothing',
  { skip: needs('preloading').skip || withCompiler.skip },
  watched(async (t) => {
    const library = path.join(createFolder(t), 'refused-threads.so');
    const { status, stderr } = spawnSync(CC, ['-shared', '-fPIC', '-o', library, PROGRAM, '-ldl'], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    const { directory, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'held');
    const run = await runProgram('refused-threads', [directory], { env: { LD_PRELOAD: library } });
    assert.equal(run.code, 0, run.stderr);
    const { refused, free, pending, granted, stores, doctor } = JSON.parse(run.stdout);
    for (const [way, ended] of refused) assert.equal(ended, 'ERR_LOCK_NO_THREAD', way);
    assert.deepEqual([free, pending], ['free', 0]);
    for (const [way, ended, expected] of granted) assert.equal(ended, expected, way);
    assert.deepEqual(stores, ['ERR_WORKER_INIT_FAILED', 'ECONNREFUSED']);
    assert.deepEqual(doctor, { code: 'ERR_LOCK_NO_THREAD', deadlocks: [] });
    // The one warning, and nothing else.
    assert.match(run.stderr, /^\(node:\d+\) \[ERR_LOCK_NO_THREAD\] LockDoctorWarning: .*\n\(Use .*\n$/);
  }),
);

test(
  'a lock of a machine for which no file descriptor is left goes to somebody else, however few are left',
  { skip: needs('preloading').skip || (process.platform === 'win32' && 'its handles have no such limit') },
  watched(async (t) => {
    const { directory } = await startPeers(t, 0);
    const program = path.join(__dirname, '..', 'programs', 'refused-descriptors.js');
    const { stdout, stderr } = spawnSync(
      'sh',
      ['-c', `ulimit -n 64; exec "$0" "$@"`, process.execPath, program, directory],
      {
        encoding: 'utf8',
      },
    );
    assert.equal(stderr, '');
    const { failures, ...left } = JSON.parse(stdout);
    // The first that needs a file of this package may fail with that.
    for (const [way, count, code] of failures)
      assert.match(code, /^(ERR_LOCK_DIRECTORY|EMFILE)$/, `${way}, ${count} left`);
    assert.ok(failures.length > 0);
    assert.deepEqual(left, { stuck: [], held: [], pending: [] });
  }),
);
