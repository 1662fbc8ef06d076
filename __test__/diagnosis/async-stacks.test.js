// The stack of a rejection leads to the code that waits, and the message to the lock.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const { Mutex } = require('../..');
const { createHeld } = require('../helpers/held.js');
const { createMutex, OFFSET, overwrite } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const rejectionOf = (promise) =>
  promise.then(
    () => assert.fail('nothing was rejected'),
    (error) => error,
  );

const verbs = {
  acquireAsync: (mutex, options) => mutex.acquireAsync(options),
  executeLocked: (mutex, options) => mutex.executeLocked(() => assert.fail('ran'), options),
};

for (const [verb, call] of Object.entries(verbs)) {
  test(
    `a TimeoutError of ${verb}() shows the async functions that await it`,
    needs('async stacks'),
    watched(async () => {
      const { mutex } = createMutex();
      mutex.tryLock();
      async function waitForLock() {
        await call(mutex, { timeout: 5 });
      }
      async function handleRequest() {
        await Promise.all([waitForLock()]);
      }
      const { stack } = await rejectionOf(handleRequest());
      assert.match(stack, /at async waitForLock .*async-stacks/);
      assert.match(stack, /at async Promise\.all/);
      assert.match(stack, /at async handleRequest .*async-stacks/);
      mutex.unlock();
    }),
  );

  test(
    `a TimeoutError of ${verb}() names verb, lock and holder`,
    watched(async (_, threads) => {
      const { mutex, holder } = await createHeld(threads);
      const held = await rejectionOf(call(mutex, { timeout: 5 }));
      assert.match(
        held.message,
        new RegExp(`^${verb}\\(\\) .*\\b${OFFSET}\\b.*Thread ${holder.threadId} holds it now\\.`),
      );
      await holder.call('unlock');
      mutex.tryLock();
      const mine = await rejectionOf(call(mutex, { timeout: 5 }));
      assert.match(mine.message, /This thread holds it now\./);
      mutex.unlock();
    }),
  );
}

test(
  'a wait that somebody ruins by overwriting the word is rejected with a stack, too',
  needs('async stacks'),
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    async function waitForLock() {
      await mutex.lockAsync();
    }
    const waiting = waitForLock();
    // The lock is on its way to the wait.
    mutex.unlock();
    overwrite(mutex, 1);
    const { code, stack } = await rejectionOf(waiting);
    assert.equal(code, 'ERR_LOCK_CORRUPT');
    assert.match(stack, /at async waitForLock /);
  }),
);

test(
  'a rejection at once has the stack of its call',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const { stack } = await rejectionOf(
      mutex.acquireAsync({ timeout: 0 }).then(() => assert.fail('nothing was rejected')),
    );
    assert.ok(stack.includes(__filename));
    mutex.unlock();
  }),
);

test(
  'a TimeoutError of a blocking verb names verb, lock and holder, and where it was called',
  watched(async (_, threads) => {
    const { mutex, holder } = await createHeld(threads);
    const blocking = new Mutex(mutex.buffer, OFFSET, { allowMainThread: true });
    for (const [verb, call] of [
      ['acquire', () => blocking.acquire(5)],
      ['executeLockedSync', () => blocking.executeLockedSync(() => {}, { timeout: 5 })],
    ]) {
      assert.throws(call, ({ message, stack }) => {
        assert.match(
          message,
          new RegExp(`^${verb}\\(\\) .*\\b${OFFSET}\\b.*Thread ${holder.threadId} holds it now\\.`),
        );
        assert.ok(stack.includes(__filename));
        return true;
      });
    }
  }),
);

test(
  'a TimeoutError says for how long the hold was seen, once somebody listens to long holds',
  watched(async (t, threads) => {
    listen(t, 'sablock:long-hold');
    const { mutex, holder } = await createHeld(threads);
    const seen = /Thread (\d+) holds it now, and was seen to hold it for (\d+) ms on end\./;
    let found = null;
    let message;
    let most;
    // A loop that did not turn in that time has seen nothing.
    for (let timeout = 150; found === null; timeout *= 2) {
      const startedAt = performance.now();
      ({ message } = await rejectionOf(mutex.acquireAsync(timeout)));
      most = performance.now() - startedAt;
      found = seen.exec(message);
    }
    const [, thread, ms] = found;
    assert.equal(Number(thread), holder.threadId);
    assert.ok(Number(ms) > 0 && Number(ms) <= most, message);
    assert.notEqual(Number(thread), threadId);
    // Not of another lock, nor of the next holder of this one.
    const beside = new Mutex(mutex.buffer, OFFSET + 4);
    await holder.run([[OFFSET + 4, 'lock']]);
    assert.throws(() => beside.unlock(), { message: new RegExp(`Thread ${holder.threadId} holds it now\\.`) });
    const [next] = await threads.puppets(1, mutex.buffer);
    await holder.call('unlock');
    await next.call('lock');
    assert.throws(() => mutex.unlock(), { message: new RegExp(`Thread ${next.threadId} holds it now\\.`) });
  }),
);
