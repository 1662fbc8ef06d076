// `sablock run` among others of its kind: many at once, inside of each other, after one that was killed.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { CLI, sablockAll } = require('../helpers/command-lines.js');
const { createFolder } = require('../helpers/folder.js');
const { limit } = require('../helpers/limits.js');
const { isListed } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { readRecords } = require('../../lib/cli/record.js');

const UNIX = process.platform === 'win32' ? { skip: 'signals are those of Unix' } : needs('preloading');
const SETTINGS = { ...UNIX, timeout: limit(120_000) };

const sablock = (args, env) =>
  spawnSync(process.execPath, [CLI, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    timeout: limit(60_000),
  });
const js = (code) => [process.execPath, '-e', code];
/** As `js`, where any command does: this one starts in no time. */
const sh = (script) => ['sh', '-c', script];
const KILLED = sh('kill -KILL $$');
const run = (directory, name, ...rest) => ['run', name, '--directory', directory, ...rest];

/** Resolves with its exit code and what it printed; `onError` gets what comes to stderr. */
function start(t, args, onError, options) {
  const child = spawn(process.execPath, [CLI, ...args], options);
  t.after(() => child.kill('SIGKILL'));
  const seen = { child, stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      seen[name] += text;
      if (name === 'stderr') onError?.(seen.stderr);
    });
  }
  seen.ended = new Promise((resolve) => child.once('close', (code) => resolve({ ...seen, code })));
  return seen;
}

/** One whose command runs until its stdin ends. */
async function startHolder(t, directory, name, ...options) {
  const command = sh('printf ready; exec cat >/dev/null');
  const holder = start(t, [...run(directory, name, ...options), '--', ...command]);
  await new Promise((resolve) => holder.child.stdout.once('data', resolve));
  return holder;
}

test('a command line that cannot be understood is refused with exit code 2, and nothing runs', SETTINGS, (t) => {
  const place = ['--directory', createFolder(t)];
  const printf = ['--', 'printf', 'ran'];
  const rows = [
    [[], 'run needs a name and a command.'],
    [['a'], 'run needs a name and a command.'],
    [['a', '--'], 'run needs a name and a command.'],
    [['a', '', 'printf'], 'run needs a name and a command.'],
    [['a', ...place, '--timeout'], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', ...place, '--timeout', 'soon', ...printf], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', ...place, '--timeout', '5sec', ...printf], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', ...place, '--timeout', '-5s', ...printf], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', ...place, '--timeout', '1h', ...printf], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', ...place, '--timeout', ...printf], '--timeout needs a time, 5s or 250ms for example.'],
    [['a', '--directory'], '--directory needs a directory.'],
    [['a', '--directory', ...printf], '--directory needs a directory.'],
    [['a', ...place, '--shared', '--mark-consistent', ...printf], '--mark-consistent needs the lock alone.'],
    [['a', ...place, '--share', ...printf], "run does not know --share. Did you mean '--shared'?"],
  ];
  const outcomes = sablockAll(rows.map(([args]) => ['run', ...args]));
  for (const [index, [args, problem]] of rows.entries()) {
    const { status, stdout, stderr } = outcomes[index];
    assert.deepEqual([status, stdout, stderr], [2, '', `sablock: ${problem} See sablock --help.\n`], args.join(' '));
  }
});

for (const mode of [[], ['--shared']]) {
  test(`of many ${mode.join()} at once each runs its command`, SETTINGS, async (t) => {
    const directory = createFolder(t);
    const all = Array.from({ length: 8 }, () => start(t, run(directory, 'many', ...mode, '--', 'true')).ended);
    for (const { code, stderr } of await Promise.all(all))
      assert.deepEqual([code, stderr.replace(/^sablock: Waiting .*\n/gm, '')], [0, '']);
  });
}

const HELD_BY_OUTER = /^sablock: 'nested' is held by the sablock run \(process \d+\) that runs this command/;

const NESTED = {
  'the same name': { refused: true },
  'the same name, below another': { outer: 'below another', refused: true },
  'the same name, shared inside of shared': { outer: 'shared', inner: ['--shared'] },
  'the same name, shared inside of exclusive': { inner: ['--shared'], refused: true },
  'the same name, exclusive inside of shared': { outer: 'shared', refused: true },
  'the same name, if it is available': { inner: ['--if-available'], refused: true, said: /^$/ },
  'another name': { innerName: 'other' },
  'the same name of another directory': { place: 'elsewhere' },
  'the same name, by a link to the directory': { place: 'link', refused: true },
};

