// Messages say who holds; inspect() and inspectAll() show who waits for conditions and for names.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const {
  AutoResetEvent,
  Barrier,
  Condition,
  Exchanger,
  Latch,
  LockManager,
  LockTable,
  ManualResetEvent,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  inspectAll,
  lockAll,
  locks,
} = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { createFolder } = require('../helpers/folder.js');
const { hold, pendingFor } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');

test(
  'unlocking what another thread holds says which',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(64);
    const [mutex, rwlock] = [new Mutex(buffer), new RwLock(buffer, 16)];
    assert.throws(() => mutex.unlock(), {
      code: 'ERR_LOCK_NOT_OWNER',
      message: /No thread holds it now\. Call it only after/,
    });
    const [other] = await startActors(threads, 1, buffer);
    await other.do((here) => {
      new here.sablock.Mutex(here.buffer).lock();
      new here.sablock.RwLock(here.buffer, 16).write.lock();
    });
    const held = new RegExp(`Thread ${other.threadId} holds it now\\.`);
    assert.throws(() => mutex.unlock(), { code: 'ERR_LOCK_NOT_OWNER', message: held });
    const heldToWrite = new RegExp(`held now, exclusive, by thread ${other.threadId}\\.`);
    for (const mode of [rwlock.read, rwlock.write]) {
      assert.throws(() => mode.unlock(), { code: 'ERR_LOCK_NOT_OWNER', message: heldToWrite });
    }
  }),
);

test(
  'unlocking what a thread held that has ended says so, until somebody has come for it',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(64);
    const [mutex, rwlock] = [new Mutex(buffer), new RwLock(buffer, 16)];
    const [other, next] = await startActors(threads, 2, buffer);
    const lock = (here) => {
      new here.sablock.Mutex(here.buffer).lock();
      new here.sablock.RwLock(here.buffer, 16).write.lock();
    };
    await other.do(lock);
    await terminate.end(other);
    const unlocks = [() => mutex.unlock(), () => rwlock.read.unlock(), () => rwlock.write.unlock()];
    const says = (state) => {
      for (const unlock of unlocks) assert.throws(unlock, { code: 'ERR_LOCK_NOT_OWNER', message: state });
    };
    says(new RegExp(`hread ${other.threadId}, which has ended(?:, holds it now)?\\.`));
    await next.do(lock);
    says(new RegExp(`hread ${next.threadId}(?: holds it now)?\\.`));
  }),
);

test(
  'a timeout for a name says who holds it: threads, and for how long',
  watched(async (_, threads) => {
    const [other] = await startActors(threads, 1);
    await other.do(async (here) => {
      here.lock = await here.sablock.locks.acquireAsync('told', { mode: 'shared' });
    });
    const mine = await hold('told', { mode: 'shared' });
    const message = new RegExp(
      `named lock 'told'\\. It is held now, shared, by thread ${other.threadId}, for \\d+ ms; by this thread, for \\d+ ms\\.`,
    );
    for (const timeout of [0, 5]) {
      await assert.rejects(
        locks.request('told', { timeout }, () => {}),
        { code: 'ERR_LOCK_TIMEOUT', message },
      );
    }
    mine.release();
    await other.do((here) => here.lock.unlock());
  }),
);

test(
  'a timeout for a name that goes with others which are waited for says so, and whose request that is',
  watched(async (_, threads) => {
    const [other] = await startActors(threads, 1);
    const last = await hold('the last');
    const mine = locks.request(['mine', 'the last'], () => {});
    other.do((here) => void here.sablock.locks.request(['its', 'the last'], () => {}));
    await pendingFor(threads, 'the last', 2);
    for (const [name, who] of [
      ['mine', 'This thread'],
      ['its', `Thread ${other.threadId}`],
    ]) {
      for (const timeout of [0, 5]) {
        await assert.rejects(locks.acquireAsync(name, { timeout }), {
          code: 'ERR_LOCK_TIMEOUT',
          message: new RegExp(
            `named lock '${name}'\\. ${who} has it for a request for several names, and waits for the next of them\\. `,
          ),
        });
      }
    }
    last.release();
    await mine;
  }),
);

test(
  'among processes, a timeout for a name that goes with others of this process says that it came before',
  watched(async (t, threads) => {
    const manager = new LockManager({ directory: createFolder(t), allowMainThread: true });
    const last = await manager.acquireAsync('the last');
    const both = manager.acquireAsync(['mine', 'the last']);
    await pendingFor(threads, 'the last', 1, manager);
    const told = {
      code: 'ERR_LOCK_TIMEOUT',
      message: /named lock 'mine'\. This thread came before: .* another of several names\. Wait longer/,
    };
    for (const timeout of [0, 5]) {
      await assert.rejects(manager.acquireAsync('mine', { timeout }), told);
      assert.throws(() => manager.acquire('mine', { timeout }), told);
    }
    last.unlock();
    (await both).unlock();
  }),
);

