// The cost of very many pending waits of one thread: time in proportion to their number, and memory only while there are so many.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { createMutex } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

const WAITS = 32_000;

/** In milliseconds, what this process computes, which other processes only take time from. */
const computed = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * The least of several times that is computed until `end` has ended the waits, of which each of so many new mutexes has its share; the
 * first that is below `enough` is the last.
 */
async function measure(mutexes, end, enough = 0) {
  let least = Infinity;
  for (let round = 0; round < 3 && least >= enough; round++) {
    let sum = 0;
    for (let done = 0; done < mutexes; done++) {
      const { mutex } = createMutex();
      const controller = new AbortController();
      mutex.tryLock();
      const waits = Array.from({ length: WAITS / mutexes }, () =>
        mutex.lockAsync({ signal: end.usesSignal ? controller.signal : undefined }),
      );
      const before = computed();
      await end(mutex, waits, controller);
      sum += computed() - before;
    }
    least = Math.min(least, sum);
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
    const few = await measure(8, end);
    const many = await measure(1, end, 4 * few);
    // As many in all. Were each wait to look at all of the others of its mutex, it would be eight times as long.
    assert(many < 4 * few, `waits of one mutex took ${many} ms, as many of eight took ${few} ms`);
  });
}

for (const kind of ['waits', 'names', 'releases']) {
  test(
    `very many ${kind} leave no room behind when they are over`,
    needs('complete collection', "V8's flags"),
    async () => {
      // Seconds of work, which a machine with other work may make a minute.
      const { code, stdout, stderr } = await runProgram('room', [kind], { most: 120_000, nodeArgs: ['--expose-gc'] });
      assert.equal(code, 0, stderr);
      // A table that keeps a place for each would have 1,600,000; the code that V8 keeps makes a difference of 400,000 either way.
      assert.ok(Number(stdout) < 800_000, `${stdout} bytes`);
    },
  );
}