/** The outcome of each; the outer ones hold for all that are in them. */
function nestAll() {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'sablock-nested-'));
  const directory = path.join(folder, 'here');
  for (const name of ['here', 'elsewhere']) fs.mkdirSync(path.join(folder, name), { mode: 0o700 });
  fs.symlinkSync(directory, path.join(folder, 'link'));
  const outcomes = {};
  for (const [kind, around] of Object.entries({
    exclusive: [run(directory, 'nested')],
    shared: [run(directory, 'nested', '--shared')],
    'below another': [run(directory, 'nested'), run(directory, 'other')],
  })) {
    const rows = Object.entries(NESTED).filter(([, { outer = 'exclusive' }]) => outer === kind);
    const inside = rows.map(([, { innerName = 'nested', place = 'here', inner = [] }]) => [
      ...run(path.join(folder, place), innerName, ...inner),
      '--',
      'echo',
      'inside',
    ]);
    for (const [index, outcome] of sablockAll(inside, [], around).entries()) outcomes[rows[index][0]] = outcome;
  }
  fs.rmSync(folder, { recursive: true });
  return outcomes;
}

let nested;
for (const [what, { refused = false, said = HELD_BY_OUTER }] of Object.entries(NESTED)) {
  test(`run inside run: ${what} ${refused ? 'is refused at once' : 'runs'}`, SETTINGS, () => {
    nested ??= nestAll();
    const { status, stdout, stderr } = nested[what];
    if (refused) {
      assert.deepEqual([status, stdout], [1, '']);
      assert.match(stderr, said);
    } else {
      assert.deepEqual([status, stdout, stderr], [0, 'inside\n', '']);
    }
  });
}

test(
  'a variable of an outer run that has ended, or does not hold the lock any more, refuses nothing',
  SETTINGS,
  (t) => {
    const directory = createFolder(t);
    const { stdout } = sablock([...run(directory, 'daemon'), '--', 'printenv', 'SABLOCK_RUN']);
    const [outer] = JSON.parse(stdout);
    // One that shared the lock leaves no record: only its process says that it is there.
    const ended = ['exclusive', 'shared'].flatMap((mode) => [
      { ...outer, mode },
      // The number of a process that lives, this one's, but of another beginning, and of one that holds nothing.
      { ...outer, mode, pid: process.pid },
      // As systems have it that do not show when a process was started.
      { ...outer, mode, start: null },
    ]);
    const variables = [stdout, ...ended.map((each) => JSON.stringify([each])), 'no JSON', '{}', '[null]'];
    const outcomes = sablockAll(
      variables.map(() => [...run(directory, 'daemon'), '--', 'true']),
      variables.map((variable) => ({ SABLOCK_RUN: variable })),
    );
    for (const [index, variable] of variables.entries()) {
      const { status, stderr } = outcomes[index];
      assert.deepEqual([status, stderr], [0, ''], variable);
    }
    // One that lives counts as ever.
    const command = [
      ...run(directory, 'daemon'),
      '--',
      process.execPath,
      CLI,
      ...run(directory, 'daemon'),
      '--',
      'true',
    ];
    const { status, stderr } = sablock(command, { SABLOCK_RUN: stdout });
    assert.equal(status, 1);
    assert.match(stderr, /is held by the sablock run \(process \d+\) that runs this command/);
  },
);

