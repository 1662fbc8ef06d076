// The lock worker: who starts it, and what its end means.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { pathToFileURL } = require('node:url');
const { LockManager } = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { createFolder } = require('../helpers/folder.js');
const { BINARY, installJs } = require('../helpers/installs.js');
const { runProgram } = require('../helpers/processes.js');
const { hasRedis, startRedis } = require('../helpers/servers.js');
const { seen } = require('../helpers/stores.js');

const skip = hasRedis ? false : 'redis-server is not installed';
const options = { timeout: 60_000, skip };
/** Longer than any test. */
const LEASE = 60_000;
/** One that ends in a test. */
const SHORT = 6000;
const permission = ['--permission', '--experimental-permission'].find((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag),
);

let server;
before(async () => {
  if (hasRedis) server = await startRedis();
});
after(() => server?.stop());

function open(t, connection = server.url, lease = LEASE) {
  const manager = new LockManager({ store: redis(connection, { lease }) });
  t.after(() => manager.close());
  return manager;
}

/** Runs a program; resolves with what it printed. */
const run = (source, args = [], more = {}) => {
  const { NODE_TEST_CONTEXT, ...inherited } = process.env;
  const env = { ...inherited, ...more };
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, '-e', source], { timeout: 40_000, env }, (error, stdout, stderr) =>
      resolve({ stdout: stdout.trim(), stderr, code: error?.code ?? 0 }),
    );
  });
};

/** Returns what a thread of such a program begins with; `root` is that of the package. */
const manager = (root = path.join(__dirname, '..', '..'), lease = LEASE) => `
  const { LockManager } = require(${JSON.stringify(root)});
  const { redis } = require(${JSON.stringify(path.join(root, 'lib', 'stores', 'redis.js'))});
  const manager = new LockManager({ store: redis(${JSON.stringify(server.url)}, { lease: ${lease} }) });`;

test(
  'main has not loaded the package: a thread starts one for itself and the threads that it starts',
  options,
  async (t) => {
    const inner = `${manager(undefined, SHORT)}
    const { workerData } = require('node:worker_threads');
    const taken = manager.requestSync('of the outer', { ifAvailable: true }, (lock) => lock);
    const own = manager.requestSync('of the inner', () => 'own');
    Atomics.store(workerData, 0, taken === null && own === 'own' ? 1 : 2);
    Atomics.notify(workerData, 0);`;
    const outer = `${manager(undefined, SHORT)}
    const { Worker, parentPort } = require('node:worker_threads');
    const lock = manager.acquire('of the outer');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(${JSON.stringify(inner)}, { eval: true, workerData: cell });
    worker.once('exit', () => parentPort.postMessage({ answer: cell[0], isLocked: lock.locked }));
    setInterval(() => {}, 1000);`;
    const { stdout, stderr } = await run(`
    const { Worker } = require('node:worker_threads');
    const { createClient } = require(${JSON.stringify(require.resolve('redis'))});
    const worker = new Worker(${JSON.stringify(outer)}, { eval: true });
    worker.once('message', async ({ answer, isLocked }) => {
      const client = createClient({ url: ${JSON.stringify(server.url)} });
      await client.connect();
      const clients = String(await client.sendCommand(['CLIENT', 'LIST'])).trim().split('\\n').length - 1;
      await worker.terminate();
      console.log(JSON.stringify({ answer, isLocked, clients, isLoaded: ${JSON.stringify(require.resolve('../..'))} in require.cache }));
      process.exit();
    });`);
    assert.equal(stdout, JSON.stringify({ answer: 1, isLocked: true, clients: 2, isLoaded: false }), stderr);
    // Its lock worker went with it: the server gives the lock on when its lease is over.
    const lock = await open(t).acquireAsync('of the outer', { timeout: 5 * SHORT });
    if (lock.abandoned) lock.markConsistent();
    assert.equal(lock.unlock(), true);
  },
);

test('a thread that blocks for a lock worker which main does not start has its own time', options, async () => {
  const blocked = `${manager()}
    const { workerData } = require('node:worker_threads');
    const codes = [];
    for (const timeout of [50, 100]) {
      // By promise: what it asks for stays asked when the next has given up.
      manager.acquireAsync('promised ' + timeout).then((lock) => require('node:fs').writeSync(1, ' ' + lock.unlock()));
      const begun = performance.now();
      try { manager.acquire('blocked', { timeout }); } catch ({ code }) { codes.push(code, performance.now() - begun < 4000); }
    }
    require('node:fs').writeSync(1, codes.join());
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);`;
  const { stdout, stderr } = await run(`
    ${manager()}
    const { Worker } = require('node:worker_threads');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    new Worker(${JSON.stringify(blocked)}, { eval: true, workerData: cell });
    Atomics.wait(cell, 0, 0, 20_000);`);
  assert.equal(stdout, 'ERR_LOCK_STORE,true,ERR_LOCK_STORE,true true true', stderr);
});

