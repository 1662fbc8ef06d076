// The doctor from outside: `--require`, `--import` and `npx sablock doctor`, on programs that are broken and on programs that
// are not.

const assert = require('node:assert/strict');
const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { test } = require('node:test');
const { DOCTOR } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');

const root = path.join(__dirname, '..', '..');
const EXAMPLES = path.join(root, 'examples');
const CLI = path.join(root, 'lib', 'doctor', 'cli.js');
const LIMIT = { timeout: 60_000 };
const PRELOADS = { ...LIMIT, ...needs('preloading') };
const WIDTH = 80;

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-doctor-'));
fs.mkdirSync(path.join(home, 'node_modules'));
fs.symlinkSync(root, path.join(home, 'node_modules', 'sablock'), 'junction');
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }));

/** Runs Node.js until it ends, or until `isEnough(stderr, child)`, which ends it. */
function run(args, { isEnough, env } = {}) {
  const { NODE_TEST_CONTEXT, ...rest } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: home, env: { ...rest, ...env } });
    const output = { stdout: '', stderr: '' };
    const timer = setTimeout(() => child.kill('SIGKILL'), 40_000);
    let isKilled = false;
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
        if (isKilled || !isEnough?.(output[name], child)) return;
        isKilled = true;
        child.kill('SIGTERM');
      });
    }
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ ...output, code, signal });
    });
  });
}

/** A broken example, in a folder where `sablock` is installed. */
function broken(name) {
  const file = path.join(home, name);
  fs.copyFileSync(path.join(EXAMPLES, 'broken', name), file);
  return file;
}

const write = (name, text) => {
  fs.writeFileSync(path.join(home, name), text);
  return name;
};

const firstLines = (text) => {
  const lines = text.split('\n');
  for (const line of lines) assert.ok(line.length <= WIDTH, `a line of ${line.length}: ${line}`);
  return lines.slice(0, 10).join('\n');
};

/** `--require sablock/doctor`, as a user types it. */
const PRELOAD = ['--require', 'sablock/doctor'];

test('two orders in two threads are named with both places', PRELOADS, async () => {
  const { code, stdout, stderr } = await run([...PRELOAD, broken('two-orders.js')]);
  assert.equal(code, 0);
  assert.equal(stdout, 'all paid\n');
  const lines = firstLines(stderr);
  assert.match(lines, /^sablock doctor: 1 lock order that can deadlock$/m);
  assert.match(lines, /Mutex "alice", then Mutex "bob"/);
  assert.match(lines, /Mutex "bob", then Mutex "alice"/);
  assert.equal(lines.match(/thread [12] {2}transfer \(two-orders\.js:\d+:\d+\)/g).length, 4);
});

test('a nested executeLocked() is named with both places while it hangs', {
  ...LIMIT,
  ...needs('async stacks', 'preloading'),
}, async () => {
  const { stderr } = await run([...PRELOAD, broken('nested.js')], { isEnough: (text) => text.includes('wanted by') });
  const lines = firstLines(stderr);
  assert.match(lines, /DEADLOCK \(certain\)/);
  assert.match(lines, /Mutex "session"/);
  assert.match(lines, /held by .* getUser \(nested\.js:\d+:\d+\)/);
  assert.match(lines, /wanted by .* refreshToken \(nested\.js:\d+:\d+\)/);
});

test('a slow holder is named with its place, and who waited for it', PRELOADS, async () => {
  const { code, stdout, stderr } = await run([...PRELOAD, broken('slow-holder.js')]);
  assert.equal(code, 0);
  assert.equal(stdout, 'rows: 10000\n');
  const lines = firstLines(stderr);
  assert.match(lines, /LONG HOLD: Mutex "rows", \d+ ms/);
  assert.match(lines, /held by .* writeReport \(slow-holder\.js:\d+:\d+\)/);
  assert.match(lines, /Mutex "rows": \d+ waits, .* in all/);
  assert.match(lines, /waited .* addRow \(slow-holder\.js:\d+:\d+\)/);
});

test('npx sablock doctor runs the program, and has its exit code and output', PRELOADS, async () => {
  write('fails.js', "console.log(process.argv.slice(2).join()); console.error('its own'); process.exitCode = 3;");
  const { code, stdout, stderr } = await run([CLI, 'doctor', 'fails.js', 'one', 'two']);
  assert.equal(code, 3);
  assert.equal(stdout, 'one,two\n');
  assert.equal(stderr, 'its own\n');
});

test('npx sablock without a program says how to use it', LIMIT, async () => {
  for (const args of [[], ['doctor'], ['nurse', 'app.js']]) {
    const { code, stderr } = await run([CLI, ...args]);
    assert.equal(code, 2);
    assert.match(stderr, /^Usage: sablock doctor/);
  }
});

