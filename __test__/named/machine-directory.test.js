// The directory of the locks among processes: which ones are refused, and that no name leaves it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { unsubscribe } = require('node:diagnostics_channel');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { createFolder } = require('../helpers/folder.js');
const { subscribe, warningsOf } = require('../helpers/messages.js');
const { startPeers } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { hold, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');
const { noting } = require('../helpers/uncaught.js');

const refused = (directory, message) =>
  assert.throws(() => new LockManager({ directory }), { code: 'ERR_LOCK_DIRECTORY', message, path: directory });

test('a directory that is missing is made, for its user alone, if its parent exists', async (t) => {
  const directory = path.join(createFolder(t), 'locks');
  const manager = new LockManager({ directory });
  assert.equal(fs.statSync(directory).mode & 0o777, process.platform === 'win32' ? 0o666 : 0o700);
  assert.equal(await manager.request('a', ({ name }) => name), 'a');
  refused(path.join(directory, 'no', 'parent'), /neither it nor its parent exists/);
});

test('what is no directory, or a link that leads nowhere, is refused', (t) => {
  const directory = createFolder(t);
  const file = path.join(directory, 'file');
  fs.writeFileSync(file, '');
  refused(file, /it is not a directory/);
  assert.throws(
    () => new LockManager({ directory: file }),
    (error) => !('errno' in error),
  );
  const link = path.join(directory, 'link');
  fs.symlinkSync(path.join(directory, 'nowhere'), link);
  refused(link, /the system could not use it/);
});

test('a directory where others may remove files that are in use is refused', {
  skip: process.platform === 'win32' && 'permissions are those of Unix',
}, (t) => {
  const directory = createFolder(t);
  fs.chmodSync(directory, 0o777);
  refused(directory, /: others may write in it .* \(its permissions are 777\)\. Run `chmod \+t` on it, or /);
  fs.chmodSync(directory, 0o1777);
  assert.doesNotThrow(() => new LockManager({ directory }));
});

/** The default directory of a user whom no system has, by what it is, and what is said of it. */
const USER = 54_321;
const DEFAULTS = {
  'belongs to another user': [
    (directory) => fs.mkdirSync(directory),
    /: user 0 owns it, and this process runs as user 54321\./,
  ],
  'is open to others': [
    (directory) => {
      fs.mkdirSync(directory);
      fs.chmodSync(directory, 0o750);
      fs.chownSync(directory, USER, USER);
    },
    /: it is not for this user alone \(its permissions are 750\)\. See who made it so, then run `chmod 700` on it; or /,
  ],
  'is a link': [
    (directory) => fs.symlinkSync(os.tmpdir(), directory),
    /: it is a symbolic link, which could lead anywhere\./,
  ],
};

for (const [what, [make, message]] of Object.entries(DEFAULTS)) {
  test(`a default directory that ${what} is refused`, {
    skip: !(process.platform === 'linux' && process.geteuid?.() === 0) && 'the user has to be changed',
  }, (t) => {
    const directory = `/tmp/sablock-${USER}`;
    // Late loads come now: the other user may not read them.
    refused(path.join(directory, 'no', 'parent'), /neither/);
    fs.rmSync(directory, { recursive: true, force: true });
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
    make(directory);
    process.seteuid(USER);
    try {
      assert.throws(() => new LockManager({ scope: 'machine' }), {
        code: 'ERR_LOCK_DIRECTORY',
        message,
        path: directory,
      });
    } finally {
      process.seteuid(0);
    }
  });
}

test('the types of the options are checked first', () => {
  for (const directory of [7, null, '', {}]) {
    assert.throws(() => new LockManager({ directory }), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  assert.throws(() => new LockManager({ scope: 'galaxy' }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(() => new LockManager({ scope: 'process', directory: '/tmp' }), { code: 'ERR_INVALID_ARG_TYPE' });
});

test('two paths to one directory are one', async (t) => {
  const directory = createFolder(t);
  const real = path.join(directory, 'real');
  fs.mkdirSync(real);
  fs.symlinkSync(directory, path.join(directory, 'link'));
  const { release, request } = await hold('a', {}, new LockManager({ directory: real }));
  const other = new LockManager({ directory: path.join(directory, 'link', 'real') });
  assert.equal(await other.request('a', { ifAvailable: true }, (lock) => lock), null);
  release();
  await request;
  assert.equal(await other.request('a', { ifAvailable: true }, ({ name }) => name), 'a');
});

test('a manager that is made later follows the permissions that its directory has by then', {
  skip: process.platform === 'win32' && 'permissions are those of Unix',
}, async (t) => {
  const directory = createFolder(t);
  const manager = new LockManager({ directory });
  for (const [mode, expected] of [
    [0o700, 0o600],
    [0o1777, 0o666],
    [0o700, 0o600],
  ]) {
    fs.chmodSync(directory, mode);
    const name = `made in ${mode} ${expected} ${Math.random()}`;
    await new LockManager({ directory }).request(name, async () => {
      assert.equal(await manager.request(name, { ifAvailable: true }, (lock) => lock), null);
    });
    const made = fs.readdirSync(directory).filter((file) => decodeURIComponent(file).includes(name));
    assert.ok(made.length > 0);
    for (const file of made) assert.equal(fs.statSync(path.join(directory, file)).mode & 0o777, expected, file);
  }
});

test('locks of two directories, and of the process, are others', async (t) => {
  const managers = [
    new LockManager({ directory: createFolder(t) }),
    new LockManager({ directory: createFolder(t) }),
    new LockManager(),
  ];
  const holds = [];
  for (const manager of managers) holds.push(await manager.acquireAsync('machine-a', { ifAvailable: true }));
  for (const lock of holds) assert.equal(lock.unlock(), true);
});

test('the locks of the machine are in a directory of this user alone, whatever the environment says', {
  skip: process.platform !== 'linux' && 'the place is another one',
}, async () => {
  const directory = `/tmp/sablock-${process.getuid()}`;
  const manager = new LockManager({ scope: 'machine' });
  const name = `sablock's own tests ${process.pid}`;
  await manager.request(name, () => {
    const { held } = { held: fs.readdirSync(directory).filter((file) => file.includes(`tests%20${process.pid}`)) };
    assert.equal(held.length, 3);
    assert.equal(fs.statSync(directory).mode & 0o777, 0o700);
  });
  for (const file of fs.readdirSync(directory)) {
    if (file.includes(`tests%20${process.pid}`)) fs.rmSync(path.join(directory, file));
  }
});

test('no name leaves the directory, and names that differ are others', async (t) => {
  const directory = createFolder(t);
  const inner = path.join(directory, 'inner');
  const manager = new LockManager({ directory: inner });
  const names = [
    '../escaped',
    '..',
    '.',
    '/etc/passwd',
    'a/b',
    'A',
    'a',
    'nul',
    'x'.repeat(5000),
    '\ud83d',
    '\ude00',
    '\0',
    '',
  ];
  const held = [];
  for (const name of names) {
    const lock = await manager.acquireAsync(name, { ifAvailable: true });
    assert.equal(lock.name, name);
    held.push(lock);
  }
  assert.deepEqual(fs.readdirSync(directory), ['inner']);
  assert.equal(fs.readdirSync(inner).length, 2 * names.length);
  for (const lock of held) lock.unlock();
});

test(
  'steal is refused, since nothing can stop a holder in another process',
  watched(async (t) => {
    const { manager } = await startPeers(t, 0);
    await assert.rejects(
      manager.request('a', { steal: true }, () => {}),
      { name: 'NotSupportedError' },
    );
  }),
);

test(
  'a holder whose file was removed is warned when it unlocks',
  { skip: process.platform === 'win32' && 'the file cannot be removed' },
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    const warnings = warningsOf(t);
    await manager.request('a', () => fs.rmSync(path.join(directory, 'v1-a.lock')));
    await turns();
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0].code, 'SABLOCK_LOCK_FILE_REMOVED');
    assert.match(warnings[0].message, /The file of the named lock 'a' .* was removed while this thread held it/);
    await manager.request('a', () => {});
    assert.equal(warnings.length, 1);
  }),
);

test(
  'a warning that the program does not let through is an uncaught error of its own: the lock is unlocked',
  { skip: process.platform === 'win32' && 'the file cannot be removed' },
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    const { mock } = t.mock.method(process, 'emitWarning', () => {
      throw new Error('no warnings');
    });
    await noting(async (uncaught) => {
      const lock = await manager.acquireAsync('a');
      fs.rmSync(path.join(directory, 'v1-a.lock'));
      assert.equal(lock.unlock(), true);
      await turns();
      assert.deepEqual(uncaught, ['no warnings']);
    });
    // The next is warned that the record is still there.
    mock.restore();
    assert.equal(await manager.request('a', { ifAvailable: true }, ({ name }) => name), 'a');
  }),
);