test('a request for which main does not start the lock worker says so, when the time for a connection is over', async () => {
  const asked = `const { LockManager } = require(${JSON.stringify(require.resolve('../..'))});
    const { redis } = require(${JSON.stringify(require.resolve('../../lib/stores/redis.js'))});
    const manager = new LockManager({ store: redis('redis://x', { connectTimeout: 60 }) });
    const { workerData } = require('node:worker_threads');
    const say = ({ code, message }) => require('node:fs').writeSync(1, code + ' ' + message + '\\n');
    async function main() {
      for (const options of [{ timeout: 20 }, { timeout: 30_000 }, {}]) {
        try { manager.acquire('blocked', options); } catch (error) { say(error); }
      }
      await manager.acquireAsync('promised').catch(say);
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
    }
    main();`;
  const { stdout, stderr } = await run(`
    require(${JSON.stringify(require.resolve('../..'))});
    const { Worker } = require('node:worker_threads');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    new Worker(${JSON.stringify(asked)}, { eval: true, workerData: cell });
    Atomics.wait(cell, 0, 0, 30_000);
    process.exit();`);
  const lines = stdout.split('\n');
  assert.match(lines.shift(), /^ERR_LOCK_STORE .*not acknowledged.*'blocked'/, stderr);
  assert.equal(lines.length, 3, stdout);
  for (const line of lines)
    assert.match(line, /^ERR_LOCK_STORE .*not begun within 60 ms: the main thread.*busy or blocked/);
});

test('without leave to start threads a request fails, and says which flag it needs', {
  ...options,
  skip: skip || (permission === undefined && 'this runtime has no such flag'),
}, async () => {
  const { stdout, stderr } = await run(
    `${manager()}
      manager.request('never', () => {}).catch(({ code, message }) => console.log(code, message.includes('--allow-worker')));`,
    [permission, '--allow-addons', '--allow-fs-read=*', '--no-warnings'],
  );
  assert.equal(stdout, 'ERR_LOCK_STORE true', stderr);
});

test(
  'its end: what is held is lost and reported, what waits fails, and the next request starts another',
  options,
  async (t) => {
    process.env.SABLOCK_TEST_REDIS = server.url;
    // The lease is long enough that none is over before the lock worker ends.
    const lease = SHORT;
    const here = open(t, { module: require.resolve('../programs/ending-lock-worker.js') }, lease);
    const elsewhere = open(t, server.url, lease);
    const held = await here.acquireAsync('held', { fence: true });
    const other = await elsewhere.acquireAsync('other');
    const fails = assert.rejects(here.acquireAsync('other'), { code: 'ERR_LOCK_STORE' });
    const aborted = Promise.all(
      [held, other].map(({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve))),
    );
    // Asked of this lock worker, not of the next.
    await seen(async () => (await here.query()).pending.length === 1);
    process.env.SABLOCK_TEST_END = 'now';
    await aborted;
    await fails;
    for (const lock of [held, other]) {
      assert.deepEqual([lock.locked, lock.signal.reason.reason, lock.unlock()], [false, 'worker', false]);
    }
    for (const [manager, name] of [
      [here, 'held'],
      [elsewhere, 'other'],
    ]) {
      const again = await manager.acquireAsync(name, { fence: true, timeout: 4 * lease });
      if (name === 'held') assert.ok(again.fence > held.fence);
      if (again.abandoned) again.markConsistent();
      assert.equal(again.unlock(), true);
    }
  },
);

test(
  'of two copies of the package whose stores differ, the first goes on, and the other gets an error',
  options,
  async (t) => {
    const other = createFolder(t);
    installJs(other);
    fs.copyFileSync(BINARY, path.join(other, path.basename(BINARY)));
    const { stdout, stderr } = await run(`
    async function main() {
      { ${manager()} globalThis.first = manager; }
      await first.check();
      require(${JSON.stringify(path.join(other, 'lib/stores/verbs.js'))}).PROTOCOL += 1;
      { ${manager(other)} globalThis.second = manager; }
      for (const ask of [() => second.acquireAsync('copies'), () => second.check()]) {
        await ask().catch(({ code, message }) => console.log(code, message.includes('copies of sablock')));
      }
      console.log(await first.request('copies', () => 'granted'));
      for (const each of [first, second]) await each.close();
    }
    main();`);
    assert.equal(stdout, 'ERR_LOCK_STORE true\nERR_LOCK_STORE true\ngranted', stderr);
  },
);