for (const between of ['', ', inside of another run,', ', itself inside what one that ended has left,']) {
  test(
    `run inside what a killed run has left${between} is refused at once, and lets in who comes when that has ended`,
    SETTINGS,
    async (t) => {
      const directory = createFolder(t);
      const around = between.includes('another') ? [CLI, ...run(directory, 'another'), '--', process.execPath] : [];
      const left = () => sablock([...run(directory, 'orphan'), '--', 'printenv', 'SABLOCK_RUN']).stdout;
      const options = between.includes('ended') ? { env: { ...process.env, SABLOCK_RUN: left() } } : undefined;
      const inner = [...around, CLI, ...run(directory, 'orphan'), '--', 'echo', 'inside'];
      const tried = [CLI, ...run(directory, 'orphan', '--if-available'), '--', 'echo', 'inside'];
      // Waits until its run was killed, then runs another.
      const source = `
    const { spawnSync } = require('node:child_process');
    process.stdout.write('ready');
    process.stdin.resume().on('end', () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ${JSON.stringify(inner)}, { encoding: 'utf8', timeout: 30_000 });
      const { output, ...ofTried } = spawnSync(process.execPath, ${JSON.stringify(tried)}, { encoding: 'utf8', timeout: 30_000 });
      const tried = [ofTried.status, ofTried.stdout, ofTried.stderr];
      process.stdout.write(JSON.stringify({ status, stdout, stderr, tried, variable: process.env.SABLOCK_RUN }));
    });`;
      const outer = start(t, [...run(directory, 'orphan'), '--', ...js(source)], undefined, options);
      await new Promise((resolve) => outer.child.stdout.once('data', resolve));
      const exited = new Promise((resolve) => outer.child.once('exit', resolve));
      outer.child.kill('SIGKILL');
      await exited;
      outer.child.stdin.end();
      const { stdout } = await outer.ended;
      const result = JSON.parse(stdout.slice('ready'.length));
      assert.deepEqual([result.status, result.stdout], [1, '']);
      assert.match(
        result.stderr,
        /^sablock: 'orphan' is held by what a sablock run \(process \d+\) that was killed has left/,
      );
      assert.deepEqual(result.tried, [1, '', ''], 'where it is not waited for');
      // A daemon keeps the variable for ever: once nothing holds the lock any more, that refuses nothing.
      const after = sablock([...run(directory, 'orphan'), '--', 'echo', 'in'], {
        SABLOCK_RUN: result.variable,
      });
      assert.deepEqual([after.status, after.stdout], [0, 'in\n']);
    },
  );
}

/** All that it says: it waits no longer. */
const TIMED_OUT = /^sablock: .* timed out after 50 ms.*\n$/;

for (const [what, end] of Object.entries({
  'has ended': '',
  'was killed, as its command has ended,': 'kill -KILL $PPID',
})) {
  test(`a run that has the variable of one that ${what} waits for who shares the lock now`, SETTINGS, async (t) => {
    const directory = createFolder(t);
    const { stdout } = sablock([...run(directory, 'shared'), '--', ...sh(`printenv SABLOCK_RUN; ${end}`)]);
    const holder = await startHolder(t, directory, 'shared', '--shared');
    const variable = { SABLOCK_RUN: stdout };
    let waited;
    let tries = 0;
    do {
      waited = sablock([...run(directory, 'shared', '--timeout', '50ms'), '--', 'true'], variable);
      assert.equal(waited.status, 1);
      tries += 1;
      // While locks of others go the system's list may lack one, which may be the orphan's then.
    } while (tries < 5 && !TIMED_OUT.test(waited.stderr));
    if (end === '' || isListed(directory, [holder.child])) assert.match(waited.stderr, TIMED_OUT);
    holder.child.stdin.end();
    await holder.ended;
    assert.equal(sablock([...run(directory, 'shared'), '--', 'echo', 'in'], variable).stdout, 'in\n');
  });
}

test('a run that waits says so after a second, with the process that holds the lock', SETTINGS, async (t) => {
  const directory = createFolder(t);
  const holder = await startHolder(t, directory, 'awaited');
  const waiting = start(t, [...run(directory, 'awaited'), '--', 'true'], () => holder.child.stdin.end());
  const { code, stderr } = await waiting.ended;
  assert.equal(code, 0);
  assert.equal(stderr, `sablock: Waiting for 'awaited', which process ${holder.child.pid} holds ...\n`);
  assert.equal((await holder.ended).code, 0);
});

test('a signal ends a run that still waits, whose command never runs', SETTINGS, async (t) => {
  const directory = createFolder(t);
  const holder = await startHolder(t, directory, 'awaited');
  const waiting = start(t, [...run(directory, 'awaited'), '--', 'echo', 'ran'], () => waiting.child.kill('SIGTERM'));
  const { signalCode } = await new Promise((resolve) => waiting.child.once('close', () => resolve(waiting.child)));
  assert.deepEqual([signalCode, waiting.stdout], ['SIGTERM', '']);
  holder.child.stdin.end();
  assert.equal((await holder.ended).code, 0);
  // It was not let in, so that it leaves no mark.
  assert.equal(sablock(['locks', directory]).stdout, '');
});

