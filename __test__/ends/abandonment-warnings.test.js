const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex, locks, stats } = require('../..');
const { warn } = require('../../lib/engine/abandonment.js');
const { thread } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { removed, unwritten } = require('../../lib/named/machine-errors.js');
const { endings } = require('../helpers/endings.js');
const { createHeld } = require('../helpers/held.js');
const { limit } = require('../helpers/limits.js');
const { OFFSET } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { noting } = require('../helpers/uncaught.js');

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

test('five warnings are given in any second, and the line for the rest once', needs('mocked timers'), (t) => {
  const { warnings: before } = thread;
  thread.warnings = null;
  t.after(() => {
    thread.warnings = before;
  });
  let now = 0;
  t.mock.method(clock, 'now', () => now);
  const timer = { unref: () => timer };
  const started = t.mock.method(clock, 'setTimeout', () => timer);
  const stopped = t.mock.method(clock, 'clearTimeout', () => {});
  const emitted = t.mock.method(process, 'emitWarning', () => {});
  for (const [at, count, all] of [
    [0, 1, 1],
    [999, 5, 5],
    // In the second before this four were given.
    [1000, 3, 6],
    [1998, 1, 6],
    [1999, 1, 7],
  ]) {
    now = at;
    for (let each = 0; each < count; each++) warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 7', false);
    assert.equal(emitted.mock.callCount(), all, `at ${at} ms`);
  }
  assert.deepEqual(
    started.mock.calls.map(({ arguments: [, ms] }) => ms),
    [1000],
  );
  process.listeners('beforeExit').at(-1)();
  assert.match(emitted.mock.calls.at(-1).arguments[0], /^4 more locks /);
  // Else a later rest would have its line too early.
  assert.deepEqual(
    stopped.mock.calls.map(({ arguments: [each] }) => each),
    [timer],
  );
});

test('no more than five warnings are given in a second if a replaced emitWarning() finds abandoned locks itself', {
  timeout: limit(60_000),
}, async (t) => {
  const { warnings: before } = thread;
  const { emitWarning } = process;
  thread.warnings = null;
  t.after(() => {
    thread.warnings = before;
    process.emitWarning = emitWarning;
  });
  let count = 0;
  process.emitWarning = () => {
    count += 1;
    if (count === 5) warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 8', false);
  };
  for (let each = 0; each < 20; each++) warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 7', false);
  assert.equal(count, 5);
  // The line for the rest: in a later test it would be one warning too many.
  while (count < 6) await nextTurn();
});

/** The warnings of the package that a replaced `emitWarning()` may refuse, and what gives them, which has been granted or released by then. */
const WARNINGS = {
  'a lock that was left': () => warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 7 ended', false),
  'a file that was removed': () => removed('name', '/directory'),
  'a record that could not be written': () => unwritten('name', { path: '/record', message: 'no room' }),
};

for (const [what, give] of Object.entries(WARNINGS)) {
  test(`an emitWarning() of the program that throws at ${what} is an uncaught error, and none of the call`, {
    ...needs('uncaught subscribers'),
    timeout: limit(60_000),
  }, async (t) => {
    const { warnings: before } = thread;
    thread.warnings = null;
    t.after(() => {
      thread.warnings = before;
    });
    await noting(async (uncaught) => {
      const refuse = () => {
        throw new Error('on purpose');
      };
      t.mock.method(process, 'emitWarning', refuse);
      give();
      process.emitWarning.mock.restore();
      while (uncaught.length === 0) await nextTurn();
      assert.deepEqual(uncaught, ['on purpose']);
    });
  });
}

for (const verb of ['lockAsync', 'acquireAsync']) {
  test(
    `${verb}() warns of the thread that ended, if an async hook acquires another lock before`,
    needs('prompt ends', 'async hooks'),
    watched(async (t, threads) => {
      const warnings = listen(t);
      const { buffer, mutex, holder } = await createHeld(threads);
      const other = new Mutex(buffer, OFFSET + 4);
      await holder.call(OFFSET + 4, 'lock');
      const waits = new Set();
      let isAcquired = false;
      const hook = createHook({
        init(id, type) {
          if (type === 'SablockWait') waits.add(id);
        },
        before(id) {
          if (waits.has(id) && !isAcquired) isAcquired = other.tryLock();
        },
      }).enable();
      t.after(() => hook.disable());
      const pending = mutex[verb]();
      await terminate.end(holder);
      await pending;
      await settle();
      assert.equal(isAcquired, true);
      assert.equal(warnings.length, 2);
      for (const { message } of warnings) assert.match(message, new RegExp(`Thread ${holder.threadId} ended`));
    }),
  );
}

for (const verb of ['lockAsync', 'acquireAsync']) {
  test(
    `${verb}() warns of the thread that ended, if its signal acquires another lock when it is no longer listened to`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      // The tests before have given all that there are in a second.
      thread.warnings = null;
      const warnings = listen(t);
      const { mutex, holder } = await createHeld(threads);
      let request;
      class Acquires extends EventTarget {
        aborted = false;

        removeEventListener(...args) {
          super.removeEventListener(...args);
          request = locks.request('another', () => 'acquired');
        }
      }
      await terminate.end(holder);
      await mutex[verb]({ signal: new Acquires() });
      await settle();
      assert.equal(await request, 'acquired');
      const messages = warnings.map(({ message }) => message).filter((message) => message.startsWith('Thread '));
      assert.equal(messages.length, 1);
      assert.match(messages[0], new RegExp(`^Thread ${holder.threadId} ended`));
    }),
  );
}

test(
  'a listener of newListener that throws is an uncaught error of its own, and no reason to fail an acquisition',
  needs('uncaught subscribers'),
  watched(async (t, threads) => {
    const { warnings: before } = thread;
    thread.warnings = null;
    const refuse = (event) => {
      if (event === 'beforeExit') throw new Error('no listener');
    };
    t.after(() => {
      thread.warnings = before;
      process.off('newListener', refuse);
    });
    process.on('newListener', refuse);
    await noting(async (uncaught) => {
      for (let each = 0; each < 8; each++) warn({ kind: 'mutex', byteOffset: 8 }, 'Thread 7', false);
      await threads.until('the error is uncaught', () => uncaught.length > 0);
      assert.deepEqual(uncaught, ['no listener']);
    });
  }),
);
