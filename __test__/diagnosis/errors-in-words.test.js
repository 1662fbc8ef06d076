// The words of errors: for time that is over, for a lost lock, and where they cross to other threads as text.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const {
  Barrier,
  Exchanger,
  LockLostError,
  LockManager,
  LockTable,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  lockAll,
  lockAllAsync,
  locks,
} = require('../..');
const { fromText, toText } = require('../../lib/engine/error-text.js');

const cross = (error) => fromText(toText(error));

test('an error crosses with its message and code, and that of a store if it has none', () => {
  for (const [code, expected] of [
    ['ERR_LOCK_CLOSED', 'ERR_LOCK_CLOSED'],
    [undefined, 'ERR_LOCK_STORE'],
  ]) {
    const error = cross({ message: 'refused', code });
    assert.ok(error instanceof Error);
    assert.deepEqual([error.message, error.code, Object.hasOwn(error, 'cause')], ['refused', expected, false]);
  }
});

test('the cause of an error crosses with its name, message and code; without a message it says what it is', () => {
  const silent = new AggregateError([new Error('one of them')]);
  for (const [cause, expected] of [
    [Object.assign(new TypeError('why'), { code: 'ECONNREFUSED' }), ['TypeError', 'why', 'ECONNREFUSED']],
    [new RangeError('why'), ['RangeError', 'why', undefined]],
    [silent, ['AggregateError', inspect(silent), undefined]],
  ]) {
    const { cause: inner } = cross({ message: 'refused', cause });
    assert.ok(inner instanceof Error);
    assert.deepEqual([inner.name, inner.message, inner.code], expected);
    assert.equal('code' in inner, expected[2] !== undefined);
  }
  assert.equal(cross({ message: 'refused', cause: 'no error' }).cause, undefined);
});

test('the error of a lost lock says which it was, after what time, and how it was lost', () => {
  for (const [reason, how] of [
    ['unreachable', 'its store did not answer for so long that it may have given the lock away.'],
    ['taken', 'its store has ended it: '],
    ['closed', 'its LockManager was closed.'],
    ['worker', 'the thread that kept it has ended.'],
  ]) {
    const error = new LockLostError('a\nb', 7n, reason, 1234.5678);
    assert.ok(error.message.startsWith(`The named lock 'a\\nb' was lost after 1235 ms: ${how}`), error.message);
    const { name, code, lockName, fence, heldMs } = error;
    assert.deepEqual(
      [name, code, lockName, fence, error.reason, heldMs],
      ['LockLostError', 'ERR_LOCK_LOST', 'a\nb', 7n, reason, 1234.5678],
    );
  }
});

const OPTIONS = { allowMainThread: true };
const memory = () => new SharedArrayBuffer(64);
const never = () => assert.fail('must not run');

const locking = (lock, prefix = '') => ({
  [`${prefix}acquire`]: (limit) => lock.acquire(limit),
  [`${prefix}acquireAsync`]: (limit) => lock.acquireAsync(limit),
  [`${prefix}executeLocked`]: (_, options) => lock.executeLocked(never, options),
  [`${prefix}executeLockedSync`]: (_, options) => lock.executeLockedSync(never, options),
});
const byNames = (manager, names) => ({
  request: (_, options) => manager.request(names, options, never),
  acquireAsync: (_, options) => manager.acquireAsync(names, options),
  requestSync: (_, options) => manager.requestSync(names, options, never),
  acquire: (_, options) => manager.acquire(names, options),
});