test('without a client a request says what to install', {
  timeout: 60_000,
  skip: process.versions.bun !== undefined && 'Bun installs by itself what is missing',
}, async (t) => {
  const folder = createFolder(t);
  installJs(folder);
  fs.copyFileSync(BINARY, path.join(folder, path.basename(BINARY)));
  const program = path.join(folder, 'program.js');
  fs.writeFileSync(
    program,
    `const { LockManager } = require('./index.js');
     const stores = [require('./lib/stores/postgres.js').postgres('postgres://x'), require('./lib/stores/redis.js').redis('redis://x')];
     for (const store of stores) {
       new LockManager({ store }).request('never', () => {}).catch(({ code, message }) =>
         console.log(store.kind, code, /\`(.*)\`/.exec(message)[1]));
     }`,
  );
  const { stdout, stderr } = await run(`require(${JSON.stringify(program)})`);
  assert.deepEqual(
    stdout.split('\n').sort(),
    ['postgres ERR_LOCK_NO_CLIENT npm install pg', 'redis ERR_LOCK_NO_CLIENT npm install redis'],
    stderr,
  );
});

test('where a bundle has no file of the lock worker, the error says to leave the package out of it', {
  timeout: 60_000,
}, async (t) => {
  const folder = createFolder(t);
  installJs(folder);
  fs.rmSync(path.join(folder, 'lib', 'stores', 'worker.js'));
  fs.copyFileSync(BINARY, path.join(folder, path.basename(BINARY)));
  const program = path.join(folder, 'program.js');
  fs.writeFileSync(
    program,
    `const { LockManager } = require('./index.js');
     const store = require('./lib/stores/redis.js').redis('redis://x');
     new LockManager({ store }).request('never', () => {}).catch(({ code, message }) => console.log(code, message));`,
  );
  const { stdout, stderr } = await run(`require(${JSON.stringify(program)})`);
  assert.match(stdout, /^ERR_LOCK_STORE .*worker\.js is missing: leave sablock out of the bundle\./, stderr);
});

/** A preload that alone knows where the client is, as that of Yarn Plug'n'Play does; its file. */
function hideClient(t) {
  const folder = createFolder(t);
  const preload = path.join(folder, 'pnp.cjs');
  fs.writeFileSync(
    path.join(folder, 'client.js'),
    `module.exports = require(${JSON.stringify(require.resolve('redis'))});`,
  );
  fs.writeFileSync(
    preload,
    `const Module = require('node:module');
     const resolve = Module._resolveFilename;
     Module._resolveFilename = function (name, ...rest) {
       return name === 'redis' ? require('node:path').join(__dirname, 'client.js') : resolve.call(this, name, ...rest);
     };`,
  );
  return preload;
}

/** An install of its own, whose client nothing finds; the source of a program that asks for it. */
async function installHidden() {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-hidden-'));
  process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }));
  installJs(root);
  fs.copyFileSync(BINARY, path.join(root, path.basename(BINARY)));
  const source = `${manager(root)}
    manager.request('found', () => console.log('granted')).catch(({ code }) => console.log(code)).then(() => manager.close());`;
  return { source, hidden: await run(source) };
}

let installed;
for (const [title, argsOf, envOf] of [
  ['execArgv', (preload) => ['--require', preload], () => ({})],
  ['NODE_OPTIONS', () => [], (preload) => ({ NODE_OPTIONS: `--require ${preload}` })],
  [
    '--import beside NODE_OPTIONS and a small heap',
    (preload) => ['--import', pathToFileURL(preload).href, '--max-old-space-size=64'],
    () => ({ NODE_OPTIONS: '--max-http-header-size=20000' }),
  ],
]) {
  test(`its thread has the preloads of the program, which find the client (${title})`, {
    ...options,
    skip: skip || ((process.versions.bun ?? process.versions.deno) !== undefined && 'it has no such flags'),
  }, async (t) => {
    installed ??= installHidden();
    const { source, hidden } = await installed;
    const preload = hideClient(t);
    assert.equal(hidden.stdout, 'ERR_LOCK_NO_CLIENT', 'without the preload there is no client');
    const { stdout, stderr } = await run(source, argsOf(preload), envOf(preload));
    assert.equal(stdout, 'granted', stderr);
  });
}

