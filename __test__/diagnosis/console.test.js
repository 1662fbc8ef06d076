// A lock, as console.log() shows it to people.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { threadId } = require('node:worker_threads');
const sablock = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { createFolder } = require('../helpers/folder.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const { Condition, Mutex } = sablock;

const memory = () => new SharedArrayBuffer(16);

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

/** Makes an object of each class that shows itself; the title is what it shows deep inside other objects. */
const DEEP = {
  '[Mutex]': () => createMutex().mutex,
  '[Condition]': () => new Condition(memory()),
  '[RwLock]': () => new sablock.RwLock(memory()),
  '[RwLock].read': () => new sablock.RwLock(memory()).read,
  '[RwLock].write': () => new sablock.RwLock(memory()).write,
  '[LockTable]': () => new sablock.LockTable(memory(), 0, 2),
  "[Semaphore 'named']": () => new sablock.Semaphore(memory(), 0, 1, { name: 'named' }),
  '[LockGuard]': () => createMutex().mutex.tryAcquire(),
  '[RwLockGuard]': () => new sablock.RwLock(memory()).read.tryAcquire(),
  '[LockAllGuard]': () => sablock.lockAllAsync([createMutex().mutex]),
  "[HeldLock 'deep']": () => sablock.locks.acquireAsync('deep'),
  '[HeldLocks]': () => sablock.locks.acquireAsync(['deep 1', 'deep 2']),
  '[LockManager of the machine]': (t) => new sablock.LockManager({ directory: createFolder(t) }),
  '[LockManager of the store]': () => new sablock.LockManager({ store: redis('redis://host') }),
};

test('console.log() of each class shows its title deep inside of others, and all of it where one object less is around', async (t) => {
  for (const [title, make] of Object.entries(DEEP)) {
    const object = await make(t);
    assert.equal(inspect([[[object]]]), `[ [ [ ${title} ] ] ]`);
    const shown = inspect([[object]]);
    if (object instanceof sablock.LockManager) assert.equal(shown, `[ [ ${title} ] ]`);
    else assert.match(shown, /^\[ *\s+\[ *\s+\w+(?: '\w+')? \{/, title);
    if (title.includes('deep') || title === '[HeldLocks]') object.unlock();
  }
});

test('console.log() of the prototypes and of what extends them is no error', () => {
  for (const lock of [Mutex, Condition]) {
    assert.equal(typeof inspect(lock.prototype), 'string');
    assert.match(inspect(new (class Mine extends lock {})(new SharedArrayBuffer(4))), /byteOffset: 0/);
  }
});
