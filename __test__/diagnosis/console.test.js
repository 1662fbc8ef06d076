// A lock, as console.log() shows it to people.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { threadId } = require('node:worker_threads');
const sablock = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const { Condition, Mutex } = sablock;

test(
  'console.log() of a mutex shows where it is, who holds it and how many wait',
  watched(async () => {
    const { mutex } = createMutex();
    assert.equal(
      inspect(mutex),
      `Mutex { byteOffset: ${OFFSET}, locked: false, ownerThreadId: null, abandoned: false, waiters: 0 }`,
    );
    mutex.tryLock();
    const pending = mutex.lockAsync();
    assert.equal(
      inspect(mutex),
      `Mutex { byteOffset: ${OFFSET}, locked: true, ownerThreadId: ${threadId}, abandoned: false, waiters: 1 }`,
    );
    mutex.unlock();
    await pending;
    mutex.unlock();
  }),
);

test('console.log() of a named mutex shows its name, deep inside nothing else', () => {
  const mutex = new Mutex(new SharedArrayBuffer(4), 0, { name: 'the "jobs"' });
  assert.match(inspect(mutex), /^Mutex 'the "jobs"' \{ byteOffset: 0, /);
  assert.equal(inspect({ a: { b: { c: mutex } } }, { depth: 2, breakLength: Infinity }).includes('byteOffset'), false);
  assert.match(inspect({ a: { b: { c: mutex } } }, { depth: 2 }), /\[Mutex 'the "jobs"'\]/);
});

test('console.log() of a guard shows whether it holds, and what', () => {
  const { mutex } = createMutex();
  const guard = mutex.tryAcquire();
  assert.match(
    inspect(guard),
    /^LockGuard \{ locked: true, abandoned: false, mutex: Mutex \{ byteOffset: 1048, locked: true/,
  );
  guard.unlock();
  assert.match(inspect(guard), /^LockGuard \{ locked: false, /);
});

test(
  'console.log() of a condition shows how many wait for it',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const condition = new Condition(buffer, OFFSET + 4, { name: 'not empty' });
    mutex.tryLock();
    const waiting = condition.waitAsync(mutex);
    assert.equal(inspect(condition), `Condition 'not empty' { byteOffset: ${OFFSET + 4}, waiters: 1 }`);
    condition.notifyAll();
    await waiting;
    assert.equal(inspect(condition), `Condition 'not empty' { byteOffset: ${OFFSET + 4}, waiters: 0 }`);
    mutex.unlock();
  }),
);

test('console.log() of every prototype of the package, and of an object that has only that, is no error', () => {
  const classes = Object.values(sablock).filter(
    (value) => typeof value === 'function' && value.prototype !== undefined,
  );
  assert.ok(classes.includes(sablock.LockManager) && classes.includes(sablock.HeldLocks));
  for (const { name, prototype } of classes) {
    for (const object of [prototype, Object.create(prototype)]) assert.equal(typeof inspect(object), 'string', name);
  }
});

test('console.log() of the prototypes and of what extends them is no error', () => {
  for (const lock of [Mutex, Condition]) {
    assert.equal(typeof inspect(lock.prototype), 'string');
    assert.match(inspect(new (class Mine extends lock {})(new SharedArrayBuffer(4))), /byteOffset: 0/);
  }
});
