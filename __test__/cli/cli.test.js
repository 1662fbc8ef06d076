// `npx sablock`, as in a shell and in a terminal.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('../../index.js');
const { binding } = require('../../lib/engine/thread.js');
const { CLI, sablockAll } = require('../helpers/command-lines.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-cli-'));
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }));
const UNIX = process.platform === 'win32' ? { skip: 'signals are those of Unix' } : needs('preloading');
const SETTINGS = { ...UNIX, timeout: limit(120_000) };

const LINUX = {
  ...SETTINGS,
  ...(process.platform !== 'linux' && { skip: 'elsewhere those of Node.js are not told from others' }),
};

let made = 0;
const newDirectory = () => {
  const directory = path.join(home, String(made++));
  fs.mkdirSync(directory, { mode: 0o700 });
  return directory;
};
/** The file has not been used for a day. */
const age = (file) => fs.utimesSync(file, new Date(0), new Date(0));
const ageAll = (directory) => {
  for (const file of fs.readdirSync(directory)) age(path.join(directory, file));
};
const sablock = (...args) => spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8' });
const js = (code) => [process.execPath, '-e', code];
/** As `js`, where any command does: this one starts in no time. */
const sh = (script) => ['sh', '-c', script];
/** Has held each of the names, and left a record: as a command under `run`, which takes a process for each. */
async function use(directory, names) {
  const manager = new LockManager({ directory });
  for (const name of names) await manager.request(name, () => {});
  await manager.close();
}

const has = (command) => process.platform !== 'win32' && spawnSync(command, ['--version']).status === 0;
const withTool = (name) => ({ ...SETTINGS, ...(!has(name) && { skip: `${name} is not installed` }) });
const quote = (args) => args.map((arg) => `'${arg.replaceAll("'", "'\\''")}'`).join(' ');

/** A shell, so that `script` is not the parent of what is stopped, which it would go on with. The shell itself outlives Ctrl-C. */
const SHELL = 'trap : INT; "$@"';

/**
 * Runs a command in a terminal of its own, where Ctrl-C is typed once it says that it is ready. A process of ours in front of the
 * command gets that later than the command: what it then sends on cannot be one signal with the terminal's.
 */
function inTerminal(args, signal) {
  const command = quote(['sh', '-c', SHELL, 'sh', ...args]);
  const child = spawn('script', ['-qec', `exec ${command}`, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  let [isTyped, stopped] = [false, 0];
  child.stdout.setEncoding('utf8').on('data', (data) => {
    text += data;
    if (stopped > 0 && text.includes('signal 1')) {
      process.kill(stopped, 'SIGCONT');
      stopped = 0;
    }
    const ready = /ready (\d+)(?: of (\d+))?/.exec(text);
    if (isTyped || ready === null) return;
    isTyped = true;
    if (ready[2] !== undefined) {
      stopped = Number(ready[2]);
      process.kill(stopped, 'SIGSTOP');
    }
    if (signal === undefined) child.stdin.write('\u0003');
    else process.kill(Number(ready[1]), signal);
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), limit(30_000));
  return new Promise((resolve) => {
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, text });
    });
  });
}

/** A command that holds until its stdin ends, at the latest with the test `t`. */
async function holder(t, directory, name, ...options) {
  const command = sh('echo $$; exec cat >/dev/null');
  const child = spawn(process.execPath, [CLI, 'run', name, '--directory', directory, ...options, '--', ...command]);
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve([code, signal])));
  t.after(() => child.stdin.destroy());
  const pid = await new Promise((resolve, reject) => {
    child.stdout.once('data', (data) => resolve(Number(data)));
    ended.then((end) => reject(new Error(`It has ended before it held: ${end}`)));
  });
  return { child, pid, ended };
}

/** Stops a process for the length of the test, unless that ends it. */
function stop(t, pid) {
  process.kill(pid, 'SIGSTOP');
  t.after(() => {
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // It has ended.
    }
  });
}

test('run has the output, the arguments and the exit code of its command', SETTINGS, () => {
  const directory = newDirectory();
  const code = 'console.log(process.argv.slice(1)); process.exit(7)';
  const { status, stdout, stderr } = sablock(
    'run',
    'a b "c"',
    '--directory',
    directory,
    '--',
    ...js(code),
    'x y',
    '-z',
  );
  assert.deepEqual([status, stdout, stderr], [7, "[ 'x y', '-z' ]\n", '']);
});

test('the command of run has the descriptors that the shell has opened for it, by their numbers', SETTINGS, () => {
  const [directory, files] = [newDirectory(), newDirectory()];
  const [read, written] = [path.join(files, 'read'), path.join(files, 'written')];
  fs.writeFileSync(read, 'content');
  const run = quote([process.execPath, CLI, 'run', 'job', '--directory', directory, '--', 'sh', '-c', 'cat <&9 >&3']);
  // The number 9 is beyond those of Node.js itself.
  const { status, stderr } = spawnSync('sh', ['-c', `${run} 3>${quote([written])} 9<${quote([read])}`], {
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr, fs.readFileSync(written, 'utf8')], [0, '', 'content']);
});