test('its thread keeps no larger nursery than it needs', {
  ...options,
  skip: skip || ((process.versions.bun ?? process.versions.deno) !== undefined && 'it limits no memory of threads'),
}, async (t) => {
  const file = path.join(createFolder(t), 'client.js');
  fs.writeFileSync(
    file,
    `exports.connect = async () => { throw new Error(require('node:worker_threads').resourceLimits.maxYoungGenerationSizeMb); };`,
  );
  const { message } = await open(t, { module: file })
    .check()
    .catch((error) => error);
  assert.match(message, /: 2\.$/);
});

test('its thread has a name', {
  ...options,
  skip: skip || (process.platform !== 'linux' && 'it reads /proc'),
}, async () => {
  const { stdout, stderr } = await run(`${manager()}
    const fs = require('node:fs');
    manager.check().then(() => {
      const tasks = fs.readdirSync('/proc/self/task');
      const names = tasks.map((task) => fs.readFileSync('/proc/self/task/' + task + '/comm', 'utf8').trim());
      console.log(names.filter((name) => name.startsWith('sablock')).join());
      return manager.close();
    });`);
  assert.match(stdout, /sablock/, stderr);
});

test(
  'a blocked request waits no longer than it says, though main was too busy to start the lock worker',
  options,
  async (t) => {
    const held = await open(t).acquireAsync('late start');
    const [busy, timeout] = [1500, 6000];
    const thread = `${manager()}
    const { parentPort, workerData } = require('node:worker_threads');
    const { binding } = require(${JSON.stringify(require.resolve('../../lib/engine/thread.js'))});
    const { askStoreBlocking } = binding;
    const calls = [];
    binding.askStoreBlocking = (question, most) => {
      const start = performance.now();
      // From now on main is busy for so long, however late this thread is.
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
      const status = askStoreBlocking(question, most);
      calls.push({ most, took: performance.now() - start });
      return status;
    };
    try {
      manager.acquire('late start', { timeout: ${timeout} });
    } catch ({ code, message }) {
      parentPort.postMessage({ code, message, calls });
    }`;
    const { stdout, stderr } = await run(`${manager()}
    const { Worker } = require('node:worker_threads');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(${JSON.stringify(thread)}, { eval: true, workerData: cell });
    worker.once('message', (message) => console.log(JSON.stringify(message)));
    worker.once('online', () => {
      Atomics.wait(cell, 0, 0);
      Atomics.wait(cell, 0, 1, ${busy});
    });`);
    const { code, message, calls } = JSON.parse(stdout || JSON.stringify({ message: stderr }));
    assert.equal(code, 'ERR_LOCK_TIMEOUT', message);
    // The start of the lock worker is waited for, then the lock, in the time that is left.
    const [start, wait] = calls;
    assert.ok(start.took >= busy, `the start took ${start.took} ms`);
    assert.ok(wait.most <= timeout - start.took + 1, `${wait.most} ms are left after ${start.took} ms`);
    held.unlock();
  },
);

test('the end of the process waits for what each manager has released', options, async () => {
  const { stdout, stderr } = await run(`${manager()}
    const binding = require(${JSON.stringify(require.resolve('../../lib/load/binary.js'))});
    const other = new LockManager({ store: redis(${JSON.stringify(server.url)}, { lease: ${LEASE}, namespace: 'other' }) });
    Promise.all([manager, other].map((each) => each.acquireAsync('until the end'))).then(() => {
      const { askStoreBlocking } = binding;
      let waits = 0;
      binding.askStoreBlocking = (...asked) => {
        waits += 1;
        return askStoreBlocking(...asked);
      };
      process.on('exit', () => console.log(waits));
    });`);
  assert.equal(stdout, '2', stderr);
});

test('who uses no store loads nothing of stores, nor a client', async () => {
  const { stdout, stderr } = await run(`
    const { locks, LockManager, Mutex } = require(${JSON.stringify(require.resolve('../..'))});
    locks.request('of the process', () => new LockManager({ scope: 'machine' }).request('of the machine', () => {}));
    process.on('exit', () => {
      const loaded = (what) => Object.keys(require.cache).some((file) => what.test(file));
      console.log(loaded(/lib.named/), loaded(/lib.stores|node_modules.(pg|redis|@redis|ioredis)/));
    });`);
  assert.equal(stdout, 'true false', stderr);
});

test('a request that the start of the lock worker failed for is rejected, and the next starts it', async () => {
  const { stdout, stderr } = await runProgram('refused-exit-listener');
  const [first, second] = stdout.split('\n');
  assert.match(first, /has ended.*no listener/, stderr);
  assert.match(second, /cannot be reached/);
});
