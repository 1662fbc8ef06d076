const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { test } = require('node:test');
const { createMutex } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { watched } = require('../helpers/threads.js');

/** Returns what a program printed, after it ended by itself with code 0. */
const linesOf = async (...args) => {
  const { code, signal, stdout, stderr } = await runProgram('keep-alive', args);
  assert.equal(stderr, '');
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stdout);
  return stdout.trim().split('\n');
};

for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked', 'enter']) {
  test(`a pending ${verb}() keeps the process alive until it is granted, and no longer`, async () => {
    assert.deepEqual(await linesOf('granted', verb), ['waiting', 'granted', 'exit']);
  });
}

for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked']) {
  test(`a pending ${verb}() with ref: false does not keep the process alive`, async () => {
    assert.deepEqual(await linesOf('unreferenced', verb), ['waiting', 'exit']);
  });
}

test('a pending lockAsync() with ref: false is granted while something else keeps the process alive', async () => {
  assert.deepEqual(await linesOf('unreferenced-but-alive'), ['waiting', 'granted', 'exit']);
});

test('one pending wait keeps the process alive beside others that do not', async () => {
  assert.deepEqual(await linesOf('mixed'), ['waiting', 'granted', 'exit']);
});

test('a wait that timed out keeps nothing alive', async () => {
  assert.deepEqual(await linesOf('timed-out'), ['waiting', 'false', 'exit']);
});

test('a wait that was aborted keeps nothing alive', async () => {
  assert.deepEqual(await linesOf('aborted'), ['waiting', 'aborted', 'exit']);
});

test('an uncontended lockAsync() keeps nothing alive', async () => {
  assert.deepEqual(await linesOf('uncontended'), ['granted', 'exit']);
});

test('loading the package keeps nothing alive', async () => {
  assert.deepEqual(await linesOf('loaded'), ['exit']);
});

test('a settled wait of a worker keeps nothing alive in that worker', async () => {
  assert.deepEqual(await linesOf('in-a-worker'), ['granted', 'worker exit 0', 'exit']);
});

for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked']) {
  test(
    `await ${verb}() keeps its AsyncLocalStorage, though another context unlocks`,
    watched(async () => {
      const { mutex } = createMutex();
      const storage = new AsyncLocalStorage();
      mutex.tryLock();
      const stores = ['first', 'second', 'third'].map((store) =>
        storage.run(store, async () => {
          let inside;
          if (verb === 'executeLocked') {
            await mutex.executeLocked(() => {
              inside = storage.getStore();
            });
          } else {
            const guard = await mutex[verb]();
            inside = storage.getStore();
            storage.run('the unlocking one', () => (guard === true ? mutex.unlock() : guard.unlock()));
          }
          return [inside, storage.getStore()];
        }),
      );
      storage.run('the unlocking one', () => mutex.unlock());
      assert.deepEqual(await Promise.all(stores), [
        ['first', 'first'],
        ['second', 'second'],
        ['third', 'third'],
      ]);
    }),
  );
}