test('the command of run reads a pipe that is open as its descriptor 3', LINUX, () => {
  const run = quote([process.execPath, CLI, 'run', 'job', '--directory', newDirectory(), '--', 'sh', '-c', 'cat <&3']);
  const { stdout, stderr } = spawnSync('sh', ['-c', `echo piped | ${run} 3<&0 </dev/null`], { encoding: 'utf8' });
  assert.deepEqual([stdout, stderr], ['piped\n', '']);
});

test('run waits for whoever holds, no longer than its time limit', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, ended } = await holder(t, directory, 'job');
  const run = ['run', 'job', '--directory', directory];
  const [busy, late] = sablockAll([
    [...run, '--if-available', '--', 'true'],
    [...run, '--timeout', '50ms', '--', 'true'],
  ]);
  assert.deepEqual([busy.status, busy.stderr], [1, '']);
  assert.equal(late.status, 1);
  assert.match(late.stderr, /^sablock: .*50 ms/);
  const next = spawn(process.execPath, [CLI, ...run, ...js('')]);
  const nextEnded = new Promise((resolve) => next.once('exit', resolve));
  child.stdin.end();
  assert.deepEqual(await ended, [0, null]);
  assert.equal(await nextEnded, 0);
});

test('those who share a lock run at once', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, ended } = await holder(t, directory, 'data', '--shared');
  const run = ['run', 'data', '--directory', directory, '--if-available'];
  const [shares, alone] = sablockAll([
    [...run, '--shared', 'true'],
    [...run, 'true'],
  ]);
  assert.deepEqual([shares.status, alone.status], [0, 1]);
  child.stdin.end();
  await ended;
});

test('a signal goes to the command, whose end by it is an exit code, and a mark for the next', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, ended } = await holder(t, directory, 'killed');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [143, null]);
  const look = `
    const { LockManager } = require(${JSON.stringify(path.join(__dirname, '..', '..'))});
    process.removeAllListeners('warning');
    new LockManager({ scope: 'machine', directory: process.argv[1] }).request('killed', (lock) => console.log(lock.abandoned));
  `;
  const { stdout } = spawnSync(process.execPath, ['-e', look, directory], { encoding: 'utf8' });
  assert.equal(stdout, 'true\n');
});

test('a signal that comes as soon as the command runs goes to it, too', SETTINGS, () => {
  const directory = newDirectory();
  const command = ['sh', '-c', 'kill -TERM $PPID; exec sleep 60'];
  const { status, signal } = sablock('run', 'early', '--directory', directory, '--', ...command);
  assert.deepEqual([status, signal], [143, null]);
});

test('if run itself is killed, its command keeps the lock until it ends', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, pid, ended } = await holder(t, directory, 'kept');
  // Its stdin ends with its parent.
  stop(t, pid);
  child.kill('SIGKILL');
  await ended;
  const tryIt = () => sablock('run', 'kept', '--directory', directory, '--if-available', '--', 'true').status;
  assert.equal(tryIt(), 1);
  process.kill(pid, 'SIGKILL');
  const until = Date.now() + 60_000;
  while (tryIt() !== 0) assert.ok(Date.now() < until);
});

test('a command that is not there, and what cannot be understood, have codes of their own', SETTINGS, () => {
  const directory = newDirectory();
  const missing = sablock('run', 'a', '--directory', directory, '--', '/no/such/command');
  assert.deepEqual([missing.status, missing.stderr], [127, 'sablock: Cannot run /no/such/command: ENOENT.\n']);
  // Node.js calls back for these, and throws for those.
  const commands = [directory, path.join(__filename, 'x'), 'x'.repeat(5000)];
  const misused = [
    ['run'],
    ['run', 'a'],
    ['run', 'a', ''],
    ['run', 'a', '--soon', 'x'],
    ['run', 'a', '--timeout', 'x', 'y'],
    ['doctor'],
    ['what'],
    [],
  ];
  const outcomes = sablockAll([
    ...commands.map((command) => ['run', 'a', '--directory', directory, '--', command]),
    ['locks', directory],
    ...misused,
  ]);
  for (const { status, stderr } of outcomes.splice(0, commands.length)) {
    assert.equal(status, 126, stderr);
    assert.match(stderr, /^sablock: Cannot run .*: E[A-Z]+\.\n$/);
  }
  assert.equal(outcomes.shift().stdout, '');
  for (const [index, { status, stderr }] of outcomes.entries()) {
    assert.equal(status, 2, misused[index].join(' '));
    assert.notEqual(stderr, '');
  }
});

