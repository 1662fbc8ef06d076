// The doctor from outside: `--require`, `--import` and `npx sablock doctor`, on programs that are broken and on programs that
// are not.

const assert = require('node:assert/strict');
const { execFileSync, spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const { constants } = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { test } = require('node:test');
const { CLI, sablockAll } = require('../helpers/command-lines.js');
const { DOCTOR } = require('../helpers/doctor.js');
const { PRELOAD, firstLines, home, root, run, write } = require('../helpers/doctored-programs.js');
const { BINARY, installJs } = require('../helpers/installs.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const EXAMPLES = path.join(root, 'examples');
const LIMIT = { timeout: limit(60_000) };
const PRELOADS = { ...LIMIT, ...needs('preloading') };

/** A broken example, in a folder where `sablock` is installed. */
function broken(name) {
  const file = path.join(home, name);
  fs.copyFileSync(path.join(EXAMPLES, 'broken', name), file);
  return file;
}

test('two orders in two threads are named with both places', PRELOADS, async () => {
  const { code, stdout, stderr } = await run([...PRELOAD, broken('two-orders.js')]);
  assert.equal(code, 0);
  assert.equal(stdout, 'all paid\n');
  const lines = firstLines(stderr);
  assert.match(lines, /^sablock doctor: 1 lock order that can deadlock\b/m);
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
  assert.match(lines, /DEADLOCK \(likely\)/);
  assert.match(lines, /Mutex "session"/);
  assert.match(lines, /held by .* getUser \(nested\.js:\d+:\d+\)/);
  assert.match(lines, /wanted by .* refreshToken \(nested\.js:\d+:\d+\)/);
  assert.match(lines, /^ {2}Not certain: .*may still unlock one\.$/m);
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

test('npx sablock without a program says how to use it', LIMIT, () => {
  for (const { status, stderr } of sablockAll([[], ['doctor'], ['nurse', 'app.js']])) {
    assert.equal(status, 2);
    assert.match(stderr, /^(?:Usage: )?sablock/i);
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

const UNIX = { ...PRELOADS, ...(process.platform === 'win32' && { skip: 'no signals on Windows' }) };

/** Sends signals, one right after the other, once stdout says that the program is ready. */
const onReady = (...signals) => {
  let isSent = false;
  return (text, child) => {
    if (text.includes('ready') && !isSent) {
      isSent = true;
      for (const signal of signals) child.kill(signal);
    }
    return false;
  };
};

/** The main thread is blocked, and for good. */
const HANGS = `
  const fs = require('node:fs');
  const { Worker, isMainThread, workerData } = require('node:worker_threads');
  const { Mutex } = require('sablock');
  const memory = workerData ?? new SharedArrayBuffer(8);
  const gate = new Mutex(memory, 0, { name: 'gate', allowMainThread: true });
  if (isMainThread) {
    new Worker(__filename, { workerData: memory });
    const flag = new Int32Array(memory, 4, 1);
    Atomics.wait(flag, 0, 0);
    gate.lock();
  } else {
    gate.lock();
    const flag = new Int32Array(memory, 4, 1);
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
    while (gate.inspect().waiters.length === 0);
    fs.writeSync(1, 'ready');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }`;

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`${signal} prints the report of a program whose main thread is blocked, and ends it`, UNIX, async () => {
    const outcome = await run([...PRELOAD, write('hangs.js', HANGS)], { isEnough: onReady(signal) });
    assert.deepEqual([outcome.code, outcome.signal], [null, signal]);
    // On a busy machine it is a long hold, too.
    assert.match(outcome.stderr, /^sablock doctor: .*\n?.*(?:1 wait now|Mutex "gate")/m);
  });
}

test('SIGUSR2 prints the report while the main thread is blocked', UNIX, async () => {
  let isAsked = false;
  const isEnough = (text, child) => {
    if (text === 'ready' && !isAsked) isAsked = child.kill('SIGUSR2');
    return text.startsWith('sablock doctor: ');
  };
  const { stderr } = await run([CLI, 'doctor', write('hangs.js', HANGS)], { isEnough });
  assert.match(stderr, /1 wait now|Mutex "gate"/);
});

test('a SIGUSR2 that comes to a group prints one report, though sablock doctor hands it on', {
  ...UNIX,
  ...(process.execve !== undefined && { skip: 'sablock doctor becomes the program' }),
}, async (t) => {
  const program = write(
    'group.js',
    `require('sablock');
     // It is handed on with the other: what that prints is there by then.
     process.on('SIGUSR1', () => setTimeout(() => console.log('later'), 200));
     require('node:fs').writeSync(1, 'ready');
     setInterval(() => {}, 1000);`,
  );
  const child = spawn(process.execPath, [CLI, 'doctor', program], { cwd: home, detached: true });
  t.after(() => process.kill(-child.pid, 'SIGKILL'));
  await once(child.stdout, 'data');
  let isOnce = false;
  // On a busy machine it may be handed on so late that it counts as another one.
  for (let tries = 0; tries < 5 && !isOnce; tries++) {
    let printed = '';
    const note = (text) => {
      printed += text;
    };
    child.stderr.on('data', note);
    child.kill('SIGSTOP');
    process.kill(-child.pid, 'SIGUSR2');
    await once(child.stderr, 'data');
    const later = once(child.stdout, 'data');
    child.kill('SIGUSR1');
    child.kill('SIGCONT');
    await later;
    child.stderr.off('data', note);
    isOnce = printed.match(/^sablock doctor: /gm).length === 1;
  }
  assert.ok(isOnce);
});

test("SIGUSR2 is the program's own where the doctor was not asked to listen to it", UNIX, async () => {
  const outcome = await run([...PRELOAD, write('hangs.js', HANGS)], { isEnough: onReady('SIGUSR2') });
  assert.deepEqual([outcome.signal, outcome.stderr], ['SIGUSR2', '']);
});

test('a signal that comes right before another one ends the program all the same', UNIX, async () => {
  const isEnough = onReady('SIGTERM', 'SIGUSR2');
  const { code, signal } = await run([CLI, 'doctor', write('hangs.js', HANGS)], { isEnough });
  // A program that `sablock doctor` becomes ends by the signal itself.
  assert.equal(code ?? 128 + constants.signals[signal], 128 + constants.signals.SIGTERM);
});

/** The doctor is in front of a new listener at once. */
const READY = "require('node:fs').writeSync(1, 'ready');";

test("a program's own listener gets the signal once, and the report is printed all the same", UNIX, async () => {
  write(
    'listens.js',
    `const { Mutex } = require('sablock');
     const lock = new Mutex(new SharedArrayBuffer(4));
     lock.tryLock();
     lock.lockAsync();
     let count = 0;
     process.on('SIGINT', () => {
       count += 1;
       setTimeout(() => process.exit(count), 200);
     });
     ${READY}`,
  );
  const { code, stderr } = await run([...PRELOAD, 'listens.js'], { isEnough: onReady('SIGINT') });
  assert.equal(code, 1);
  assert.match(stderr, /^sablock doctor: /);
});

/** A program in which something waits. */
const WAITS = `const { Latch } = require('sablock');
     const latch = new Latch(new SharedArrayBuffer(Latch.BYTES));
     latch.add();
     latch.waitAsync();`;

for (const [index, [title, before]] of [
  ['a listener that ends the program at once leaves time for the report', ''],
  [
    'a listener that is called once ends the program in its own way, however long it takes for that',
    // Meanwhile the report is printed.
    'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);',
  ],
].entries()) {
  test(title, UNIX, async () => {
    const name = `leaves-${index}.js`;
    write(name, `${WAITS} process.once('SIGTERM', () => { ${before} process.exit(7); }); ${READY}`);
    const { code, stderr } = await run([...PRELOAD, name], { isEnough: onReady('SIGTERM') });
    assert.equal(code, 7);
    assert.match(stderr, /^sablock doctor: .*1 wait now$/m);
  });
}

test('a signal that comes right after the last listener of it has gone prints the report', UNIX, async () => {
  write(
    'goes.js',
    `${WAITS}
     const listener = () => {};
     process.on('SIGTERM', listener);
     process.off('SIGTERM', listener);
     process.kill(process.pid, 'SIGTERM');`,
  );
  const { signal, stderr } = await run([...PRELOAD, 'goes.js']);
  assert.equal(signal, 'SIGTERM');
  assert.match(stderr, /^sablock doctor: .*1 wait now$/m);
});

test('a signal ends a program in which nothing waits without a word', UNIX, async () => {
  write('idles.js', `console.log('ready'); setInterval(() => {}, 1000);`);
  const outcome = await run([...PRELOAD, 'idles.js'], { isEnough: onReady('SIGINT') });
  assert.deepEqual([outcome.signal, outcome.stderr], ['SIGINT', '']);
});

test('start() prints at the end too, unless it is stopped', UNIX, async () => {
  const source = (end) => `
    const { start } = require('sablock/doctor');
    const { Mutex } = require('sablock');
    const doctor = start();
    const memory = new SharedArrayBuffer(8);
    const [a, b] = ['a', 'b'].map((name, index) => new Mutex(memory, 4 * index, { name, allowMainThread: true }));
    for (const [one, other] of [[a, b], [b, a]]) one.executeLockedSync(() => other.executeLockedSync(() => {}));
    ${end}`;
  const [printed, stopped] = [
    await run([write('prints.js', source(''))]),
    await run([write('stops.js', source('doctor.stop()'))]),
  ];
  assert.match(printed.stderr, /^sablock doctor: 1 lock order that can deadlock\b/m);
  assert.equal(stopped.stderr, '');
});

test('names that are stuck, here and in another process, are printed while they are', UNIX, async (t) => {
  const directory = fs.mkdtempSync(path.join(home, 'stuck-'));
  const holder = spawn(process.execPath, [path.join(root, '__test__', 'programs', 'holds-name.js'), directory, 'far']);
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  write(
    'names.js',
    `const { LockManager, locks } = require('sablock');
     require('sablock/doctor').start({ stuckMs: 100, likelyMs: Infinity });
     const [, , directory] = process.argv;
     const manager = directory ? new LockManager({ directory }) : locks;
     if (!directory) locks.request('near', () => new Promise(() => {}));
     manager.request(directory ? 'far' : 'near', () => {});
     setInterval(() => {}, 1000);`,
  );
  const isEnough = (text, child) => text.includes('wanted by') && child.kill('SIGKILL');
  const near = await run(['names.js'], { isEnough });
  assert.match(near.stderr, /^STUCK: lock "near", 1 waiter\n {4}held by {3}thread 0 /m);
  const far = await run(['names.js', directory], { isEnough });
  assert.match(
    far.stderr,
    new RegExp(`^STUCK: lock "far" of the machine, 1 waiter\\n {4}held by {3}process ${holder.pid}, for `, 'm'),
  );
});

test('once it is stopped, a signal ends the program at once and without a word', UNIX, async () => {
  write(
    'goes-on.js',
    `const doctor = require('sablock/doctor').start();
     ${WAITS}
     doctor.stop();
     setInterval(() => {}, 1000);
     process.kill(process.pid, process.argv[2]);`,
  );
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const outcome = await run(['goes-on.js', signal]);
    assert.deepEqual([outcome.signal, outcome.stderr], [signal, '']);
  }
});

test("what the program's own listener of the end gives back is released, whenever it came", UNIX, async () => {
  write(
    'at-exit.js',
    `const { Worker, isMainThread } = require('node:worker_threads');
     const { Mutex } = require('sablock');
     const [, , at, how] = process.argv;
     const [kept, released] = ['kept', 'released'].map((name) => new Mutex(new SharedArrayBuffer(4), 0, { name }));
     const { start } = require('sablock/doctor');
     const listen = () => process.once('exit', () => released.unlock());
     const go = () => {
       if (at === 'before') listen();
       start();
       kept.tryLock();
       released.tryLock();
       if (at === 'after') listen();
       if (at === 'later') setImmediate(listen);
       if (at !== 'at the end') return;
       listen();
       process.exit();
     };
     if (how !== 'worker' || !isMainThread) go();
     else {
       start();
       new Worker(__filename, { argv: [at, how] });
     }`,
  );
  for (const how of ['main', 'worker']) {
    for (const at of ['before', 'after', 'later', 'at the end']) {
      const { stderr } = await run(['at-exit.js', at, how]);
      const lost = Array.from(stderr.matchAll(/^NEVER RELEASED: Mutex "(.*)"/gm), ([, name]) => name);
      // In a worker one that came so late may still release it, as far as is known.
      const isKnown = at !== 'at the end' || how === 'main';
      assert.deepEqual(lost, isKnown ? ['kept'] : [], `${at}, ${how}`);
      assert.equal(stderr.split('sablock doctor: ').length - 1, isKnown ? 1 : 0, 'it is printed once');
    }
  }
});

test(
  'a listener of the end that throws, ends the process or comes again keeps no report from coming',
  UNIX,
  async () => {
    write(
      'keeps.js',
      `const { Mutex } = require('sablock');
     const [, , how] = process.argv;
     const [kept, released] = ['kept', 'released'].map((name) => new Mutex(new SharedArrayBuffer(4), 0, { name }));
     const doctor = require('sablock/doctor').start();
     kept.tryLock();
     released.tryLock();
     const listener = () => {
       released.unlock();
       if (how === 'throws') throw new Error('its own');
       if (how === 'ends') process.exit(7);
     };
     process.on('exit', listener);
     setImmediate(() => {
       if (how === 'stops') doctor.stop();
       if (how !== 'comes again') return;
       process.off('exit', listener);
       process.on('exit', listener);
     });`,
    );
    const runs = await Promise.all(['throws', 'ends', 'comes again', 'stops'].map((how) => run(['keeps.js', how])));
    assert.deepEqual(
      runs.map(({ code }) => code === 0),
      [false, false, true, true],
    );
    assert.equal(runs[1].code, 7);
    const lost = runs.map(({ stderr }) =>
      Array.from(stderr.matchAll(/^NEVER RELEASED: Mutex "(.*)"/gm), ([, name]) => name),
    );
    assert.deepEqual(lost, [['kept'], ['kept'], ['kept'], []]);
  },
);

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
  assert.match(lines, /^STUCK: Mutex "gate", 1 waiter$/m);
  assert.match(lines, /held by {3}thread 0 {2}.*blocked\.js:6:/);
  assert.match(lines, /wanted by thread 1 {2}wantsGate \(blocked\.js:/);
});

test('--import and NODE_OPTIONS reach the program too', PRELOADS, async () => {
  const file = broken('two-orders.js');
  const url = pathToFileURL(DOCTOR).href;
  const ways = [{ args: ['--import', url] }, { args: [], env: { NODE_OPTIONS: `--require ${DOCTOR}` } }];
  for (const { args, env } of ways) {
    const { stderr } = await run([...args, file], { env });
    // On a busy machine a hold may be long.
    assert.match(stderr, /^sablock doctor: 1 lock order that can deadlock\b/m);
  }
});

/** Ways to load it before the program, as Node.js has them. */
const FORMS = [
  ['-r', 'sablock/doctor'],
  ['--require', 'sablock/doctor'],
  ['--require=sablock/doctor'],
  ['--require', DOCTOR],
  ['-r', `./${path.relative(home, DOCTOR)}`],
  [`--import=${pathToFileURL(DOCTOR).href}`],
  ['-r', 'sablock', '-r', 'sablock/doctor'],
];

test(
  'each form in which Node.js is told to load it before the program starts it, also in the environment',
  PRELOADS,
  async () => {
    write(
      'keeps.js',
      `const { Mutex } = require('sablock');
     new Mutex(new SharedArrayBuffer(4), 0, { name: 'kept' }).tryLock();`,
    );
    const inWords = FORMS.slice(0, 3).map((form) => ({ form: [], env: { NODE_OPTIONS: form.join(' ') } }));
    for (const { form, env } of [...FORMS.map((form) => ({ form })), ...inWords]) {
      const { stderr } = await run([...form, 'keeps.js'], { env });
      assert.match(stderr, /^NEVER RELEASED: Mutex "kept"/m, `${form} ${env?.NODE_OPTIONS}`);
    }
    // A module that is loaded before the program may load it for later; the program's own arguments are none of Node.js.
    write('later.js', "require('sablock/doctor');");
    const { stderr } = await run(['-r', './later.js', 'keeps.js', '-r', 'sablock/doctor']);
    assert.equal(stderr, '');
  },
);

test('a folder whose name has spaces keeps the doctor from nothing', PRELOADS, async () => {
  const folder = path.join(home, 'my own programs');
  const copy = path.join(folder, 'node_modules', 'sablock');
  installJs(copy);
  fs.copyFileSync(BINARY, path.join(copy, path.basename(BINARY)));
  const file = path.join(folder, 'two-orders.js');
  fs.copyFileSync(broken('two-orders.js'), file);
  const doctor = path.join(copy, 'lib', 'doctor', 'index.js');
  const ways = [
    { args: [path.join(copy, 'lib', 'cli', 'index.js'), 'doctor'] },
    { args: ['--require', doctor] },
    { args: [], env: { NODE_OPTIONS: `--no-warnings --require ${JSON.stringify(doctor)}` } },
  ];
  for (const { args, env } of ways) {
    const { stderr } = await run([...args, file], { env });
    assert.match(stderr, /^sablock doctor: 1 lock order that can deadlock\b/m, args.join(' '));
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

test('a program that freezes Error runs as without the doctor', PRELOADS, async () => {
  write(
    'freezes.js',
    `Object.freeze(Error);
     require('sablock/doctor').start();
     const { Mutex } = require('sablock');
     const lock = new Mutex(new SharedArrayBuffer(4));
     lock.executeLocked(async () => console.log('done'));`,
  );
  const { code, stdout, stderr } = await run(['freezes.js']);
  assert.deepEqual([code, stdout, stderr], [0, 'done\n', '']);
});

test('a stackTraceLimit of the program, whatever it is, is as before, and places are known', PRELOADS, async () => {
  write(
    'limits.js',
    `const doctor = require('sablock/doctor').start();
     const { Mutex } = require('sablock');
     const lock = new Mutex(new SharedArrayBuffer(4), 0, { allowMainThread: true });
     let calls = 0;
     const accessor = { get: () => ++calls, set: () => ++calls, configurable: true, enumerable: false };
     const places = [];
     for (const put of [
       () => Object.defineProperty(Error, 'stackTraceLimit', accessor),
       () => Object.defineProperty(Error, 'stackTraceLimit', { value: 7, writable: false, configurable: true }),
       () => delete Error.stackTraceLimit,
       () => Object.defineProperty(Error, 'stackTraceLimit', { value: 3, writable: true, configurable: true }),
     ]) {
       put();
       const before = JSON.stringify(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'));
       lock.lock();
       const wait = lock.lockAsync({ timeout: 60_000 });
       places.push(doctor.report().waiting[0].holders[0].stack.length > 0);
       places.push(doctor.report().waiting[0].waiter.stack.length > 0);
       places.push(before === JSON.stringify(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')));
       lock.unlock();
       wait.then(() => lock.unlock());
     }
     doctor.stop();
     console.log(places.join(), calls);
     process.exit();`,
  );
  const { stdout } = await run(['limits.js']);
  assert.equal(stdout, `${Array(12).fill('true').join()} 0\n`);
});

test('that there is no deadlock is said together with how many wait', LIMIT, async () => {
  write(
    'counts.js',
    `const doctor = require('sablock/doctor').start();
     const { Latch } = require('sablock');
     const latch = new Latch(new SharedArrayBuffer(Latch.BYTES));
     latch.add();
     doctor.print();
     latch.waitAsync({ timeout: 60_000 });
     doctor.print();
     latch.waitAsync({ timeout: 60_000 });
     doctor.print();
     process.exit();`,
  );
  const { stderr } = await run(['counts.js']);
  const line = (waits) => `sablock doctor: no deadlocks, and no orders that could; ${waits}`;
  const lines = stderr.trimEnd().split('\n');
  const summaries = lines.filter((each) => each.startsWith('sablock doctor: '));
  assert.deepEqual(summaries, ['nothing waits', '1 wait now', '2 waits now'].map(line));
  // The one that asks gets the youngest waits too.
  const waits = lines.filter((each) => /^WAITING: Latch at byte 0, [\d.]+ ms$/.test(each));
  assert.equal(waits.length, 3);
  const places = lines.filter((each) => /^ {4}wanted by thread 0 {2}\S+ \(counts\.js:[68]:\d+\)$/.test(each));
  assert.equal(places.length, 3);
});

test('of many the first are printed, and how many more there are', LIMIT, async () => {
  write(
    'many.js',
    `const doctor = require('sablock/doctor').start();
     const { Latch } = require('sablock');
     const latch = new Latch(new SharedArrayBuffer(Latch.BYTES));
     latch.add();
     for (let count = 1; count <= 12; count++) {
       latch.waitAsync({ timeout: 60_000 });
       if (count >= 10) doctor.print();
     }
     process.exit();`,
  );
  const { stderr } = await run(['many.js']);
  const lines = stderr.split('\n');
  assert.equal(lines.filter((line) => line.startsWith('WAITING: ')).length, 3 * 10);
  assert.deepEqual(
    lines.filter((line) => line.includes('more')),
    ['  ... and 1 more', '  ... and 2 more'],
  );
});

test('young waits are not printed for a signal that asks for nothing', UNIX, async () => {
  write(
    'young.js',
    `const { Latch } = require('sablock');
     const latch = new Latch(new SharedArrayBuffer(Latch.BYTES));
     latch.add();
     process.once('SIGTERM', () => process.exit(7));
     latch.waitAsync();
     process.kill(process.pid, 'SIGTERM');`,
  );
  const { code, stderr } = await run([...PRELOAD, 'young.js']);
  assert.equal(code, 7);
  assert.match(stderr, /^sablock doctor: .*1 wait now\n$/);
});

for (const [whom, to] of [
  ['the group', (pid) => -pid],
  ['sablock doctor alone', (pid) => pid],
]) {
  test(`a signal to ${whom} reaches the program once`, UNIX, async (t) => {
    write(
      'once.js',
      `let count = 0;
       process.on('SIGTERM', () => {
         count += 1;
         if (count === 1) setTimeout(() => process.exit(count), 300);
       });
       setInterval(() => {}, 1000);
       process.stdout.write('ready');`,
    );
    const child = spawn(process.execPath, [CLI, 'doctor', 'once.js'], { cwd: home, detached: true });
    t.after(() => {
      if (child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    });
    await once(child.stdout, 'data');
    process.kill(to(child.pid), 'SIGTERM');
    const [code] = await once(child, 'exit');
    assert.equal(code, 1);
  });
}

test(
  'a function has its own name where a formatter calls it by what it calls, as that of Jest does',
  PRELOADS,
  async () => {
    write(
      'transformed.js',
      `const at = (frame) => \`    at called (\${frame.getFileName()}:\${frame.getLineNumber() + 100}:1)\`;
     Error.prepareStackTrace = (error, frames) => [error, ...frames.map(at)].join('\\n');
     const doctor = require('sablock/doctor').start();
     const { Mutex } = require('sablock');
     const lock = new Mutex(new SharedArrayBuffer(4));
     function holder() {
       return lock.executeLocked(() => new Promise(() => {}));
     }
     async function waiter() {
       await lock.lockAsync();
     }
     holder();
     waiter();
     setImmediate(() => {
       const [wait] = doctor.report().waiting;
       console.log(wait.holders[0].stack[0]);
       console.log(wait.waiter.stack[0]);
       process.exit();
     });`,
    );
    const { stdout } = await run(['transformed.js']);
    const [ofHolder, ofWaiter] = stdout.trimEnd().split('\n');
    assert.match(ofHolder, /^holder \(.*transformed\.js:107:1\)$/);
    assert.match(ofWaiter, /^waiter \(.*transformed\.js:110:1\)$/);
  },
);

test('--preload of Bun starts it in the main thread', {
  ...LIMIT,
  skip: process.versions.bun === undefined && 'an option of Bun',
}, async () => {
  write(
    'preloaded.js',
    `const { Mutex } = require('sablock');
     const memory = new SharedArrayBuffer(8);
     const [a, b] = ['a', 'b'].map((name, index) => new Mutex(memory, 4 * index, { name, allowMainThread: true }));
     for (const [one, other] of [[a, b], [b, a]]) one.executeLockedSync(() => other.executeLockedSync(() => {}));`,
  );
  for (const option of [['--preload', 'sablock/doctor'], ['--preload=sablock/doctor'], ['--preload', DOCTOR]]) {
    const { code, stderr } = await run([...option, 'preloaded.js']);
    assert.equal(code, 0);
    assert.match(stderr, /^sablock doctor: 1 lock order that can deadlock\b[\s\S]*\(.*preloaded\.js:4:/m);
  }
});

test('sablock alone loads nothing of the doctor', LIMIT, () => {
  const program = `require('sablock'); console.log(Object.keys(require.cache).filter((file) => /[\\\\/]lib[\\\\/]doctor[\\\\/]/.test(file)).length)`;
  assert.equal(execFileSync(process.execPath, ['-e', program], { cwd: home, encoding: 'utf8' }), '0\n');
});

/** The holds that an example leaves on purpose. */
const TERMINATED = {
  'connection-pool.js': 'NEVER RELEASED: Semaphore "connections", and its thread has ended',
  'read-mostly-cache.js': 'NEVER RELEASED: RwLock "cache", and its thread has ended',
};

for (const file of fs.readdirSync(EXAMPLES).filter((name) => name.endsWith('.js') && name !== 'run.js')) {
  test(`nothing is reported of the example ${file}, which ends as ever`, {
    ...PRELOADS,
    timeout: limit(120_000),
  }, async (t) => {
    const args = ['--require', DOCTOR, path.join(EXAMPLES, file)];
    const { code, signal, stdout, stderr } = await run(args, { within: 100_000 });
    // Its server is not installed; `npm run examples` says so too.
    if (code === 69) return t.skip('a server is not installed');
    // On a machine that is busy a hold may be long.
    const found = stderr.split('\n').filter((line) => /^[A-Z]/.test(line) && !/^(?:LONG HOLD|CONTENTION)/.test(line));
    assert.deepEqual(
      found.filter((line) => line !== TERMINATED[file]),
      [],
    );
    assert.deepEqual([code, signal], [0, null], `${stdout}${stderr}`);
  });
}
