// Programs as a new user writes them: the first ten lines of the report lead to the line.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { bundle } = require('../helpers/bundle.js');
const { PRELOAD, firstLines, home, root, run, write } = require('../helpers/doctored-programs.js');
const { BINARY, installJs } = require('../helpers/installs.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const SETTINGS = { timeout: limit(60_000), ...needs('preloading', 'async stacks') };
const UNIX = { ...SETTINGS, ...(process.platform === 'win32' && { skip: 'no signals on Windows' }) };
/** Until the report has these words. */
const until = (words) => ({ isEnough: (text, child) => text.includes(words) && child.kill('SIGKILL') });

test('an unlock that is forgotten on the thousandth call in a worker', SETTINGS, async () => {
  write(
    'forgets.js',
    `const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
     const { Mutex } = require('sablock');
     const memory = workerData ?? new SharedArrayBuffer(4);
     const stock = new Mutex(memory, 0, { name: 'stock' });
     function sell(call) {
       stock.lock();
       if (call === 999) return;
       stock.unlock();
     }
     if (isMainThread) {
       new Worker(__filename, { workerData: memory }).once('message', () => stock.lockAsync());
     } else {
       for (let call = 0; call < 1000; call++) sell(call);
       parentPort.postMessage('sold out');
       parentPort.on('message', () => {});
     }`,
  );
  const { stderr } = await run([...PRELOAD, 'forgets.js'], until('wanted by'));
  const lines = firstLines(stderr);
  assert.match(lines, /^STUCK: Mutex "stock", 1 waiter$/m);
  assert.match(lines, /held by {3}thread 1 {2}sell \(forgets\.js:6:/);
  assert.match(lines, /wanted by thread 0 {2}.*forgets\.js:11:/);
});

test('two HTTP handlers that nest in a pool of two permits', SETTINGS, async () => {
  write(
    'serves.js',
    `const http = require('node:http');
     const { Semaphore } = require('sablock');
     const pool = new Semaphore(new SharedArrayBuffer(4), 0, 2, { name: 'connections' });
     const inside = [];
     const query = () => pool.execute(() => 'rows');
     async function listOrders(response) {
       await pool.execute(async () => {
         await new Promise((resolve) => {
           inside.push(resolve);
           if (inside.length === 2) for (const goOn of inside) goOn();
         });
         response.end(await query());
       });
     }
     const server = http.createServer((_, response) => listOrders(response)).listen(0, '127.0.0.1', () => {
       const { port } = server.address();
       for (const path of ['/one', '/other']) http.get({ host: '127.0.0.1', port, path, agent: false });
     });`,
  );
  const { stderr } = await run([...PRELOAD, 'serves.js'], until('wanted by'));
  const lines = firstLines(stderr);
  assert.match(lines, /^DEADLOCK \(likely\)/m);
  assert.match(lines, /Semaphore "connections"/);
  assert.match(lines, /held by {3}thread 0 {2}listOrders \(serves\.js:7:/);
  assert.match(lines, /wanted by thread 0 {2}query \(serves\.js:5:/);
});

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** A number as source maps have it: groups of five bits, the sign in the lowest. */
function vlq(value) {
  let left = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = '';
  do {
    const more = left > 31 ? 32 : 0;
    text += DIGITS[(left & 31) | more];
    left >>= 5;
  } while (left > 0);
  return text;
}

/** A map of lines to those that come a hundred lines later in a source, column for column. */
function mapOf(lines, source) {
  let before = { line: 0, column: 0 };
  const mappings = lines.map((text, index) =>
    Array.from(text, (_, column) => {
      const at = { line: index + 100, column };
      const segment = [column === 0 ? 0 : 1, 0, at.line - before.line, at.column - before.column].map(vlq).join('');
      before = at;
      return segment;
    }).join(),
  );
  return { version: 3, sources: [source], names: [], mappings: mappings.join(';') };
}

test('a bundle of TypeScript with a source map is reported as it was written', SETTINGS, async () => {
  const lines = [
    `const { Mutex } = require('sablock');`,
    `const session = new Mutex(new SharedArrayBuffer(4), 0, { name: 'session' });`,
    'async function refreshToken() { await session.executeLocked(() => {}); }',
    'async function getUser() { await session.executeLocked(async () => { await refreshToken(); }); }',
    'getUser();',
  ];
  write('bundle.js.map', JSON.stringify(mapOf(lines, 'src/session.ts')));
  write('bundle.js', `${lines.join('\n')}\n//# sourceMappingURL=bundle.js.map\n`);
  const { stderr } = await run(['--enable-source-maps', ...PRELOAD, 'bundle.js'], until('wanted by'));
  const report = firstLines(stderr);
  assert.match(report, /held by .* getUser \(.*src\/session\.ts:104:\d+\)/);
  assert.match(report, /wanted by .* refreshToken \(.*src\/session\.ts:103:\d+\)/);
});

test('a TypeScript program that tsc has compiled is reported as it was written', SETTINGS, async () => {
  write(
    'account.ts',
    `const { Mutex } = require('sablock');
interface Account { balance: number }
type Run = (account: Account) => Promise<void>;

const lock = new Mutex(new SharedArrayBuffer(4), 0, { name: 'account' });
const book: Run = async (account: Account): Promise<void> => {
  await lock.executeLocked(() => { account.balance += 1; });
};
async function transfer(account: Account): Promise<void> {
  await lock.executeLocked(async () => { await book(account); });
}
transfer({ balance: 1 });
`,
  );
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc');
  const settings = [
    '--sourceMap',
    '--target',
    'es2022',
    '--module',
    'commonjs',
    '--noCheck',
    '--types',
    '',
    '--outDir',
    'built',
  ];
  spawnSync(tsc, ['account.ts', ...settings], { cwd: home, shell: process.platform === 'win32' });
  const { stderr } = await run(
    ['--enable-source-maps', ...PRELOAD, path.join('built', 'account.js')],
    until('wanted by'),
  );
  const lines = firstLines(stderr);
  assert.match(lines, /held by .* transfer \(.*account\.ts:10:\d+\)/);
  assert.match(lines, /wanted by .* book \(.*account\.ts:7:\d+\)/);
});

test('a program that formats its own stacks, as test runners do, is reported in its own words', SETTINGS, async () => {
  write(
    'formats.js',
    `Error.prepareStackTrace = (error, frames) =>
       [String(error), ...frames.map((frame) => \`    at \${frame.getFunctionName()} (shop.ts:\${frame.getLineNumber() + 100}:1)\`)].join('\\n');
     const { Mutex } = require('sablock');
     const cart = new Mutex(new SharedArrayBuffer(4), 0, { name: 'cart' });
     const addItem = async () => { await cart.executeLocked(() => {}); };
     const checkOut = async () => { await cart.executeLocked(async () => { await addItem(); }); };
     checkOut();`,
  );
  const { stderr } = await run([...PRELOAD, 'formats.js'], until('wanted by'));
  const lines = firstLines(stderr);
  assert.match(lines, /held by {3}thread 0 {2}checkOut \(shop\.ts:106:1\)/);
  assert.match(lines, /wanted by thread 0 {2}addItem \(shop\.ts:105:1\)/);
});

test('a job that waits for another process', UNIX, async (t) => {
  const directory = fs.mkdtempSync(path.join(home, 'locks-'));
  const cli = path.join(root, 'lib', 'cli', 'index.js');
  const code = 'process.stdout.write("ready"); process.stdin.resume()';
  const command = [process.execPath, '-e', code];
  const holder = spawn(process.execPath, [cli, 'run', 'nightly report', '--directory', directory, '--', ...command]);
  t.after(() => holder.stdin.destroy());
  const ended = new Promise((resolve) => holder.once('exit', resolve));
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  write(
    'job.js',
    `const { LockManager } = require('sablock');
     const locks = new LockManager({ scope: 'machine', directory: process.argv[2] });
     const writeReport = () => locks.request('nightly report', async () => {});
     writeReport();
     setTimeout(() => process.kill(process.pid, 'SIGINT'), ${limit(1200)});`,
  );
  const { stderr } = await run([...PRELOAD, 'job.js', directory]);
  holder.stdin.end();
  await ended;
  const lines = firstLines(stderr);
  assert.match(lines, /^WAITING: lock "nightly report" of the machine, /m);
  assert.doesNotMatch(lines, /LONG HOLD/);
  assert.match(lines, new RegExp(`held by +process ${holder.pid}, for `));
  assert.match(lines, /wanted by thread 0 {2}writeReport \(job\.js:3:/);
});

test('a second install of the package is watched too, and its files are none of the program', UNIX, async () => {
  const copy = path.join(home, 'second', 'node_modules', 'sablock');
  installJs(copy);
  fs.copyFileSync(BINARY, path.join(copy, path.basename(BINARY)));
  write(
    'second/nests.js',
    `const { Latch, Mutex } = require('sablock');
     const session = new Mutex(new SharedArrayBuffer(4), 0, { name: 'session' });
     const refreshToken = async () => { await session.executeLocked(() => {}); };
     const getUser = async () => { await session.executeLocked(async () => { await refreshToken(); }); };
     getUser();
     const latch = new Latch(new SharedArrayBuffer(Latch.BYTES), 0, { name: 'rest' });
     latch.add();
     const waitForRest = () => latch.waitAsync();
     waitForRest();
     setTimeout(() => process.kill(process.pid, 'SIGTERM'), ${limit(2000)});`,
  );
  const { stderr } = await run([...PRELOAD, path.join('second', 'nests.js')]);
  const lines = firstLines(stderr);
  assert.match(lines, /^DEADLOCK \(likely\)/m);
  assert.match(lines, /held by {3}thread 0 {2}getUser \(.*nests\.js:4:/);
  assert.match(lines, /wanted by thread 0 {2}refreshToken \(.*nests\.js:3:/);
  assert.match(lines, /WAITING: Latch "rest".*\n {4}wanted by thread 0 {2}waitForRest \(.*nests\.js:8:/);
});

/** The lines above the bundle of an ES module, as docs/guides/bundling.md says. */
const BANNER = `import { createRequire } from 'node:module';
  import { fileURLToPath } from 'node:url';
  const require = createRequire(import.meta.url);
  const __filename = fileURLToPath(import.meta.url);
  const __dirname = fileURLToPath(new URL('.', import.meta.url)).slice(0, -1);
`;

for (const [folder, name, banner] of [
  ['bundled', 'app.js', ''],
  ['bundled too', 'app.js', ''],
  ['bundled as a module', 'app.mjs', BANNER],
]) {
  test(`a bundle in a folder "${folder}" is watched too, and the report says that it is one`, UNIX, async () => {
    // The folder in which the package looks for its binary.
    fs.copyFileSync(BINARY, path.join(home, path.basename(BINARY)));
    const text =
      banner +
      bundle(
        `
    const { Mutex } = require('sablock');
    const session = new Mutex(new SharedArrayBuffer(4), 0, { name: 'session' });
    const refreshToken = async () => { await session.lockAsync(); };
    const getUser = async () => { await session.executeLocked(async () => { await refreshToken(); }); };
    getUser();
    setTimeout(() => process.kill(process.pid, 'SIGTERM'), ${limit(2000)});`,
        // No path of a script, and with a space.
        'src/our shop/App.vue',
      );
    const lineOf = (words) => text.split('\n').findIndex((line) => line.includes(words)) + 1;
    fs.mkdirSync(path.join(home, folder, 'out'), { recursive: true });
    write(path.join(folder, 'out', name), text);
    const { stderr } = await run([...PRELOAD, path.join(folder, 'out', name)]);
    const lines = firstLines(stderr);
    assert.match(lines, /^DEADLOCK \(likely\)/m);
    const place = (what, file = name.replace('.', '\\.')) =>
      `thread 0 {2}${what} \\(.*${file}:${lineOf(`const ${what}`)}:`;
    assert.match(lines, new RegExp(`held by {3}${place('getUser')}`));
    assert.match(lines, new RegExp(`wanted by ${place('refreshToken')}`));
    assert.match(lines, /^BUNDLE: sablock is part of .*app\.m?js\n.*external/m);
  });
}

test("code of new Function and of a worker made of text is the user's", SETTINGS, async () => {
  write(
    'makes.js',
    `const { Worker } = require('node:worker_threads');
     const memory = new SharedArrayBuffer(8);
     const make = (order) => \`
       const { Mutex } = require('sablock');
       const [a, b] = ['a', 'b'].map((name, index) => new Mutex(memory, 4 * index, { name, allowMainThread: true }));
       (function nest([one, other]) { one.lock(); other.lock(); other.unlock(); one.unlock(); })(\${order});
     \`;
     new Function('require', 'memory', make('[a, b]'))(require, memory);
     const code = 'const memory = require("node:worker_threads").workerData;' + make('[b, a]');
     new Worker(code, { eval: true, workerData: memory });`,
  );
  const { stderr } = await run([...PRELOAD, 'makes.js']);
  const lines = firstLines(stderr);
  assert.match(lines, /thread 0 {2}nest \(makes\.js:8:/);
  assert.match(lines, /thread 1 {2}nest \(\[worker eval\]:4:/);
});

test("code of eval and of vm is the user's", SETTINGS, async () => {
  write(
    'evals.js',
    `const vm = require('node:vm');
     const { Mutex } = require('sablock');
     const [a, b] = ['a', 'b'].map((name) => {
       return new Mutex(new SharedArrayBuffer(4), 0, { name, allowMainThread: true });
     });
     const nest = '(function nest(one, other) { one.lock(); other.lock(); other.unlock(); one.unlock(); })';
     eval(nest)(a, b);
     vm.runInThisContext(nest, { filename: 'rules.vm' })(b, a);`,
  );
  const { stderr } = await run([...PRELOAD, 'evals.js']);
  const lines = firstLines(stderr);
  assert.match(lines, /thread 0 {2}nest \(.*evals\.js:7:/);
  assert.match(lines, /thread 0 {2}nest \(rules\.vm:1:/);
});

test('a slow writer among readers is the long hold of the trace, which the readers wait for', SETTINGS, async () => {
  write(
    'draws.js',
    `const { Worker, isMainThread, workerData } = require('node:worker_threads');
     const { RwLock } = require('sablock');
     const doctor = require('sablock/doctor').start({ trace: true });
     const memory = workerData ?? new SharedArrayBuffer(16);
     const prices = new RwLock(memory, 0, { name: 'prices' });
     const begun = new Int32Array(memory, 8, 1);
     async function updatePrices() {
       await prices.write.executeLocked(() => {
         Atomics.store(begun, 0, 1);
         while (prices.inspect().waiters.length < 2);
         const until = performance.now() + 60;
         while (performance.now() < until);
       });
     }
     function readPrice() {
       prices.read.executeLockedSync(() => {});
     }
     if (isMainThread) {
       const readers = [1, 2].map(() => new Worker(__filename, { workerData: memory }));
       const ends = readers.map((reader) => new Promise((resolve) => reader.once('exit', resolve)));
       Promise.all(ends).then(() => doctor.writeTrace('prices.json'));
       updatePrices();
     } else {
       while (Atomics.load(begun, 0) === 0);
       readPrice();
     }`,
  );
  const { code, stderr } = await run(['draws.js']);
  assert.equal(code, 0, stderr);
  const { traceEvents } = JSON.parse(fs.readFileSync(path.join(home, 'prices.json'), 'utf8'));
  const slices = traceEvents.filter(({ ph }) => ph === 'X').sort((one, other) => other.dur - one.dur);
  const hold = slices.find(({ cat }) => cat === 'hold');
  assert.match(hold.args.stack, /updatePrices \(.*draws\.js:8:/);
  assert.ok(hold.dur >= 60_000, `${hold.dur} µs`);
  const waits = slices.filter(({ cat }) => cat === 'wait');
  assert.equal(waits.length, 2);
  for (const { args } of waits) assert.match(args.stack, /readPrice \(.*draws\.js:16:/);
});