test('npx sablock doctor prints the report on SIGUSR2', {
  ...PRELOADS,
  ...(process.platform === 'win32' && { skip: true }),
}, async () => {
  write(
    'waits.js',
    `const { Mutex } = require('sablock');
     const lock = new Mutex(new SharedArrayBuffer(4), 0, { name: 'queue' });
     lock.executeLocked(() => new Promise((resolve) => setTimeout(resolve, 20)));
     lock.executeLocked(() => console.log('ready'));
     setInterval(() => {}, 1000);`,
  );
  let isAsked = false;
  const isEnough = (text, child) => {
    if (text.includes('ready') && !isAsked) {
      isAsked = true;
      child.kill('SIGUSR2');
    }
    return text.includes('Mutex "queue": 1 wait');
  };
  const { stderr } = await run([CLI, 'doctor', 'waits.js'], { isEnough });
  assert.match(stderr, /^sablock doctor: /);
});

test("a program's own listener of SIGUSR2 is left alone", {
  ...PRELOADS,
  ...(process.platform === 'win32' && { skip: 'no signals on Windows' }),
}, async () => {
  write(
    'listens.js',
    `process.on('SIGUSR2', () => { console.log('mine'); process.exit(0); });
     console.log('ready');
     setInterval(() => {}, 1000);`,
  );
  let isAsked = false;
  const isEnough = (text, child) => {
    if (text.includes('ready') && !isAsked) {
      isAsked = true;
      child.kill('SIGUSR2');
    }
    return false;
  };
  const { code, stdout, stderr } = await run([CLI, 'doctor', 'listens.js'], { isEnough });
  assert.equal(code, 0);
  assert.equal(stdout, 'ready\nmine\n');
  assert.equal(stderr, '');
});

test('the report is printed while all threads are blocked', PRELOADS, async () => {
  write(
    'blocked.js',
    `const { Worker, isMainThread, workerData } = require('node:worker_threads');
     const { Mutex } = require('sablock');
     const memory = workerData ?? new SharedArrayBuffer(4);
     const lock = new Mutex(memory, 0, { name: 'gate', allowMainThread: true });
     if (isMainThread) {
       lock.lock();
       new Worker(__filename, { workerData: memory }).once('online', () => {
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
       });
     } else {
       (function wantsGate() { lock.lock(); })();
     }`,
  );
  const { stderr } = await run([...PRELOAD, 'blocked.js'], {
    isEnough: (text, child) => text.includes('wanted by') && child.kill('SIGKILL'),
  });
  const lines = firstLines(stderr);
  assert.match(lines, /^STUCK: Mutex "gate", 1 waits$/m);
  assert.match(lines, /held by {3}thread 0 {2}.*blocked\.js:6:/);
  assert.match(lines, /wanted by thread 1 {2}wantsGate \(blocked\.js:/);
});

test('--import and NODE_OPTIONS reach the program too', PRELOADS, async () => {
  const file = broken('two-orders.js');
  const url = pathToFileURL(DOCTOR).href;
  const ways = [{ args: ['--import', url] }, { args: [], env: { NODE_OPTIONS: `--require ${DOCTOR}` } }];
  for (const { args, env } of ways) {
    const { stderr } = await run([...args, file], { env });
    assert.match(stderr, /^sablock doctor: 1 lock order that can deadlock$/m);
  }
});

test('a program that requires sablock/doctor is not watched before it calls start()', LIMIT, async () => {
  write(
    'starts.js',
    `const { start } = require('sablock/doctor');
     const { Mutex } = require('sablock');
     const before = Mutex.prototype.lock;
     const doctor = start();
     console.log(Mutex.prototype.lock === before, start() === doctor);
     doctor.stop();
     console.log(Mutex.prototype.lock === before, start() === doctor);`,
  );
  const { stdout, stderr } = await run(['starts.js']);
  assert.equal(stdout, 'false true\ntrue false\n');
  assert.equal(stderr, '');
});

test('sablock alone loads nothing of the doctor', LIMIT, () => {
  const program = `require('sablock'); console.log(Object.keys(require.cache).filter((file) => /[\\\\/]lib[\\\\/]doctor[\\\\/]/.test(file)).length)`;
  assert.equal(execFileSync(process.execPath, ['-e', program], { cwd: home, encoding: 'utf8' }), '0\n');
});

for (const file of fs.readdirSync(EXAMPLES).filter((name) => name.endsWith('.js') && name !== 'run.js')) {
  test(`nothing is reported of the example ${file}, which ends as ever`, {
    ...PRELOADS,
    timeout: 120_000,
  }, async () => {
    const { code, stderr } = await run(['--require', DOCTOR, path.join(EXAMPLES, file)]);
    assert.equal(stderr, '');
    assert.equal(code, 0);
  });
}
