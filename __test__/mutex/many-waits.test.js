// What very many pending waits of one thread cost: time in proportion to their number, and memory only while there are so many.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createMutex } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

/** The least of several times, in milliseconds, that `end` takes to end so many waits of a new mutex. */
async function measure(count, end) {
  let least = Infinity;
  for (let round = 0; round < 3; round++) {
    const { mutex } = createMutex();
    const controller = new AbortController();
    mutex.tryLock();
    const waits = Array.from({ length: count }, () =>
      mutex.lockAsync({ signal: end.usesSignal ? controller.signal : undefined }),
    );
    const start = performance.now();
    await end(mutex, waits, controller);
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

async function handOn(mutex, waits) {
  const unlock = () => mutex.unlock();
  mutex.unlock();
  await Promise.all(waits.map((wait) => wait.then(unlock)));
}

async function abort(_, waits, controller) {
  // Before: Deno takes time for each promise that is rejected and handled later, in proportion to how many there are.
  const settled = Promise.allSettled(waits);
  controller.abort();
  const results = await settled;
  assert(results.every(({ status }) => status === 'rejected'));
}
abort.usesSignal = true;

for (const end of [handOn, abort]) {
  test(`many waits end in time in proportion to their number: ${end.name}`, async () => {
    const few = await measure(4_000, end);
    const many = await measure(32_000, end);
    // Eight times as many. Were each wait to look at all of the others, it would be 64 times as long.
    assert(many < 32 * few, `32,000 waits took ${many} ms, 4,000 took ${few} ms`);
  });
}

for (const kind of ['waits', 'names']) {
  test(`very many ${kind} leave no room behind when they are over`, needs('complete collection'), async () => {
    const { code, stdout, stderr } = await runProgram('room', [kind], { nodeArgs: ['--expose-gc'] });
    assert.equal(code, 0, stderr);
    // A table that keeps a place for each would have 800,000.
    assert.ok(Number(stdout) < 400_000, `${stdout} bytes`);
  });
}
