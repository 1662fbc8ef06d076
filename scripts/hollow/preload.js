// Loaded before a test file by `scripts/hollow.js`: the code of each worker that its tests start, and of those that the
// programs of its tests start, is a throw. Writes how each test ended, and how many workers it had started.

const { AsyncLocalStorage } = require('node:async_hooks');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const nodeTest = require('node:test');
const { syncBuiltinESMExports } = require('node:module');
const workerThreads = require('node:worker_threads');

const { SABLOCK_HOLLOW: LOG, SABLOCK_HOLLOW_LIMIT: LIMIT, SABLOCK_HOLLOW_FILE: FILE } = process.env;

const note = (what) => fs.appendFileSync(LOG, `${JSON.stringify(what)}\n`);

/** The test whose code runs: one that hangs goes on beside those that come after it. */
const running = new AsyncLocalStorage();
const testOf = () => running.getStore() ?? process.env.SABLOCK_HOLLOW_TEST;

const { spawn } = childProcess;
childProcess.spawn = (file, args, options) => {
  const env = { ...(options?.env ?? process.env), SABLOCK_HOLLOW_TEST: testOf() };
  return spawn(file, args, { ...options, env });
};

class HollowWorker extends workerThreads.Worker {
  constructor(_, options) {
    super("throw new Error('The code of this worker was taken away')", { ...options, eval: true });
    note({ test: testOf(), worker: true });
  }
}

/** The test, whose end is noted; it is no longer waited for once it has hung for a while. */
const noted = (name, body) => async (t) => {
  process.env.SABLOCK_HOLLOW_TEST = name;
  let timer;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, Number(LIMIT), 'hangs');
  });
  const ended = running
    .run(name, async () => body(t))
    .then(
      () => 'passes',
      () => 'fails',
    );
  note({ test: name, end: await Promise.race([ended, limit]) });
  clearTimeout(timer);
};

if (workerThreads.isMainThread) {
  workerThreads.Worker = HollowWorker;
  // A program of a test has no tests of its own.
  if (process.argv[1] === FILE) {
    const { test } = nodeTest;
    nodeTest.test = (...args) => {
      const [options] = args.filter((arg) => typeof arg === 'object');
      const body = args.find((arg) => typeof arg === 'function');
      return test(args[0], { ...options, timeout: undefined }, noted(args[0], body));
    };
    // It fails the test that runs, which goes on.
    process.on('uncaughtExceptionMonitor', () => note({ test: process.env.SABLOCK_HOLLOW_TEST, end: 'fails' }));
    // The remains of a test that hangs must not keep the process.
    nodeTest.after(() => setTimeout(() => process.exit(), 100));
  }
  syncBuiltinESMExports();
}
