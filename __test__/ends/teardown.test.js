const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex } = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Numbers that look random and are the same in every run. */
const dice = (seed) => {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 16) % sides;
  };
};

test(
  'dozens of workers terminated at any moment leave working mutexes',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const mutexes = [0, 4].map((distance) => new Mutex(buffer, OFFSET + distance));
    const roll = dice(7);
    let count = 0;
    const start = () => {
      const flag = count++;
      const offsets = mutexes.map(({ byteOffset }) => byteOffset);
      return { flag, thread: threads.start('restless', { buffer, offsets, seed: roll(1000) + 1, flag }) };
    };
    const workers = Array.from({ length: 6 }, start);
    for (let ended = 0; ended < 18; ended++) {
      const index = roll(workers.length);
      await threads.raised(workers[index].flag);
      for (let turn = roll(200); turn > 0; turn--) await nextTurn();
      const [ending] = workers.splice(index, 1);
      const gone = ending.thread.terminate();
      if (roll(2) === 0) await gone;
      workers.push(start());
      const mutex = mutexes[roll(2)];
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
    }
    await Promise.all(workers.map(({ thread }) => thread.terminate()));
    for (const mutex of mutexes) {
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
      assert.deepEqual(mutex.inspect().waiters, []);
    }
  }, 60_000),
);

test(
  'workers terminated while locks are being granted to their event loops leave a working mutex',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const roll = dice(11);
    for (let round = 0; round < 12; round++) {
      const workers = await threads.puppets(2, buffer);
      mutex.tryLock();
      for (const worker of workers) {
        for (let count = 0; count < 10; count++) worker.run([['lockAsync'], ['unlock']]);
      }
      await threads.queued(mutex, 20);
      mutex.unlock();
      for (let turn = roll(4); turn > 0; turn--) await nextTurn();
      const gone = workers[0].terminate();
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
      await gone;
      await workers[1].terminate();
      // Not at once everywhere: its thread may hold it until it has ended.
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
    }
  }),
);

for (const [kind, args, options] of [
  ['a worker at a time, and never by main', [], needs()],
  ['by workers only, that are terminated while they wait', ['terminate'], needs('termination when busy')],
]) {
  test(`the addon may be loaded ${kind}`, options, async () => {
    const { code, signal, stdout, stderr } = await runProgram('load-in-workers-only', args);
    assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: '' });
    assert.equal(stdout.trim(), 'every owner was new');
  });
}

test('buffers that are collected while waits on them time out leave no trace', async () => {
  const { code, signal, stdout, stderr } = await runProgram('collected-buffers', [], { nodeArgs: ['--expose-gc'] });
  assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: '' });
  assert.deepEqual(JSON.parse(stdout), { timedOut: 2000, granted: 2000 });
});

test('a wait that is over keeps no memory, however it ended', needs('complete collection'), async () => {
  const { code, signal, stdout, stderr } = await runProgram('settled-buffers', [], { nodeArgs: ['--expose-gc'] });
  assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: '' });
  const left = Object.entries(JSON.parse(stdout)).filter(([, count]) => count > 0);
  assert.deepEqual(left, []);
});