test(
  'a timeout for permits says which threads have some, and how many',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(8);
    const semaphore = new Semaphore(buffer, 0, 4, { allowMainThread: true });
    const [other] = await startActors(threads, 1, buffer);
    await other.do((here) => {
      here.permits = new here.sablock.Semaphore(here.buffer, 0, 4).acquire(2);
    });
    const mine = semaphore.acquire();
    const names = [`thread ${other.threadId} \\(2\\)`, 'this thread \\(1\\)'];
    const held = new RegExp(
      `, and one is available now\\. Permits are held by (${names.join(', ')}|${names.reverse().join(', ')})\\. `,
    );
    assert.throws(() => semaphore.acquire(2, 5), { code: 'ERR_LOCK_TIMEOUT', message: held });
    await assert.rejects(semaphore.acquireAsync(2, 5), { code: 'ERR_LOCK_TIMEOUT', message: held });
    mine.release();
    await other.do((here) => here.permits.forget());
    // A permit that belongs to nobody is held by nobody.
    assert.throws(() => semaphore.acquire(3, 0), { message: /, and 2 are available now\. Wait longer/ });
  }),
);

/** By class: the verbs that block, and what the main thread is told to use in their place. */
const BLOCKING = (() => {
  const memory = () => new SharedArrayBuffer(64);
  const mutex = new Mutex(memory());
  const { read, write } = new RwLock(memory());
  const semaphore = new Semaphore(memory(), 0, 1);
  const condition = new Condition(memory());
  const table = new LockTable(memory(), 0, 1);
  const never = () => assert.fail('must not run');
  const locking = (lock) => [
    [() => lock.lock(), 'lockAsync()'],
    [() => lock.acquire(), 'acquireAsync()'],
    [() => lock.executeLockedSync(never), 'executeLocked()'],
  ];
  const waiting = (lock) => [
    [() => condition.wait(lock), 'waitAsync()'],
    [() => condition.waitFor(lock, never), 'waitForAsync()'],
    [() => lockAll([lock]), 'lockAllAsync()'],
  ];
  return {
    Mutex: [...locking(mutex), ...waiting(mutex)],
    RwLock: [...locking(read), ...locking(write), ...waiting(write), [() => lockAll([read]), 'lockAllAsync()']],
    LockTable: [
      [() => table.lock(0), 'the asynchronous verb'],
      [() => table.acquire(0), 'the asynchronous verb'],
      [() => table.executeLockedSync(0, never), 'the asynchronous verb'],
      [() => table.lockAll([0]), 'lockAllAsync()'],
    ],
    Semaphore: [
      [() => semaphore.acquire(), 'acquireAsync()'],
      [() => semaphore.executeSync(never), 'execute()'],
    ],
    Barrier: [[() => new Barrier(memory(), 0, 1).wait(), 'waitAsync()']],
    Exchanger: [[() => new Exchanger(memory()).exchange(1), 'exchangeAsync()']],
    Latch: [[() => new Latch(memory()).wait(), 'waitAsync()']],
    Once: [[() => new Once(memory()).runSync(never), 'run()']],
    ManualResetEvent: [[() => new ManualResetEvent(memory()).wait(), 'waitAsync()']],
    AutoResetEvent: [[() => new AutoResetEvent(memory()).wait(), 'waitAsync()']],
    LockManager: [
      [() => locks.acquire('main'), 'acquireAsync()'],
      [() => locks.acquire(['main', 'too'], { ifAvailable: true }), 'acquireAsync()'],
      [() => locks.requestSync('main', never), 'request()'],
    ],
  };
})();

for (const [name, verbs] of Object.entries(BLOCKING)) {
  test(`what blocks for a ${name} advises the main thread what does the same there, and which class may`, {
    skip: threadId !== 0,
  }, () => {
    for (const [call, alternative] of verbs) {
      const message = new RegExp(
        ` Use ${alternative.replace('()', '\\(\\)')} here, or create the ${name} with \\{ allowMainThread: true \\}\\.$`,
      );
      assert.throws(call, { code: 'ERR_LOCK_MAIN_THREAD', message }, `${call}`);
    }
  });
}