/** By what is waited for: makes it so that no wait ends, and returns its verbs by their names; the end of the message. */
const TIMED = {
  'the mutex at byte offset 0': [
    () => {
      const mutex = new Mutex(memory(), 0, OPTIONS);
      mutex.lock();
      const all = [new Mutex(memory(), 0, OPTIONS), mutex];
      return {
        ...locking(mutex),
        lockAll: (limit) => lockAll(all, limit),
        lockAllAsync: (limit) => lockAllAsync(all, limit),
      };
    },
    /(Wait longer, or use lock\(\) or lockAsync\(\), which return false instead|This call holds none of the locks\. Wait longer, or hold them for a shorter time elsewhere)\.$/,
  ],
  'the rwlock at byte offset 0': [
    () => {
      const { read, write } = new RwLock(memory(), 0, OPTIONS);
      write.lock();
      return { ...locking(read, 'read.'), ...locking(write, 'write.') };
    },
    /Wait longer, or use lock\(\) or lockAsync\(\), which return false instead\.$/,
  ],
  "the lock 2 of the table 'rows' at byte offset 8": [
    () => {
      const table = new LockTable(memory(), 0, 4, { ...OPTIONS, name: 'rows' });
      table.lock(2);
      return {
        acquire: (limit) => table.acquire(2, limit),
        acquireAsync: (limit) => table.acquireAsync(2, limit),
        executeLocked: (_, options) => table.executeLocked(2, never, options),
        executeLockedSync: (_, options) => table.executeLockedSync(2, never, options),
        lockAll: (limit) => table.lockAll([1, 2], limit),
        lockAllAsync: (limit) => table.lockAllAsync([1, 2], limit),
      };
    },
    /Wait longer, .*\.$/,
  ],
  'the semaphore at byte offset 0': [
    () => {
      const semaphore = new Semaphore(memory(), 0, 0, OPTIONS);
      return {
        acquire: (limit) => semaphore.acquire(2, limit),
        acquireAsync: (limit) => semaphore.acquireAsync(2, limit),
        execute: (_, options) => semaphore.execute(never, options),
        executeSync: (_, options) => semaphore.executeSync(never, options),
      };
    },
    /Wait longer, or use tryAcquire\(\), which returns null instead\.$/,
  ],
  'the barrier at byte offset 0': [
    () => {
      const barrier = () => new Barrier(memory(), 0, 2, OPTIONS);
      return { wait: (limit) => barrier().wait(limit), waitAsync: (limit) => barrier().waitAsync(limit) };
    },
    /The barrier is broken now, for all parties\. Wait longer; reset\(\) makes the barrier new\.$/,
  ],
  'the exchanger at byte offset 0': [
    () => {
      const exchanger = new Exchanger(memory(), 0, OPTIONS);
      return {
        exchange: (limit) => exchanger.exchange(1, limit),
        exchangeAsync: (limit) => exchanger.exchangeAsync(1, limit),
      };
    },
    /No other call came, and none will get the value\. Wait longer\.$/,
  ],
  'the once at byte offset 0': [
    () => {
      const once = new Once(memory(), 0, OPTIONS);
      once.run(() => new Promise(() => {}));
      return { run: (limit) => once.run(never, limit), runSync: (limit) => once.runSync(never, limit) };
    },
    /This thread runs it now\. Wait longer\.$/,
  ],
  "the named lock 'timed'": [
    async () => {
      const manager = new LockManager(OPTIONS);
      await locks.acquireAsync('timed');
      return byNames(manager, 'timed');
    },
    /Wait longer, or ask with \{ ifAvailable: true \}, which does not wait\.$/,
  ],
  "the named lock 'timed, last'": [
    async () => {
      const manager = new LockManager(OPTIONS);
      await locks.acquireAsync('timed, last');
      return byNames(manager, ['timed, last', 'first']);
    },
    /Wait longer, or ask with \{ ifAvailable: true \}, which does not wait\.$/,
  ],
};

for (const [what, [make, end]] of Object.entries(TIMED)) {
  test(`the error of time that is over for ${what} says by which verb, after what time, and what to do`, async () => {
    for (const [verb, call] of Object.entries(await make())) {
      for (const timeout of [2.5, 0, -1]) {
        for (const limit of [timeout, { timeout }]) {
          const isRight = ({ code, message }) => {
            assert.equal(code, 'ERR_LOCK_TIMEOUT', message);
            const begin = `${verb}() timed out after ${timeout} ms waiting for ${what}. `;
            assert.equal(message.slice(0, begin.length), begin);
            assert.match(message, end);
            return true;
          };
          await assert.rejects(async () => call(limit, { timeout }), isRight);
        }
      }
    }
  });
}
