const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex, stats } = require('../..');
const { warn } = require('../../lib/engine/abandonment.js');
const { thread } = require('../../lib/engine/thread.js');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { limit } = require('../helpers/limits.js');
const { OFFSET } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');

/** Collects the warnings of this thread about abandoned mutexes. */
const listen = (t) => {
  const warnings = [];
  const note = (warning) => {
    if (warning.code === 'SABLOCK_ABANDONED') warnings.push(warning);
  };
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  return warnings;
};

/** Lets the warnings come that have been emitted. */
const settle = async () => {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
};

test(
  'the acquiring thread emits one warning for each mutex and ended thread',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = listen(t);
    const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    await terminate.end(holder);
    assert.equal(mutex.tryLock(), true);
    mutex.unlock();
    assert.equal(await mutex.lockAsync(), true);
    mutex.unlock();
    mutex.tryAcquire().unlock();
    await settle();
    assert.equal(warnings.length, 1);
    assert.match(warnings[0].message, new RegExp(`\\b${OFFSET}\\b`));

    await waiters[0].run([['lock'], ['unlock'], ['lock']]);
    assert.deepEqual(
      (await waiters[0].call('warnings')).filter(({ code }) => code === 'SABLOCK_ABANDONED'),
      [],
    );
    await terminate.end(waiters[0]);
    assert.equal(mutex.tryLock(), true);
    mutex.unlock();
    await settle();
    assert.equal(warnings.length, 2, 'another thread ended');
  }),
);

test(
  'two mutexes of one ended thread are two warnings',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = listen(t);
    const { buffer, mutex, holder } = await createHeld(threads);
    const other = new Mutex(buffer, OFFSET + 4);
    await holder.call(OFFSET + 4, 'lock');
    await terminate.end(holder);
    mutex.tryLock();
    other.tryLock();
    await settle();
    assert.deepEqual(warnings.map(({ message }) => message.match(/\b10\d\d\b/)?.[0]).sort(), [
      `${OFFSET}`,
      `${OFFSET + 4}`,
    ]);
  }),
);

for (const verb of ['lock', 'lockAsync', 'acquire', 'acquireAsync', 'enter']) {
  test(
    `a worker that gets an abandoned mutex by ${verb}() is warned, and main is not`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const warnings = listen(t);
      const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
      const waiting = waiters[0].call(verb);
      await threads.queued(mutex, 1);
      await terminate.end(holder);
      await waiting;
      let theirs = [];
      for (let turn = 0; turn < 5; turn++) theirs = await waiters[0].call('warnings');
      assert.deepEqual(
        theirs.map(({ code }) => code),
        ['SABLOCK_ABANDONED'],
      );
      await settle();
      assert.deepEqual(warnings, []);
    }),
  );
}

test(
  'a thread that ends without a lock warns nobody',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = listen(t);
    const { mutex, holder } = await createHeld(threads);
    await holder.call('unlock');
    await terminate.end(holder);
    mutex.tryLock();
    await settle();
    assert.deepEqual(warnings, []);
  }),
);

test(
  'a thread emits at most five warnings in a second, then one line for the rest; channel and stats have all',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { mutex, holder, waiters } = await createHeld(threads, { others: 1 });
    // A thread that has not warned of anything yet.
    const [worker] = waiters;
    await worker.call('listen', 'sablock:abandoned');
    const offsets = Array.from({ length: 8 }, (_, index) => mutex.byteOffset + 4 * (index + 1));
    await holder.run(offsets.map((byteOffset) => [byteOffset, 'lock']));
    await terminate.end(holder);
    const before = stats().abandoned;
    assert.deepEqual(
      await worker.run(offsets.map((byteOffset) => [byteOffset, 'tryLock'])),
      offsets.map(() => true),
    );
    assert.equal(await worker.call(offsets[7], 'get', 'abandoned'), true);
    assert.equal(stats().abandoned - before, 8);
    assert.deepEqual(
      (await worker.call('heard', 'sablock:abandoned')).map(({ byteOffset }) => byteOffset),
      offsets,
    );
    const warnings = [];
    while (warnings.length < 6) {
      const all = await worker.call('warnings');
      warnings.splice(0, Infinity, ...all.filter(({ code }) => code === 'SABLOCK_ABANDONED'));
      assert.ok(warnings.length <= 6);
      await nextTurn();
    }
    for (let index = 0; index < 5; index++)
      assert.match(warnings[index].message, new RegExp(`\\b${offsets[index]}\\b`));
    assert.match(warnings[5].message, /^3 more locks /);
  }),
);

test('the line for the rest comes before the process ends by itself, and does not keep it alive', async () => {
  const { code, stdout, stderr } = await runProgram('many-abandoned');
  assert.equal(code, 0, stderr);
  const lines = stderr.split('\n').filter((line) => line.includes('SABLOCK_ABANDONED'));
  assert.equal(lines.length, 6, stderr);
  assert.match(lines[5], / 1 more lock /);
  assert.deepEqual(JSON.parse(stdout), [false]);
});

test('each burst of warnings ends with one line for its own rest, and leaves no listener', {
  timeout: limit(60_000),
}, async (t) => {
  const warnings = listen(t);
  const { warnings: before } = thread;
  thread.warnings = null;
  t.after(() => {
    thread.warnings = before;
  });
  const listeners = process.listenerCount('beforeExit');
  for (const rest of [2, 3]) {
    warnings.length = 0;
    for (let count = 0; count < 5 + rest; count++) warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 7', false);
    const warnedAt = performance.now();
    while (warnings.length < 6) await nextTurn();
    // A timer counts from the beginning of the turn, so that the line may come before the second is over.
    while (performance.now() - warnedAt < 1000) await nextTurn();
    await settle();
    assert.equal(warnings.length, 6);
    assert.match(warnings[5].message, new RegExp(`^${rest} more locks `));
    assert.equal(process.listenerCount('beforeExit'), listeners);
  }
});