test('a run that waits for who shares the lock names no process, since none is known', SETTINGS, async (t) => {
  const directory = createFolder(t);
  const holder = await startHolder(t, directory, 'read', '--shared');
  const waiting = start(t, [...run(directory, 'read'), '--', 'true'], () => holder.child.stdin.end());
  const { code, stderr } = await waiting.ended;
  assert.deepEqual([code, stderr], [0, "sablock: Waiting for 'read' ...\n"]);
});

test('a run that did not wait for long says nothing, however long its command runs', SETTINGS, (t) => {
  const { status, stderr } = sablock([...run(createFolder(t), 'free'), '--', 'sleep', '1.5']);
  assert.deepEqual([status, stderr], [0, '']);
});

test('a timeout has units, and is in seconds without one', SETTINGS, async (t) => {
  const directory = createFolder(t);
  const holder = await startHolder(t, directory, 'busy');
  const rows = [
    ['40ms', 40],
    ['0.04s', 40],
    ['0.04', 40],
    ['0.001m', 60],
  ];
  const outcomes = sablockAll(
    rows.map(([text]) => [...run(directory, 'busy', '--timeout', text), '--', 'echo', 'ran']),
  );
  for (const [index, [text, ms]] of rows.entries()) {
    const { status, stdout, stderr } = outcomes[index];
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, new RegExp(`^sablock: .* timed out after ${ms} ms`), text);
  }
  holder.child.stdin.end();
  await holder.ended;
});

test('a directory that cannot be used is said, and the command does not run', SETTINGS, () => {
  const { status, stdout, stderr } = sablock([...run(__filename, 'job'), '--', 'echo', 'ran']);
  assert.deepEqual([status, stdout], [1, '']);
  assert.ok(stderr.startsWith(`sablock: Cannot keep locks in '${__filename}': `), stderr);
});