test(
  'a record that cannot be written at the end of a hold is warned of, and the next one is told',
  {
    skip:
      needs('failing writes').skip ||
      (spawnSync('prlimit', ['--version']).error && 'prlimit, which stops all files of a process growing, is missing'),
  },
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    const [peer] = peers;
    await peer.do(async (here) => {
      here.warned = new Promise((resolve) => process.once('warning', resolve));
      await new Promise((locked) => {
        here.manager.request('a', () => {
          locked();
          return new Promise((release) => Object.assign(here, { release }));
        });
      });
    });
    assert.equal(spawnSync('prlimit', ['--fsize=0:', '--pid', String(peer.pid)]).status, 0);
    const warning = await peer.do((here) => {
      here.release();
      return here.warned.then(({ code, message }) => ({ code, message }));
    });
    assert.equal(warning.code, 'SABLOCK_LOCK_RECORD');
    assert.match(
      warning.message,
      /^The record .* of the named lock 'a' could not be written when it was unlocked \(.*\): /,
    );
    assert.equal(await manager.request('a', ({ abandoned }) => abandoned), true);
  }),
);

test(
  'a record that was cut, or that somebody else wrote, counts as abandoned',
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    const record = path.join(directory, 'v1-a.info');
    warningsOf(t, 'SABLOCK_ABANDONED');
    const told = [];
    const note = ({ name, ownerThreadId }) => told.push([name, ownerThreadId]);
    subscribe('sablock:abandoned', note);
    t.after(() => unsubscribe('sablock:abandoned', note));
    // With an empty one nobody has ended: its holder could not write it.
    const [nobody, somebody] = [[], [['a', -1]]];
    for (const [spoil, expected] of [
      [() => fs.truncateSync(record, 0), nobody],
      [() => fs.truncateSync(record, 40), somebody],
      [() => fs.writeFileSync(record, 'pid 1234\n'), somebody],
      [() => fs.appendFileSync(record, 'x'), somebody],
    ]) {
      await manager.request('a', () => {});
      spoil();
      assert.equal(await manager.request('a', ({ abandoned }) => abandoned), true);
      // Once, though it is not known whose end it was.
      assert.deepEqual(told.splice(0), expected);
      await manager.request('a', (lock) => lock.markConsistent());
      assert.equal(await manager.request('a', ({ abandoned }) => abandoned), false);
    }
    assert.deepEqual(told, []);
  }),
);