test('locks lists who holds, as a table and as JSON', SETTINGS, async (t) => {
  const directory = newDirectory();
  const listed = () =>
    sablockAll([
      ['locks', directory],
      ['locks', '--json', directory],
    ]).map(({ stdout }) => stdout);
  assert.deepEqual(listed(), ['', '[]\n']);
  const { child, ended } = await holder(t, directory, 'with spaces\u001b[2J');
  const [table, json] = listed();
  assert.match(
    table,
    /^NAME +MODE +PID +THREAD +SINCE +ALIVE +MARK\nwith spaces\\u\{1b\}\[2J +exclusive +\d+ +0 +\d{4}-\S+ +yes\n/,
  );
  const [lock, ...others] = JSON.parse(json);
  assert.deepEqual(others, []);
  assert.deepEqual(
    [lock.name, lock.mode, lock.pid, lock.threadId, lock.alive],
    ['with spaces\u001b[2J', 'exclusive', child.pid, 0, true],
  );
  assert.ok(Math.abs(Date.parse(lock.since) - Date.now()) < 60_000);
  child.stdin.end();
  await ended;
});

test('locks lists a holder that has ended, whose command keeps the lock', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, pid, ended } = await holder(t, directory, 'left behind');
  stop(t, pid);
  child.kill('SIGKILL');
  await ended;
  const [table, json] = sablockAll([
    ['locks', directory],
    ['locks', directory, '--json'],
  ]);
  assert.match(table.stdout, /^left behind +exclusive +\d+ +0 +\d{4}-\S+ +no +abandoned$/m);
  const [lock] = JSON.parse(json.stdout);
  assert.deepEqual([lock.name, lock.pid, lock.alive, lock.marked], ['left behind', child.pid, false, true]);
  process.kill(pid, 'SIGKILL');
  // The next to come learns of it, and the mark stays until somebody takes it off.
  let status = 1;
  while (status !== 0) ({ status } = sablock('run', 'left behind', '--directory', directory, '--if-available', 'true'));
  const [marked, , taken] = sablockAll([
    ['locks', directory],
    ['run', 'left behind', '--directory', directory, '--mark-consistent', 'true'],
    ['locks', directory],
  ]);
  assert.match(marked.stdout, /^left behind .* no +abandoned$/m);
  assert.equal(taken.stdout, '');
});

/** A process that holds, by the source of what it does with `manager`; it has said so. */
async function holdingProcess(t, directory, source) {
  const program = `
    const { LockManager } = require(${JSON.stringify(path.join(__dirname, '..', '..'))});
    const manager = new LockManager({ scope: 'machine', directory: ${JSON.stringify(directory)} });
    const ready = () => require('node:fs').writeSync(1, 'ready');
    process.stdin.resume();
    ${source}`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const kill = () => {
    child.kill('SIGKILL');
    return exited;
  };
  return { pid: child.pid, kill };
}

/** The source of one that holds all of these. */
const acquiring = (names) =>
  `Promise.all(${JSON.stringify(names)}.map((name) => manager.acquireAsync(name))).then(ready);`;

test('locks has the thread that holds, and since when, also once its process has ended', SETTINGS, async (t) => {
  const directory = newDirectory();
  const before = Date.now();
  const { pid, kill } = await holdingProcess(
    t,
    directory,
    `const { Worker } = require('node:worker_threads');
     const act = (root, directory) => {
       const { LockManager } = require(root);
       const ready = () => require('node:fs').writeSync(1, 'ready');
       new LockManager({ directory }).acquireAsync('of a worker').then(ready);
       setInterval(() => {}, 1000);
     };
     const given = ${JSON.stringify(JSON.stringify([path.join(__dirname, '..', '..'), directory]))};
     new Worker('(' + act + ')(...' + given + ')', { eval: true });`,
  );
  const after = Date.now();
  // The hold is older than the question: what says when it began is not the time of that.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const check = (alive) => {
    const [{ since, ...row }, ...more] = JSON.parse(sablock('locks', directory, '--json').stdout);
    const expected = { name: 'of a worker', mode: 'exclusive', pid, threadId: 1, alive, marked: !alive };
    assert.deepEqual([row, more], [expected, []]);
    assert.ok(Date.parse(since) >= before - 100 && Date.parse(since) <= after + 100, `${since} of ${before}`);
  };
  check(true);
  await kill();
  check(false);
});

test('without a directory run and locks have the one that the programs of this user have', SETTINGS, async (t) => {
  const name = `sablock-test-${process.pid}-cli`;
  const inside = [process.execPath, CLI, 'locks', '--json'];
  const { path: place } = binding.openDirectory(undefined);
  t.after(() => {
    for (const ending of ['info', 'turn', 'gate', 'lock'])
      fs.rmSync(path.join(place, `v1-${name}.${ending}`), { force: true });
  });
  const { stdout } = sablock('run', name, '--', ...inside);
  const listed = JSON.parse(stdout).filter((row) => row.name === name);
  assert.deepEqual(
    listed.map(({ alive, marked }) => [alive, marked]),
    [[true, false]],
  );
  const held = await new LockManager({ scope: 'machine' }).acquireAsync(name);
  assert.equal(sablock('run', name, '--if-available', 'true').status, 1);
  held.unlock();
});

