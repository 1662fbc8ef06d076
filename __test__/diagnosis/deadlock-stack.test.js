// The stack of a DeadlockError: it begins where the program called.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager, LockTable, Mutex, Once, RwLock, lockAll } = require('../../index.js');

const OPTIONS = { allowMainThread: true };
const make = (Type) => new Type(new SharedArrayBuffer(Type.BYTES), 0, OPTIONS);

/** Each makes a hold, and returns the call that blocks for it. */
const WAYS = {
  'mutex.lock()': () => {
    const mutex = make(Mutex);
    mutex.lock();
    return () => mutex.lock();
  },
  'mutex.acquire()': () => {
    const mutex = make(Mutex);
    mutex.lock();
    return () => mutex.acquire();
  },
  'mutex.executeLockedSync()': () => {
    const mutex = make(Mutex);
    return () => mutex.executeLockedSync(() => mutex.executeLockedSync(() => {}));
  },
  'lockAll()': () => {
    const mutex = make(Mutex);
    mutex.lock();
    return () => lockAll([mutex]);
  },
  'read.lock()': () => {
    const { read, write } = make(RwLock);
    write.lock();
    return () => read.lock();
  },
  'write.acquire()': () => {
    const { read, write } = make(RwLock);
    read.lock();
    return () => write.acquire();
  },
  'table.lock()': () => {
    const table = new LockTable(new SharedArrayBuffer(8), 0, 2, OPTIONS);
    table.lock(1);
    return () => table.lock(1);
  },
  'once.runSync()': () => {
    const once = make(Once);
    return () => once.runSync(() => once.runSync(() => {}));
  },
  'manager.acquire()': () => {
    const manager = new LockManager(OPTIONS);
    return () => manager.requestSync('a stack', () => manager.acquire('a stack'));
  },
  'manager.requestSync()': () => {
    const manager = new LockManager(OPTIONS);
    return () => manager.requestSync('a nested stack', () => manager.requestSync('a nested stack', () => {}));
  },
};

function caught(act, stackTraceLimit) {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = stackTraceLimit;
  try {
    act();
  } catch (error) {
    return error;
  } finally {
    assert.equal(Error.stackTraceLimit, stackTraceLimit);
    Error.stackTraceLimit = before;
  }
}

for (const [way, create] of Object.entries(WAYS)) {
  for (const limit of [1, 10, 30]) {
    test(`a DeadlockError of ${way} has a stack that begins with the program's frame, of ${limit} frames at most`, () => {
      const error = caught(create(), limit);
      assert.equal(error.code, 'ERR_LOCK_DEADLOCK');
      assert.ok(!Object.keys(error).includes('stack'));
      assert.ok(
        error.stack.startsWith(`${error.name}: ${error.message}\n`) ||
          error.stack.startsWith(`Error: ${error.message}\n`),
      );
      const frames = error.stack.split('\n').filter((line) => /^\s+at /.test(line));
      assert.match(frames[0], /[\\/]deadlock-stack\.test\.js:\d+/);
      assert.ok(frames.length <= limit, error.stack);
    });
  }
}

test('a DeadlockError has no frames where the program wants none, and is as it would be where that formats stacks itself', () => {
  const call = WAYS['mutex.lock()']();
  assert.equal(caught(call, 0).stack.split('\n').length, 1);
  assert.equal(caught(call, undefined).code, 'ERR_LOCK_DEADLOCK');
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = () => 7;
  try {
    const { code, stack } = caught(call, 10);
    assert.deepEqual([code, stack], ['ERR_LOCK_DEADLOCK', 7]);
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
  }
});

test('where Error is frozen, a DeadlockError is as it would be', () => {
  const { execFileSync } = require('node:child_process');
  const program = `
    'use strict';
    Object.freeze(Error);
    const { Mutex } = require(${JSON.stringify(require.resolve('../../index.js'))});
    const mutex = new Mutex(new SharedArrayBuffer(4), 0, { allowMainThread: true });
    mutex.lock();
    try {
      mutex.lock();
    } catch ({ code, message, stack }) {
      console.log(code, typeof stack, message.length > 0);
    }
  `;
  const output = execFileSync(process.execPath, ['--eval', program], { encoding: 'utf8' });
  assert.equal(output, 'ERR_LOCK_DEADLOCK string true\n');
});
