// An RwLock refuses bad input, and says why.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { RwLock, RwLockGuard, Semaphore, lockAllAsync } = require('../..');
const expected = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { createRwLock, readersWord } = require('../helpers/rwlock.js');

const MODES = ['read', 'write'];

test('RwLockGuard cannot be made', () => {
  assert.throws(() => new RwLockGuard(), TypeError);
});

test('memory that no sablock wrote is ERR_LOCK_CORRUPT and stays as it is', async () => {
  for (const value of [readersWord(0) | (1 << 30), 1 << 26, 5, -1, (1 << 29) | (1 << 30) | 3]) {
    const { rw, word, words } = createRwLock({ allowMainThread: true });
    Atomics.store(words, 0, value);
    for (const mode of MODES) {
      assert.throws(() => rw[mode].tryLock(), expected.corrupt(OFFSET));
      assert.throws(() => rw[mode].lock(), expected.corrupt(OFFSET));
      await assert.rejects(rw[mode].lockAsync(), expected.corrupt(OFFSET));
      assert.equal(rw[mode].isHeldByThisThread, false);
    }
    assert.throws(() => rw.markConsistent(), expected.corrupt(OFFSET));
    assert.equal(word(), value);
  }
});

test('memory of a semaphore of which this thread has a permit is ERR_LOCK_CORRUPT, by a promise where one is returned', async () => {
  const { buffer, rw } = createRwLock();
  const permits = new Semaphore(buffer, OFFSET, 4).tryAcquire();
  for (const call of [
    () => rw.read.lockAsync(),
    () => rw.read.lockAsync(5),
    () => rw.read.acquireAsync(),
    () => rw.read.acquireAsync({}),
    () => rw.read.executeLocked(() => {}),
    () => lockAllAsync([rw.read]),
  ]) {
    const promise = call();
    assert.ok(promise instanceof Promise);
    await assert.rejects(promise, expected.corrupt(OFFSET));
  }
  assert.throws(() => rw.read.tryLock(), expected.corrupt(OFFSET));
  assert.equal(permits.release(), true);
});

test('a lock that was overwritten while it was read is ERR_LOCK_CORRUPT, and its guard stays', () => {
  const { rw, words } = createRwLock();
  const guard = rw.read.tryAcquire();
  Atomics.store(words, 0, 7);
  assert.throws(() => guard.unlock(), expected.corrupt(OFFSET));
  assert.equal(guard.locked, true);
  Atomics.store(words, 0, readersWord(1));
  assert.equal(guard.unlock(), true);
});

/** What gives a hold back or changes its mode: how it is held, the verb, and the mode. */
const CHANGES = {
  'read.unlock()': [(rw) => rw.read.tryLock(), (rw) => rw.read.unlock(), 'read'],
  'write.unlock()': [(rw) => rw.write.tryLock(), (rw) => rw.write.unlock(), 'write'],
  'downgrade()': [(rw) => rw.write.tryLock(), (rw) => rw.downgrade(), 'write'],
  'tryUpgrade()': [(rw) => rw.read.tryLock(), (rw) => rw.tryUpgrade(), 'read'],
  'unlock() of a guard that reads': [(rw) => rw.read.tryAcquire(), (_, guard) => guard.unlock(), 'read'],
  'unlock() of a guard that writes': [(rw) => rw.write.tryAcquire(), (_, guard) => guard.unlock(), 'write'],
  'downgrade() of a guard': [(rw) => rw.write.tryAcquire(), (_, guard) => guard.downgrade(), 'write'],
  'tryUpgrade() of a guard': [(rw) => rw.read.tryAcquire(), (_, guard) => guard.tryUpgrade(), 'read'],
};

const NOT_HELD = {
  read: /this thread does not hold it to read\./,
  write: /this thread (?:does not hold it to write\.|did not lock it by write\.lock\(\))/,
};

for (const [verb, [hold, change, mode]] of Object.entries(CHANGES)) {
  test(`${verb} says why it cannot be, if the memory was overwritten meanwhile, and changes nothing`, () => {
    const { rw, word, words } = createRwLock();
    const held = hold(rw);
    const before = word();
    for (const value of [-1, 7, 1 << 26]) {
      Atomics.store(words, 0, value);
      assert.throws(() => change(rw, held), expected.corrupt(OFFSET));
      assert.equal(word(), value);
    }
    Atomics.store(words, 0, 0);
    if (/tryUpgrade/.test(verb)) assert.equal(change(rw, held), false);
    else assert.throws(() => change(rw, held), { ...expected.notOwner(OFFSET), message: NOT_HELD[mode] });
    assert.equal(word(), 0);
    // As the memory is again, it is held.
    Atomics.store(words, 0, before);
    if (held === true) rw[mode].unlock();
    else assert.equal(held.unlock(), true);
    assert.equal(word(), 0);
  });
}

test('what blocks is refused on the main thread, free or not', () => {
  const { rw } = createRwLock();
  for (const mode of MODES) {
    for (const verb of ['lock', 'acquire']) assert.throws(() => rw[mode][verb](), expected.mainThread(OFFSET));
    assert.throws(() => rw[mode].executeLockedSync(() => {}), expected.mainThread(OFFSET));
  }
});

