const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex } = require('..');
const { endings } = require('./helpers/endings.js');
const { createHeld } = require('./helpers/held.js');
const { OFFSET } = require('./helpers/memory.js');
const { needs } = require('./helpers/runtime.js');
const { watched } = require('./helpers/threads.js');

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
