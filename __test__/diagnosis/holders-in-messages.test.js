// Messages say who holds; inspect() and inspectAll() show who waits for conditions and for names.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const { Condition, LockManager, Mutex, RwLock, Semaphore, inspectAll, locks } = require('../..');
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

test('executeLockedSync() and acquire() of the main thread advise what does the same there', {
  skip: threadId !== 0,
}, () => {
  const mutex = new Mutex(new SharedArrayBuffer(4));
  assert.throws(() => mutex.lock(), { message: /Use lockAsync\(\) here/ });
  assert.throws(() => mutex.acquire(), { message: /Use acquireAsync\(\) here/ });
  assert.throws(() => mutex.executeLockedSync(() => {}), { message: /Use executeLocked\(\) here/ });
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
  }),
);
