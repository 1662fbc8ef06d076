// Loaded before the programs of `npm run test:audit`: when the main thread ends, nothing may be wrong in the engine's queues and
// registers, and nothing be left in the package's JavaScript. Says what is, and ends with 1.

const fs = require('node:fs');
const { isMainThread } = require('node:worker_threads');
const { left } = isMainThread ? require('./left.js') : {};

/** The time for which a thread may be about to end, with something of it still there. */
const PATIENCE_MS = 5000;
/** The value that a program sets SABLOCK_AUDIT to that ends while something is pending. */
const WAITING = 'waiting';
const THREAD = /[\\/]lib[\\/]engine[\\/]thread\.js$/;

const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);

function audit() {
  const thread = Object.values(require.cache).find((module) => THREAD.test(module?.filename));
  const binding = thread?.exports.binding;
  if (binding === undefined) return;
  const end = performance.now() + PATIENCE_MS;
  let wrong = binding.audit();
  while (wrong.length > 0 && performance.now() < end) {
    pause();
    wrong = binding.audit();
  }
  if (process.env.SABLOCK_AUDIT !== WAITING) wrong.push(...left());
  if (wrong.length === 0) return;
  fs.writeSync(2, `AUDIT of ${process.argv[1]}:\n  ${wrong.join('\n  ')}\n`);
  process.exitCode = 1;
}

if (isMainThread) process.on('exit', audit);