test('bad input is an error before anything changes', async () => {
  const memory = new SharedArrayBuffer(16);
  for (const buffer of [undefined, null, new ArrayBuffer(16), new Int32Array(memory)]) {
    assert.throws(() => new RwLock(buffer), expected.invalidArgType());
  }
  for (const byteOffset of [-4, 2, 12, 16, 0.5])
    assert.throws(() => new RwLock(memory, byteOffset), expected.outOfRange());
  for (const options of [null, 5, { allowMainThread: 1 }, { name: 5 }, { onAbandoned: 'repair' }]) {
    assert.throws(() => new RwLock(memory, 0, options), expected.invalidArgType());
  }
  const { rw, word } = createRwLock({ allowMainThread: true });
  for (const mode of MODES) {
    for (const timeout of ['5', null, 5n, { timeout: '5' }]) {
      assert.throws(() => rw[mode].lock(timeout), expected.invalidArgType(OFFSET));
      assert.throws(() => rw[mode].acquire(timeout), expected.invalidArgType(OFFSET));
      await assert.rejects(rw[mode].lockAsync(timeout), expected.invalidArgType(OFFSET));
      await assert.rejects(rw[mode].acquireAsync(timeout), expected.invalidArgType(OFFSET));
    }
    assert.throws(() => rw[mode].executeLockedSync('fn'), expected.invalidArgType(OFFSET));
    await assert.rejects(rw[mode].executeLocked(), expected.invalidArgType(OFFSET));
    await assert.rejects(rw[mode].lockAsync({ signal: 1 }), expected.invalidArgType(OFFSET));
    await assert.rejects(rw[mode].lockAsync({ ref: 1 }), expected.invalidArgType(OFFSET));
  }
  assert.equal(word(), 0);
});

test('messages have the name, say rwlock, and say who holds it', async () => {
  const { rw } = createRwLock({ name: 'cache', allowMainThread: true });
  rw.read.lock();
  assert.throws(
    () => rw.write.acquire(5),
    /write\.acquire\(\) timed out after 5 ms waiting for the rwlock 'cache' at byte offset 1048\. It is held now, shared, by this thread/,
  );
  assert.throws(() => rw.write.unlock(), /the rwlock 'cache' at byte offset 1048/);
  assert.match(inspect(rw), /^RwLock 'cache' \{ byteOffset: 1048, holders: 1, waiters: 0 \}$/);
  assert.match(inspect(rw.read), /^RwLock 'cache' \{.*\}\.read$/);
  assert.match(inspect(rw.read.tryAcquire()), /^RwLockGuard \{ mode: 'shared', locked: true, abandoned: false,/);
});

test('a TimeoutError says which verb of which mode it was', async () => {
  const { rw } = createRwLock({ allowMainThread: true });
  rw.write.lock();
  for (const mode of MODES) {
    const verbs = {
      acquire: () => rw[mode].acquire(1),
      acquireAsync: () => rw[mode].acquireAsync(1),
      executeLocked: () => rw[mode].executeLocked(() => {}, { timeout: 1 }),
      executeLockedSync: () => rw[mode].executeLockedSync(() => {}, { timeout: 1 }),
    };
    for (const [verb, call] of Object.entries(verbs)) {
      const message = new RegExp(
        `^${mode}\\.${verb}\\(\\) timed out after 1 ms waiting for the rwlock at byte offset ${OFFSET}\\.`,
      );
      await assert.rejects(async () => call(), { code: 'ERR_LOCK_TIMEOUT', message }, `${mode}.${verb}`);
    }
  }
  rw.write.unlock();
});

test('a change of mode that is none of the thread itself says by which verbs it would be, and what a guard has for it', () => {
  const { rw } = createRwLock();
  for (const [verb, mode] of [
    ['downgrade', 'write'],
    ['tryUpgrade', 'read'],
  ]) {
    const guard = rw[mode].tryAcquire();
    const message = `this thread did not lock it by ${mode}.lock(), ${mode}.tryLock() or ${mode}.lockAsync(). A guard has a ${verb}() of its own.`;
    assert.throws(
      () => rw[verb](),
      (error) => error.code === 'ERR_LOCK_NOT_OWNER' && error.message.endsWith(message),
    );
    guard.unlock();
  }
});

test('what is not held asks for a forgotten await where this thread waits for that lock, by every verb', async () => {
  const { rw } = createRwLock();
  const guard = rw.read.tryAcquire();
  const calls = [
    () => rw.read.unlock(),
    () => rw.write.unlock(),
    () => rw.downgrade(),
    () => rw.tryUpgrade(),
    () => rw.markConsistent(),
  ];
  const forgotten = /did you forget `await`\?/;
  for (const call of calls) {
    assert.throws(call, ({ code, message }) => code === 'ERR_LOCK_NOT_OWNER' && !forgotten.test(message), `${call}`);
  }
  const pending = rw.write.lockAsync();
  for (const call of calls) assert.throws(call, { code: 'ERR_LOCK_NOT_OWNER', message: forgotten }, `${call}`);
  guard.unlock();
  assert.equal(await pending, true);
  rw.write.unlock();
});