test('a timeout for a name has five of its holders, and says how many more there are', async () => {
  const held = [];
  for (const [count, more] of [
    [5, ''],
    [6, '; and 1 more'],
    [8, '; and 3 more'],
  ]) {
    while (held.length < count) held.push(await locks.acquireAsync('crowd', { mode: 'shared' }));
    const five = Array.from({ length: 5 }, () => 'by this thread, for \\d+ ms').join('; ');
    const message = new RegExp(`It is held now, shared, ${five}${more}\\. Wait longer`);
    await assert.rejects(locks.acquireAsync('crowd', { timeout: 0 }), { message });
  }
  for (const lock of held) lock.unlock();
});

test('a message has five of the threads that share a lock, and says how many more there are', (t) => {
  const semaphore = new Semaphore(new SharedArrayBuffer(8), 0, 1, { allowMainThread: true });
  semaphore.acquire();
  const rwlock = new RwLock(new SharedArrayBuffer(8), 0, { allowMainThread: true });
  rwlock.read.lock();
  for (const [count, named] of [
    [5, [1001, 1002, 1003, 1004, 1005]],
    [6, [1001, 1002, 1003, 1004, 1005, ' and 1 more']],
    [9, [1001, 1002, 1003, 1004, 1005, ' and 4 more']],
  ]) {
    const seen = Array.from({ length: count }, (_, index) => ({ threadId: 1001 + index, mode: 'shared', count: 2 }));
    t.mock.method(binding, 'holders', () => seen);
    const [threads, rest = ''] = [named.slice(0, 5), named[5]];
    const readers = `by ${threads.map((id) => `thread ${id}`).join(', ')}${rest}\\.`;
    assert.throws(() => rwlock.write.acquire(0), { message: new RegExp(`It is held now, shared, ${readers} `) });
    const permits = `by ${threads.map((id) => `thread ${id} \\(2\\)`).join(', ')}${rest}\\.`;
    assert.throws(() => semaphore.acquire(1, 0), { message: new RegExp(`Permits are held ${permits} `) });
    binding.holders.mock.restore();
  }
});

test('a timeout for permits speaks of one, and of none', () => {
  const semaphore = new Semaphore(new SharedArrayBuffer(8), 0, 1, { allowMainThread: true });
  assert.throws(() => semaphore.acquire(2, 0), { message: /\. 2 permits were asked for, and one is available now\./ });
  semaphore.acquire();
  assert.throws(() => semaphore.acquire(1, 0), {
    message: /\. One permit was asked for, and none are available now\./,
  });
});

test('a condition shows who waits for it', async () => {
  const buffer = new SharedArrayBuffer(64);
  const mutex = new Mutex(buffer);
  const condition = new Condition(buffer, 8, { name: 'shown' });
  assert.deepEqual(condition.inspect(), { name: 'shown', holders: [], waiters: [] });
  assert.equal(await mutex.lockAsync(), true);
  const waiting = condition.waitAsync(mutex);
  const { waiters } = condition.inspect();
  assert.deepEqual(
    waiters.map(({ threadId: id, kind, mode, waitedMs }) => [id, kind, mode, waitedMs >= 0]),
    [[threadId, 'async', 'passage', true]],
  );
  condition.notifyAll();
  await waiting;
  mutex.unlock();
  assert.deepEqual(condition.inspect().waiters, []);
});

test(
  'inspectAll() shows the names that somebody waits for, with who holds them',
  watched(async (_, threads) => {
    const shown = () => inspectAll().filter(({ kind }) => kind === 'HeldLock');
    assert.deepEqual(shown(), []);
    const held = await hold('seen');
    const free = await hold('nobody waits');
    const [other] = await startActors(threads, 1);
    const blocked = other.do((here) => here.sablock.locks.requestSync('seen', { mode: 'shared' }, () => 7));
    await pendingFor(threads, 'seen', 1);
    const [{ waiters, ...rest }, ...more] = shown();
    assert.deepEqual(
      [rest, more],
      [
        {
          name: 'seen',
          kind: 'HeldLock',
          byteOffset: -1,
          holders: [{ threadId, mode: 'exclusive', count: 1 }],
        },
        [],
      ],
    );
    const [{ waitedMs, ...waiter }] = waiters;
    assert.deepEqual([waiter, waitedMs >= 0], [{ threadId: other.threadId, kind: 'blocking', mode: 'shared' }, true]);
    held.release();
    free.release();
    assert.equal(await blocked, 7);
    assert.deepEqual(shown(), []);
    const sharing = [await hold('seen', { mode: 'shared' }), await hold('seen', { mode: 'shared' })];
    const last = locks.request('seen', () => {});
    const one = { threadId, mode: 'shared', count: 1 };
    const [{ holders, waiters: behind }] = shown();
    assert.deepEqual([holders, behind.map(({ kind, mode }) => [kind, mode])], [[one, one], [['async', 'exclusive']]]);
    for (const { release } of sharing) release();
    await last;
  }),
);
