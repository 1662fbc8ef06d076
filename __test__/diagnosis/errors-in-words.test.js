// The words of errors: for time that is over, for a lost lock, and where they cross to other threads as text.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const {
  Barrier,
  Condition,
  DeadlockError,
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

test('the error of what stands in the wrong place says where it belongs', async () => {
  const mutex = new Mutex(memory(), 0, OPTIONS);
  const semaphore = new Semaphore(memory(), 0, 1, OPTIONS);
  const { signal } = new AbortController();
  for (const [call, end] of [
    [() => mutex.lockAsync(signal), ' Received an instance of AbortSignal. Pass { signal }.'],
    [() => locks.request('wrong', signal, never), ' Received an instance of AbortSignal. Pass { signal }.'],
    [() => mutex.lockAsync(new Date()), ' Received an instance of Date.'],
    [
      () => mutex.executeLocked(never, 500),
      ' Received 500. Say what it is: { timeout: 500 }, or { permits: 2 } of a semaphore.',
    ],
    [
      () => semaphore.executeSync(never, 2),
      ' Received 2. Say what it is: { timeout: 500 }, or { permits: 2 } of a semaphore.',
    ],
    [
      () => semaphore.acquire({ timeout: 5 }),
      ' must be a number, and stand before the options. Received an instance of Object.',
    ],
    [
      () => semaphore.acquireAsync({}),
      ' must be a number, and stand before the options. Received an instance of Object.',
    ],
    [
      () => mutex.lock({ signal }),
      ' no signal can abort a thread that blocks. Give a timeout, or use such a verb. Nothing was changed.',
    ],
    [
      () => mutex.lock({ ref: false }),
      ' a thread that blocks has no event loop to keep alive, or use such a verb. Nothing was changed.',
    ],
  ]) {
    const isRight = ({ code, message }) => {
      assert.deepEqual([code, message.slice(-end.length)], ['ERR_INVALID_ARG_TYPE', end]);
      return true;
    };
    await assert.rejects(async () => call(), isRight);
  }
  assert.deepEqual([mutex.isLocked, semaphore.available], [false, 1]);
});

test('the error of a promise where none may be says what has become of the lock, and which verb awaits', () => {
  const mutex = new Mutex(memory(), 0, OPTIONS);
  const { read, write } = new RwLock(memory(), 0, OPTIONS);
  const table = new LockTable(memory(), 0, 4, OPTIONS);
  const condition = new Condition(memory(), 4);
  const manager = new LockManager(OPTIONS);
  const promise = async () => {};
  mutex.lock();
  assert.throws(() => condition.waitFor(mutex, promise), {
    message:
      /"predicate" argument of waitFor\(\) .* the mutex at byte offset 0 is still held\. Use waitForAsync\(\)\.$/,
  });
  mutex.unlock();
  const unlocked = (place) =>
    new RegExp(
      `"fn" argument of executeLockedSync\\(\\) .* the ${place} is already unlocked .* Use executeLocked\\(\\)\\.$`,
    );
  for (const [call, message] of [
    [() => mutex.executeLockedSync(promise), unlocked('mutex at byte offset 0')],
    [() => read.executeLockedSync(promise), unlocked('rwlock at byte offset 0')],
    [() => write.executeLockedSync(promise), unlocked('rwlock at byte offset 0')],
    [() => table.executeLockedSync(1, promise), unlocked('lock 1 of the table at byte offset 4')],
    [
      () => new Semaphore(memory(), 0, 1, OPTIONS).executeSync(promise),
      /executeSync\(\) .* the semaphore at byte offset 0 has its permits back .* Use execute\(\)\.$/,
    ],
    [
      () => manager.requestSync(['a', 'b'], promise),
      /requestSync\(\) .* the named locks 'a', 'b' is already released .* Use request\(\)\.$/,
    ],
    [
      () => new Once(memory(), 0, OPTIONS).runSync(promise),
      /runSync\(\) .* the once at byte offset 0 .* It is not done now, and the next in line runs\. Use run\(\)\.$/,
    ],
  ]) {
    assert.throws(call, { code: 'ERR_INVALID_ARG_TYPE', message });
  }
});

test('the error of a deadlock says who waits for what, held by whom; of a long circle that it goes on', () => {
  const place = { kind: 'mutex', byteOffset: 8, name: 'mine' };
  const cycle = [
    { threadId: 3, byteOffset: 8 },
    { threadId: 5, byteOffset: -1, name: 'a name' },
    { threadId: 4, byteOffset: 16 },
  ];
  const steps = (last) =>
    "Deadlock: thread 3 waits for the mutex 'mine' at byte offset 8, held by thread 5; " +
    "thread 5 waits for the named lock 'a name', held by thread 4; " +
    `thread 4 waits for the rwlock at byte offset 16, held by ${last}. ` +
    'None of these threads can go on, so thread 3 gave up its wait. ' +
    'Take several locks in the same order everywhere, or give a timeout.';
  const kinds = ['Mutex', 'HeldLock', 'RwLock'];
  const error = new DeadlockError(place, cycle, kinds);
  assert.deepEqual([error.name, error.code, error.cycle], ['DeadlockError', 'ERR_LOCK_DEADLOCK', cycle]);
  assert.equal(error.message, steps('thread 3'));
  assert.equal(new DeadlockError(place, cycle, [...kinds, 'Mutex']).message, steps('another, and so on'));
  const once = { kind: 'once', byteOffset: 8, verb: 'run' };
  assert.equal(new DeadlockError(once, cycle, kinds).message, steps('thread 3').replace("mutex 'mine'", 'once'));
});