test(
  'a file that cannot be opened rejects with what to do, and holds nothing',
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    fs.mkdirSync(path.join(directory, 'v1-a.lock'));
    await assert.rejects(
      manager.request('a', () => {}),
      {
        code: 'ERR_LOCK_DIRECTORY',
        message: /Cannot lock the named lock 'a' in .*v1-a\.lock.*: the system could not open it/,
        path: path.join(directory, 'v1-a.lock'),
        ...(process.platform !== 'win32' && { errno: -os.constants.errno.EISDIR }),
      },
    );
    fs.rmdirSync(path.join(directory, 'v1-a.lock'));
    assert.equal(await manager.request('a', ({ abandoned }) => abandoned), false);
  }),
);

test(
  'a thread that ends while it holds or waits leaves it to others of the process, marked if it held',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const { startActors } = require('../helpers/actors.js');
    const { directory, manager, peers } = await startPeers(t, 1);
    const [holder, waiter] = await startActors(threads, 2);
    const acquire = async (here, directory) => {
      here.lock = await new here.sablock.LockManager({ directory }).acquireAsync('a');
      return here.lock.abandoned;
    };
    assert.equal(await holder.do(acquire, directory), false);
    waiter.do(acquire, directory);
    const mine = manager.request('a', ({ abandoned }) => abandoned);
    await waiter.terminate();
    await holder.terminate();
    assert.equal(await mine, true);
    assert.equal(await peers[0].do((here) => here.manager.request('a', ({ abandoned }) => abandoned)), true);
    await manager.request('a', (lock) => lock.markConsistent());
    // One that waits for another process, and blocks.
    await peers[0].do(async (here) => {
      here.lock = await here.manager.acquireAsync('a');
    });
    const [blocked] = await startActors(threads, 1);
    blocked.do((here, directory) => {
      here.raise(3);
      return new here.sablock.LockManager({ directory }).requestSync('a', () => {});
    }, directory);
    await threads.raised(3);
    await blocked.terminate();
    const next = manager.request('a', ({ abandoned }) => abandoned);
    await peers[0].do((here) => here.lock.unlock());
    assert.equal(await next, false);
  }),
);