test('a lock that is held and marked is one line, of its holder', SETTINGS, async (t) => {
  const directory = newDirectory();
  sablock('run', 'job', '--directory', directory, ...sh('kill -KILL $$'));
  const { child, ended } = await holder(t, directory, 'job');
  const listed = JSON.parse(sablock('locks', directory, '--json').stdout);
  assert.deepEqual(
    listed.map(({ name, pid, alive, marked }) => [name, pid, alive, marked]),
    [['job', child.pid, true, true]],
  );
  child.stdin.end();
  await ended;
});

test('one of several names that its process had while it waited for the others is no mark', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { child, ended } = await holder(t, directory, 'second');
  const { pid, kill } = await holdingProcess(t, directory, "manager.request(['first', 'second'], () => {}); ready();");
  const manager = new LockManager({ directory });
  while ((await manager.query()).held.every(({ name }) => name !== 'first')) await sleep(5);
  const listed = () =>
    JSON.parse(sablock('locks', directory, '--json').stdout)
      .filter(({ name }) => name === 'first')
      .map((row) => [row.pid, row.alive, row.marked]);
  assert.deepEqual(listed(), [[pid, true, false]]);
  await kill();
  assert.deepEqual(listed(), [[pid, false, false]]);
  child.stdin.end();
  await ended;
});

test('the columns of locks are as wide as what is in them, and no line ends with spaces', SETTINGS, async (t) => {
  const directory = newDirectory();
  sablock('run', 'a name that is longer', '--directory', directory, ...sh('kill -KILL $$'));
  const { child, ended } = await holder(t, directory, 'short');
  const lines = sablock('locks', directory).stdout.split('\n');
  assert.deepEqual([lines.length, lines.pop()], [4, '']);
  const at = (word) => lines[0].indexOf(word);
  assert.deepEqual(
    lines.map((line) => line.slice(at('MODE'), at('PID')).trimEnd()),
    ['MODE', 'exclusive', 'exclusive'],
  );
  assert.deepEqual(lines.map((line) => line.slice(at('ALIVE'), at('MARK')).trimEnd()).sort(), ['ALIVE', 'no', 'yes']);
  for (const line of lines) assert.equal(line, line.trimEnd());
  assert.equal(at('MODE'), 'a name that is longer'.length + 2);
  child.stdin.end();
  await ended;
});

