// Tools that look for what keeps a process alive see the async resources of the package, and whether they do.

const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { test } = require('node:test');
const { Condition, waitAsync } = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** As `jest --detectOpenHandles` does it: the resources that say by `hasRef()` that they keep the loop alive. */
const collect = (t) => {
  const handles = new Map();
  const hook = createHook({
    init(id, type, _, resource) {
      if (type === 'SablockWait') handles.set(id, { resource, stack: new Error('Began here').stack });
    },
    destroy: (id) => handles.delete(id),
  }).enable();
  t.after(() => hook.disable());
  return {
    open: () => [...handles.values()].filter(({ resource }) => resource.hasRef()),
    all: handles,
  };
};

const waits = {
  'lockAsync()': (mutex, options) => mutex.lockAsync(options),
  'acquireAsync()': (mutex, options) => mutex.acquireAsync(options),
  'executeLocked()': (mutex, options) => mutex.executeLocked(() => {}, options),
  'Condition.waitAsync()': (mutex, options) => new Condition(mutex.buffer, OFFSET + 4).waitAsync(mutex, options),
  'waitAsync()': (mutex, options) => waitAsync(new Int32Array(mutex.buffer), 1, 0, undefined, options).value,
};

for (const [verb, wait] of Object.entries(waits)) {
  test(
    `a pending ${verb} is an async resource with the stack of its caller, which goes with the wait`,
    needs('async hooks'),
    watched(async (t, threads) => {
      const { mutex } = createMutex();
      mutex.tryLock();
      const handles = collect(t);
      const controller = new AbortController();
      const pending = wait(mutex, { signal: controller.signal });
      const [{ stack }, ...others] = handles.open();
      assert.deepEqual(others, []);
      assert.ok(stack.includes(__filename), stack);
      controller.abort();
      await assert.rejects(pending);
      assert.deepEqual(handles.open(), []);
      await threads.until('the resource is destroyed', () => handles.all.size === 0);
      if (mutex.isLocked) mutex.unlock();
    }),
  );

  test(
    `a pending ${verb} that does not keep the process alive says so`,
    needs('async hooks'),
    watched(async (t) => {
      const { mutex } = createMutex();
      mutex.tryLock();
      const handles = collect(t);
      const controller = new AbortController();
      const pending = wait(mutex, { signal: controller.signal, ref: false });
      assert.equal(handles.all.size, 1);
      assert.deepEqual(handles.open(), []);
      controller.abort();
      await assert.rejects(pending);
      if (mutex.isLocked) mutex.unlock();
    }),
  );
}

test(
  'a granted wait is over as an async resource, too',
  needs('async hooks'),
  watched(async (t, threads) => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const handles = collect(t);
    const pending = mutex.lockAsync();
    assert.equal(handles.open().length, 1);
    mutex.unlock();
    await pending;
    assert.deepEqual(handles.open(), []);
    await threads.until('the resource is destroyed', () => handles.all.size === 0);
    mutex.unlock();
  }),
);

test("the thread's own resource keeps the process alive only while a wait does", needs('async hooks'), async () => {
  const { code, stdout, stderr } = await runProgram('open-handles');
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), {
    resources: ['sablock'],
    loaded: false,
    pending: true,
    unreferenced: false,
    over: false,
  });
});