test('options are those before the command, also before the name; what comes later is its own', SETTINGS, (t) => {
  const directory = createFolder(t);
  const words = ['echo', '--shared', '--', '--timeout', 'x'];
  const lines = [
    ['run', '--directory', directory, '--timeout', '5s', 'job', ...words],
    ['run', 'job', '--directory', directory, ...words],
    ['run', '--directory', directory, 'job', '--', ...words],
  ];
  for (const [index, { status, stdout, stderr }] of sablockAll(lines).entries()) {
    assert.deepEqual([status, stdout, stderr], [0, '--shared -- --timeout x\n', ''], lines[index].join(' '));
  }
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']) {
  test(`${signal} goes to the command, which may end with a code of its own`, SETTINGS, async (t) => {
    const directory = createFolder(t);
    const command = sh(`trap 'exit 9' ${signal.slice(3)}; printf ready; while :; do sleep 0.05; done`);
    // A process of no terminal: in the foreground of one the command would get some of them from that.
    const running = start(t, [...run(directory, 'signalled'), '--', ...command], undefined, { detached: true });
    await new Promise((resolve) => running.child.stdout.once('data', resolve));
    running.child.kill(signal);
    const { code, stderr } = await running.ended;
    assert.deepEqual([code, stderr], [9, '']);
    // The command has ended by itself.
    assert.deepEqual(
      readRecords(directory).map(({ name, isClean }) => [name, isClean]),
      [['signalled', true]],
    );
  });
}

test('the message of a run that was not let in names options of the command line', SETTINGS, async (t) => {
  const directory = createFolder(t);
  const holder = await startHolder(t, directory, 'busy');
  const { status, stderr } = sablock([...run(directory, 'busy', '--timeout', '50ms'), '--', 'true']);
  assert.equal(status, 1);
  assert.match(stderr, /--if-available/);
  assert.doesNotMatch(stderr, /ifAvailable/);
  holder.child.stdin.end();
  await holder.ended;
});

test('a command learns of the mark of one that a signal ended, and may take it off', SETTINGS, (t) => {
  const directory = createFolder(t);
  const show = (...options) => [...run(directory, 'job', ...options), '--', ...sh(`echo \${SABLOCK_ABANDONED-clean}`)];
  const OUTER = { SABLOCK_ABANDONED: '1' };
  assert.equal(sablock(show(), OUTER).stdout.trim(), 'clean', 'what an outer one had is none of this one');
  sablock([...run(directory, 'job'), '--', ...KILLED]);
  const lines = [
    show(),
    show('--shared'),
    // A repair that fails leaves it.
    [...run(directory, 'job', '--mark-consistent'), '--', 'false'],
    show(),
    show('--mark-consistent'),
    show(),
    show('--shared', '--mark-consistent'),
  ];
  const outcomes = sablockAll(lines, Array(lines.length).fill(OUTER));
  assert.deepEqual(
    outcomes.map(({ stdout }) => stdout.trim()),
    ['1', '1', '', '1', '1', 'clean', ''],
  );
  assert.equal(outcomes.at(-1).status, 2);
});

test('the warning of a mark is one for who runs commands', SETTINGS, (t) => {
  const rows = [
    [[], 'The mark goes with a run --mark-consistent that ends with 0.'],
    [['--shared'], 'The mark goes with a run --mark-consistent that ends with 0.'],
    [['--mark-consistent'], 'If it ends with 0, the mark goes.'],
  ];
  const [unheard, ...directories] = Array.from({ length: rows.length + 1 }, () => createFolder(t));
  const { status } = spawnSync(process.execPath, [
    '-e',
    `const { LockManager } = require(${JSON.stringify(path.join(__dirname, '..', '..'))});
     const take = (directory) => new LockManager({ directory }).acquireAsync('job');
     Promise.all(process.argv.slice(1).map(take)).then(() => process.exit(7));`,
    unheard,
    ...directories,
  ]);
  assert.equal(status, 7);
  assert.equal(sablock([...run(unheard, 'job'), '--', 'true'], { NODE_NO_WARNINGS: '1' }).stderr, '');
  const outcomes = sablockAll(
    rows.map(([options], index) => [...run(directories[index], 'job', ...options), '--', 'true']),
  );
  for (const [index, [, advice]] of rows.entries()) {
    const [text, ...rest] = outcomes[index].stderr.split('\n');
    assert.match(
      text,
      /^sablock: Process \d+ ended while it held the named lock 'job': what it did may be half done\. /,
    );
    assert.ok(text.endsWith(`The command has SABLOCK_ABANDONED=1. ${advice}`), text);
    assert.deepEqual(rest, ['']);
  }
});

test('an option that a command does not know is answered with the one that is meant', SETTINGS, () => {
  const rows = [
    [['run', 'job', '--if-avaliable', 'true'], '--if-avaliable', '--if-available'],
    [['locks', '--jsn'], '--jsn', '--json'],
    [['clean', '--mark'], '--mark', '--marks'],
  ];
  const outcomes = sablockAll(rows.map(([args]) => args));
  for (const [index, [args, option, meant]] of rows.entries()) {
    const { status, stderr } = outcomes[index];
    assert.equal(status, 2);
    assert.ok(stderr.startsWith(`sablock: ${args[0]} does not know ${option}. Did you mean '${meant}'?`), stderr);
  }
});

test('locks lists marks, and clean removes them only with --marks', SETTINGS, (t) => {
  const directory = createFolder(t);
  sablock([...run(directory, 'marked'), '--', ...KILLED]);
  const listing = ['locks', directory, '--json'];
  const listed = ({ stdout }) => JSON.parse(stdout).map(({ name, alive, marked }) => [name, alive, marked]);
  // The command that comes across it leaves it.
  const [atFirst, , comeAcross] = sablockAll([listing, [...run(directory, 'marked'), '--', 'true'], listing]);
  assert.deepEqual(listed(atFirst), [['marked', false, true]]);
  assert.deepEqual(listed(comeAcross), [['marked', false, true]]);
  const clean = (...args) => {
    for (const file of fs.readdirSync(directory)) fs.utimesSync(path.join(directory, file), new Date(0), new Date(0));
    const [cleaned, left] = sablockAll([['clean', directory, ...args], listing]);
    return [cleaned.stdout, listed(left)];
  };
  assert.deepEqual(clean(), ['0 removed\n', [['marked', false, true]]]);
  assert.deepEqual(clean('--marks'), ['1 removed\n', []]);
  assert.deepEqual(fs.readdirSync(directory), []);
});