test('what a terminal would obey, or nobody would see, is escaped in a name, and nothing else', SETTINGS, async () => {
  const directory = newDirectory();
  const manager = new LockManager({ directory });
  const signs = ['\u0000\u001f', '\u007f\u0085\u009f', '\u00ad', '\u061c', '\u180e', '\ufeff'];
  const ranges = ['\u200b\u200f', '\u2028\u202e', '\u2060\u2069', '\u{e0000}\u{e007f}'];
  const hidden = [...signs, ...ranges].join('+');
  const plain = ' ~\u00a0\u00ac\u00ae\u200a\u2010\u202f\u206a\u{e0080}é漢😀';
  for (const [name, shown] of [
    [hidden, hidden.replace(/[^+]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`)],
    [`<${plain}>`, `<${plain}>`],
  ]) {
    const held = await manager.acquireAsync(name);
    const [table, json] = sablockAll([
      ['locks', directory],
      ['locks', directory, '--json'],
    ]);
    const [, line] = table.stdout.split('\n');
    assert.ok(line.startsWith(`${shown} `), line);
    assert.equal(JSON.parse(json.stdout)[0].name, name);
    held.unlock();
  }
});

/** Names that their files have in different ways: up to 120 bytes of ASCII they are there, some signs as three bytes. */
const NAMES = {
  'of 120 bytes': 'x'.repeat(120),
  'of 121 bytes': 'x'.repeat(121),
  'of 40 letters': 'X'.repeat(40),
  'of 41 letters': 'X'.repeat(41),
  'with half a pair': '\udfff of \ud800',
  'with signs of other alphabets': 'Été 漢 😀/../%41',
};

test('a mark of any name is listed with its holder', SETTINGS, async (t) => {
  const directory = newDirectory();
  const names = Object.values(NAMES);
  const { pid, kill } = await holdingProcess(t, directory, acquiring(names));
  await kill();
  const listed = new Map(JSON.parse(sablock('locks', directory, '--json').stdout).map((row) => [row.name, row]));
  for (const [what, name] of Object.entries(NAMES)) {
    const row = listed.get(name.toWellFormed());
    assert.deepEqual([row?.pid, row?.alive, row?.marked], [pid, false, true], what);
  }
  assert.equal(listed.size, names.length);
});

test('jq reads what locks prints', withTool('jq'), async (t) => {
  const directory = newDirectory();
  const { child, ended } = await holder(t, directory, 'one "two"\n');
  const manager = new LockManager({ scope: 'machine', directory });
  const more = await manager.acquireAsync('more');
  const [cli, path] = [quote([process.execPath, CLI]), quote([directory])];
  const command = `${cli} locks ${path} --json | jq -r '.[] | select(.name | startswith("one")) | "\\(.pid) \\(.name)"'`;
  const { stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  assert.equal(stdout, `${child.pid} one "two"\n\n`);
  const half = await manager.acquireAsync('one half \ud800');
  assert.match(
    spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stdout,
    new RegExp(`^${process.pid} one half \ufffd$`, 'm'),
  );
  for (const lock of [half, more]) lock.unlock();
  child.stdin.end();
  await ended;
});

const counts = (isChild) => `
  let count = 0;
  process.on('SIGINT', () => {
    console.log('signal ' + ++count);
    // A second one would come soon.
    setTimeout(() => process.exit(5), 1000);
  });
  console.log('ready ' + process.pid + ${isChild ? "' of ' + process.ppid" : "''"});
  setInterval(() => {}, 1000);
`;
const HANGS = "console.log('ready ' + process.pid); setInterval(() => {}, 1000)";

test('in a terminal Ctrl-C arrives at the command of run once, which goes on with it', withTool('script'), async () => {
  const run = [process.execPath, CLI, 'run', 'a b', '--directory', newDirectory(), '--'];
  // The second shell gives each of its jobs a group of its own, as shells for people do, and would not wait for one that is stopped.
  for (const [isStopped, ...shell] of [[true], [false, 'sh', '-mc', '"$@"; exit $?', 'sh']]) {
    const counted = await inTerminal([...shell, ...run, ...js(counts(isStopped))]);
    assert.deepEqual(counted.text.match(/signal \d/g), ['signal 1']);
    assert.equal(counted.code, 5);
  }
  assert.equal((await inTerminal([...run, ...js(HANGS)])).code, 130);
  assert.equal((await inTerminal([...run, ...js(HANGS)], 'SIGTERM')).code, 143);
});

test(
  'in a terminal Ctrl-C arrives at the program of doctor once, and ends what does not listen',
  withTool('script'),
  async () => {
    const doctor = [process.execPath, CLI, 'doctor', '-e'];
    const counted = await inTerminal([...doctor, counts(process.execve === undefined)]);
    assert.deepEqual(counted.text.match(/signal \d/g), ['signal 1']);
    assert.equal(counted.code, 5);
    assert.equal((await inTerminal([...doctor, HANGS])).code, 130);
    assert.equal((await inTerminal([...doctor, HANGS], 'SIGTERM')).code, 143);
  },
);

const BACKGROUND = {
  ...withTool('script'),
  ...(process.platform !== 'linux' && { skip: 'only Linux says who is in front' }),
};

test('of a terminal, a signal that only run in the background gets goes to its command', BACKGROUND, async () => {
  const run = [process.execPath, CLI, 'run', 'a b', '--directory', newDirectory(), '--'];
  const asks = `
    process.on('SIGINT', () => process.exit(8));
    process.kill(process.ppid, 'SIGINT');
    setTimeout(() => process.exit(9), ${limit(10_000)});
  `;
  assert.equal((await inTerminal(['sh', '-mc', '"$@" & wait $!', 'sh', ...run, ...js(asks)])).code, 8);
});

test('a reader that has gone and a full disk are no faults of the program', SETTINGS, async () => {
  const child = spawn(process.execPath, [CLI, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let text = '';
  child.stderr.on('data', (data) => {
    text += data;
  });
  assert.deepEqual(await new Promise((resolve) => child.once('close', (...end) => resolve([...end, text]))), [
    141,
    null,
    '',
  ]);
  if (process.platform !== 'linux') return;
  const full = fs.openSync('/dev/full', 'w');
  for (const args of [['--version'], ['locks', '--json', newDirectory()], ['clean', newDirectory()]]) {
    const { status, stderr } = spawnSync(process.execPath, [CLI, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', full, 'pipe'],
    });
    assert.equal(status, 1);
    assert.match(stderr, /^sablock: ENOSPC.*\n$/);
  }
  fs.closeSync(full);
});

const BECOMES = { ...SETTINGS, ...(process.execve === undefined && { skip: 'no execve in this Node.js' }) };

test('doctor becomes the program, where Node.js can', BECOMES, () => {
  const { pid, stdout } = spawnSync(process.execPath, [CLI, 'doctor', '-p', 'process.pid'], { encoding: 'utf8' });
  assert.equal(Number(stdout), pid);
});

test('--help and --version are its own, in each form, and after a command', SETTINGS, () => {
  const helps = [['--help'], ['-h'], ['run', '--help'], ['clean', '--help']];
  const versions = [['--version'], ['-v']];
  const outcomes = sablockAll([...helps, ...versions]);
  for (const args of helps) {
    const { status, stdout, stderr } = outcomes.shift();
    assert.match(stdout, /^Usage: sablock/, args.join(' '));
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
  }
  for (const [form] of versions) {
    assert.equal(outcomes.shift().stdout, `${require('../../package.json').version}\n`, form);
  }
});

test('the --help of a command that runs under a lock is that of the command', SETTINGS, () => {
  const { stdout } = sablock('run', 'a', '--directory', newDirectory(), '--', 'echo', '--help');
  assert.doesNotMatch(stdout, /^Usage: sablock/);
});

test('a command that there is none of is named, before the usage', SETTINGS, () => {
  const commands = ['lock', 'toString'];
  const outcomes = sablockAll([...commands.map((command) => [command]), []]);
  for (const command of commands) {
    const { status, stdout, stderr } = outcomes.shift();
    assert.ok(stderr.startsWith(`sablock: There is no command '${command}'.\n\nUsage: sablock`), stderr);
    assert.deepEqual([status, stdout], [2, '']);
  }
  assert.match(outcomes.shift().stderr, /^Usage: sablock/, 'no command is no unknown one');
});

test('clean removes what nobody has used for a day, and neither what is held nor a mark', SETTINGS, async (t) => {
  const directory = newDirectory();
  await use(directory, ['old name', 'young', 'marked', 'held']);
  sablock('run', 'marked', '--directory', directory, ...sh('kill -KILL $$'));
  const { child, ended } = await holder(t, directory, 'held');
  const files = () =>
    fs
      .readdirSync(directory)
      .filter((file) => file.endsWith('.info'))
      .sort();
  assert.deepEqual(files(), ['v1-held.info', 'v1-marked.info', 'v1-old%20name.info', 'v1-young.info']);
  for (const file of fs.readdirSync(directory)) if (!file.includes('young')) age(path.join(directory, file));
  const { status, stdout, stderr } = sablock('clean', directory);
  assert.deepEqual([status, stdout, stderr], [0, '1 removed\n', '']);
  assert.deepEqual(files(), ['v1-held.info', 'v1-marked.info', 'v1-young.info']);
  assert.deepEqual(
    fs.readdirSync(directory).filter((file) => file.startsWith('v1-old')),
    [],
  );
  child.stdin.end();
  await ended;
});

test(
  'clean takes a name that nobody has used for a day, and none that somebody has, by whichever file',
  SETTINGS,
  async () => {
    const directory = newDirectory();
    const HOUR_MS = 60 * 60 * 1000;
    const names = ['hours-23', 'hours-25', ...['gate', 'info', 'lock', 'turn'].map((ending) => `young-${ending}`)];
    await use(directory, names);
    // Names have this one too, once somebody has waited.
    for (const name of names) fs.writeFileSync(path.join(directory, `v1-${name}.gate`), '');
    for (const file of fs.readdirSync(directory)) {
      const [, name, ending] = /^v1-(.*)\.(.*)$/.exec(file);
      const hours = name === 'hours-23' || name === `young-${ending}` ? 23 : 25;
      const time = new Date(Date.now() - hours * HOUR_MS);
      fs.utimesSync(path.join(directory, file), time, time);
    }
    assert.equal(sablock('clean', directory).stdout, '1 removed\n');
    const left = new Set(fs.readdirSync(directory).map((file) => file.replace(/\..*/, '')));
    assert.deepEqual([...left].sort(), names.flatMap((name) => (name === 'hours-25' ? [] : `v1-${name}`)).sort());
  },
);

test('clean --marks says nothing of what it takes, and leaves what is held, and who is young', SETTINGS, async (t) => {
  const directory = newDirectory();
  const { kill } = await holdingProcess(t, directory, acquiring(['held', 'old', 'young']));
  await kill();
  const { child, ended } = await holder(t, directory, 'held');
  for (const file of fs.readdirSync(directory)) if (!file.includes('young')) age(path.join(directory, file));
  const [cleaned, listed] = sablockAll([
    ['clean', '--marks', directory],
    ['locks', directory, '--json'],
  ]);
  assert.deepEqual([cleaned.status, cleaned.stdout, cleaned.stderr], [0, '1 removed\n', '']);
  const marked = JSON.parse(listed.stdout).map(({ name }) => name);
  assert.deepEqual(marked.sort(), ['held', 'young']);
  child.stdin.end();
  await ended;
});

test(
  'clean knows that a lock was shared, and removes the files of one that never was anything else',
  SETTINGS,
  async () => {
    const directory = newDirectory();
    await use(directory, ['young']);
    sablock('run', 'Old name', '--shared', '--directory', directory, 'true');
    ageAll(directory);
    await new LockManager({ directory }).request('young', { mode: 'shared' }, () => {});
    assert.equal(sablock('clean', directory).stdout, '1 removed\n');
    assert.deepEqual(fs.readdirSync(directory).sort(), ['v1-young.info', 'v1-young.lock', 'v1-young.turn']);
    ageAll(directory);
    assert.equal(sablock('clean', directory).stdout, '1 removed\n');
    assert.deepEqual(fs.readdirSync(directory), []);
  },
);

/** Changes to a record, after which it is none of its name. */
const DAMAGE = {
  'is empty': (file) => fs.truncateSync(file),
  'is cut': (file) => fs.truncateSync(file, 40),
  'has another checksum': (file) => {
    const record = fs.readFileSync(file);
    record[record.length - 1] ^= 1;
    fs.writeFileSync(file, record);
  },
  'is that of another name': (file) => fs.copyFileSync(path.join(path.dirname(file), 'v1-whole.info'), file),
};

const LONG = 'x'.repeat(121);
const DAMAGED = Object.entries(DAMAGE).flatMap(([what, damage]) =>
  [
    ['some Name', 'some Name'],
    [LONG, /^v1h-[0-9a-f]{64}$/],
  ].map(([name, listed]) => ({ what, damage, name, listed })),
);

/** The output of the commands for each of these records, in a directory of its own beside a whole one, and the files that are left. */
async function damageAll() {
  const rows = DAMAGED.map((row) => ({ ...row, directory: newDirectory() }));
  for (const { directory, name, damage } of rows) {
    await use(directory, [name, 'whole']);
    const file = fs.readdirSync(directory).find((entry) => entry.endsWith('.info') && entry !== 'v1-whole.info');
    damage(path.join(directory, file));
    fs.writeFileSync(path.join(directory, 'foreign.info'), '');
    age(path.join(directory, file));
  }
  const printed = (...args) => sablockAll(rows.map(({ directory }) => [args[0], directory, ...args.slice(1)]));
  const [json, table] = [printed('locks', '--json'), printed('locks')];
  for (const { directory } of rows) ageAll(directory);
  const cleaned = printed('clean');
  for (const { directory } of rows) ageAll(directory);
  const unmarked = printed('clean', '--marks');
  return rows.map(({ directory }, index) => ({
    ...Object.fromEntries(
      Object.entries({ json, table, cleaned, unmarked }).map(([key, all]) => [key, all[index].stdout]),
    ),
    files: fs.readdirSync(directory),
  }));
}

let damaged;
for (const [index, { what, name, listed }] of DAMAGED.entries()) {
  test(
    `a record that ${what} is a mark: locks lists it, and clean removes it with --marks (${name})`,
    SETTINGS,
    async () => {
      damaged ??= damageAll();
      const { json, table, cleaned, unmarked, files } = (await damaged)[index];
      const [{ name: shown, ...row }, ...others] = JSON.parse(json);
      assert.match(shown, listed instanceof RegExp ? listed : new RegExp(`^${listed}$`));
      const since = new Date(0).toISOString();
      assert.deepEqual(row, { mode: 'exclusive', pid: null, threadId: null, since, alive: false, marked: true });
      assert.deepEqual(others, []);
      assert.match(table, / exclusive +- +- +1970\S+ +no +abandoned\n$/);
      assert.equal(cleaned, '1 removed\n', 'the whole one');
      assert.equal(unmarked, '1 removed\n');
      assert.deepEqual(files, ['foreign.info']);
    },
  );
}

/** Put where a file of a name is expected. Whoever reads a pipe that nobody writes reads for ever. */
const NO_FILES = {
  'a pipe': (file) => spawnSync('mkfifo', [file]),
  'a folder': (file) => fs.mkdirSync(file),
  'a link': (file) => {
    fs.writeFileSync(`${file}.target`, '');
    fs.symlinkSync(`${file}.target`, file);
  },
};

for (const [what, put] of Object.entries(NO_FILES)) {
  test(`${what} in the place of a record is nobody's, and in that of a lock keeps no other name from being cleaned`, {
    ...SETTINGS,
    skip: process.platform === 'win32',
  }, async () => {
    const directory = newDirectory();
    await use(directory, ['a', 'z']);
    put(path.join(directory, 'v1-record.info'));
    put(path.join(directory, 'v1-lock.lock'));
    assert.deepEqual(await new LockManager({ directory }).query(), { held: [], pending: [] });
    ageAll(directory);
    const [table, json, { stdout, stderr, status }] = sablockAll([
      ['locks', directory],
      ['locks', directory, '--json'],
      ['clean', directory, '--marks'],
    ]);
    assert.equal(table.status, 0);
    assert.deepEqual(JSON.parse(json.stdout), []);
    assert.deepEqual([stdout, status], ['2 removed\n', 1]);
    assert.match(stderr, /Cannot lock the named lock 'lock' in /);
    const left = fs.readdirSync(directory).filter((file) => !file.endsWith('.target'));
    assert.deepEqual(left.sort(), ['v1-lock.lock', 'v1-record.info']);
  });
}

/** Writes a record that was changed, with the checksum that belongs to it. */
const rewrite = (file, change) => {
  const record = change(fs.readFileSync(file).subarray(0, -8));
  fs.writeFileSync(file, Buffer.concat([record, createHash('sha256').update(record).digest().subarray(0, 8)]));
};
/** A change of one byte. */
const withByte = (at, byte) => (file) =>
  rewrite(file, (record) => {
    record[at] = byte;
    return record;
  });

test('a record of the first version, which had no fence, is read as one of the second', SETTINGS, async () => {
  const directory = newDirectory();
  await use(directory, ['clean']);
  sablock('run', 'marked', '--directory', directory, ...sh('kill -KILL $$'));
  for (const name of ['clean', 'marked']) {
    rewrite(path.join(directory, `v1-${name}.info`), (record) => {
      const first = Buffer.concat([record.subarray(0, 64), record.subarray(72)]);
      first[7] = 1;
      return first;
    });
  }
  const listed = JSON.parse(sablock('locks', directory, '--json').stdout);
  assert.deepEqual(
    listed.map(({ name, pid, marked }) => [name, pid > 0, marked]),
    [['marked', true, true]],
  );
});

/** Records whose checksum is right, of another format than there is. */
const OF_ANOTHER_FORMAT = {
  'has flags that there are none of': withByte(8, 8),
  'says that nobody holds it, outside of all code': withByte(8, 4),
  'is of a version that is not known': withByte(7, 3),
  'begins with another word': withByte(0, 0x53),
  'is longer than its name': (file) => rewrite(file, (record) => Buffer.concat([record, Buffer.from('x\0')])),
};

test('a record of another format is a mark of nobody known, though its checksum is right', SETTINGS, async () => {
  const directory = newDirectory();
  const changes = Object.entries(OF_ANOTHER_FORMAT);
  await use(
    directory,
    changes.map(([what]) => what),
  );
  for (const [what, change] of changes) {
    const file = fs
      .readdirSync(directory)
      .find((entry) => entry === `v1-${encodeURIComponent(what).toLowerCase()}.info`);
    change(path.join(directory, file));
  }
  const listed = JSON.parse(sablock('locks', directory, '--json').stdout);
  assert.deepEqual(
    listed.map(({ name, pid, threadId, alive, marked }) => [name, pid, threadId, alive, marked]).sort(),
    changes.map(([what]) => [what, null, null, false, true]).sort(),
  );
});

test(
  'clean removes what was only shared of names that its files do not tell, unless it is held',
  SETTINGS,
  async () => {
    const directory = newDirectory();
    const manager = new LockManager({ directory });
    const names = [LONG, '\ud800', `${LONG} held`];
    for (const name of names) await manager.request(name, { mode: 'shared' }, () => {});
    const held = await manager.acquireAsync(names[2], { mode: 'shared' });
    ageAll(directory);
    assert.equal(sablock('clean', directory).stdout, '2 removed\n');
    const left = fs.readdirSync(directory);
    assert.match(left.join(), /^v1h-([0-9a-f]{64})\.lock,v1h-\1\.turn$/);
    // The file that a holder has locked is still there.
    assert.equal(sablock('run', names[2], '--directory', directory, '--if-available', 'true').status, 1);
    held.unlock();
    assert.equal(sablock('run', names[2], '--directory', directory, '--if-available', 'true').status, 0);
    await manager.request(LONG, { mode: 'shared' }, () => {});
    ageAll(directory);
    assert.equal(sablock('clean', directory).stdout, '2 removed\n');
    assert.deepEqual(fs.readdirSync(directory), []);
  },
);

test('what cannot be cleaned or listed is said', SETTINGS, () => {
  const missing = path.join(home, 'missing');
  const rows = [
    [2, 'clean', '--all'],
    [2, 'clean', 'one', 'two'],
    [2, 'locks', 'one', 'two'],
    [2, 'locks', '--all'],
    [1, 'clean', __filename],
    [1, 'locks', __filename],
    [1, 'clean', missing],
    [1, 'locks', missing],
  ];
  const outcomes = sablockAll(rows.map(([, ...args]) => args));
  for (const [index, [status, ...args]] of rows.entries()) {
    assert.equal(outcomes[index].status, status, args.join(' '));
    assert.match(outcomes[index].stderr, /^sablock: /);
  }
  assert.ok(!fs.existsSync(missing));
});
