// requestSync() and acquire(), which block their thread.

const assert = require('node:assert/strict');
const { isMainThread } = require('node:worker_threads');
const { test } = require('node:test');
const { DeadlockError, LockManager, locks } = require('../..');
const { redis } = require('../../lib/stores/redis.js');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { hold, modesOf, pendingFor } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const manager = new LockManager({ allowMainThread: true });
const deadlock = { name: 'DeadlockError', code: 'ERR_LOCK_DEADLOCK' };

test('the main thread may block only for a manager that was made for it', { skip: !isMainThread }, (t) => {
  const refused = { code: 'ERR_LOCK_MAIN_THREAD', message: /LockManager/ };
  const others = [{ directory: createFolder(t) }, { store: redis('redis://localhost') }];
  for (const one of [locks, ...others.map((options) => new LockManager(options))]) {
    assert.throws(() => one.requestSync('main', () => {}), refused);
    assert.throws(() => one.acquire('main'), refused);
  }
  assert.equal(
    manager.requestSync('main', () => 7),
    7,
  );
});

test('requestSync() returns what its function returns, throws what it throws, and releases', async () => {
  assert.equal(
    manager.requestSync('sync', ({ name, mode }) => `${name} ${mode}`),
    'sync exclusive',
  );
  assert.equal(
    manager.requestSync('sync', { mode: 'shared' }, ({ mode }) => mode),
    'shared',
  );
  const error = new Error('on purpose');
  assert.throws(
    () =>
      manager.requestSync('sync', () => {
        throw error;
      }),
    error,
  );
  assert.throws(() => manager.requestSync('sync', async () => {}), {
    code: 'ERR_INVALID_ARG_TYPE',
    message: /already released.*request\(\)/,
  });
  assert.deepEqual(await modesOf('sync'), { held: [], pending: [] });
});

test('bad arguments of the blocking verbs are refused', () => {
  const invalid = { code: 'ERR_INVALID_ARG_TYPE' };
  assert.throws(() => manager.requestSync('bad'), invalid);
  assert.throws(() => manager.requestSync('bad', {}), invalid);
  assert.throws(() => manager.requestSync('bad', { mode: 'x' }, () => {}), invalid);
  assert.throws(() => manager.acquire('bad', 5), invalid);
  const unsupported = { name: 'NotSupportedError' };
  assert.throws(() => manager.acquire('-bad'), unsupported);
  assert.throws(() => manager.acquire('bad', { signal: new AbortController().signal }), invalid);
  assert.throws(() => manager.requestSync('bad', { ref: true }, () => {}), invalid);
  assert.throws(() => manager.acquire('bad', { steal: true, ifAvailable: true }), unsupported);
});

test('what is not available in time is null, or a TimeoutError', async () => {
  const lock = manager.acquire('held');
  assert.equal(manager.acquire('held', { ifAvailable: true }), null);
  assert.equal(
    manager.requestSync('held', { ifAvailable: true }, (none) => none),
    null,
  );
  // Nothing is released too early.
  const promise = Promise.resolve();
  for (const names of ['held', ['free', 'held']]) {
    assert.equal(
      manager.requestSync(names, { ifAvailable: true }, () => promise),
      promise,
    );
  }
  for (const timeout of [0, 20]) {
    assert.throws(() => manager.acquire('held', { timeout }), { code: 'ERR_LOCK_TIMEOUT', message: /acquire\(\)/ });
    assert.throws(() => manager.requestSync('held', { timeout }, () => {}), { code: 'ERR_LOCK_TIMEOUT' });
  }
  assert.equal(lock.unlock(), true);
  assert.deepEqual(await modesOf('held'), { held: [], pending: [] });
});

test('a blocking verb can steal', () => {
  const victim = manager.acquire('stolen');
  const thief = manager.acquire('stolen', { steal: true });
  assert.deepEqual([victim.unlock(), thief.abandoned], [false, true]);
  thief.markConsistent();
  assert.equal(thief.unlock(), true);
});

test(
  'a blocked thread goes on when a promise of another thread releases, and the other way round',
  watched(async (_, threads) => {
    const held = await hold('hand over');
    const [worker] = await startActors(threads, 1);
    const blocked = worker.do((here) =>
      here.sablock.locks.requestSync('hand over', ({ mode }) => {
        here.raise(0);
        here.waitForFlag(1);
        return mode;
      }),
    );
    await pendingFor(threads, 'hand over', 1);
    held.release();
    await threads.raised(0);
    const mine = locks.request('hand over', () => 'mine');
    await pendingFor(threads, 'hand over', 1);
    threads.raise(1);
    assert.deepEqual(await Promise.all([blocked, mine]), ['exclusive', 'mine']);
  }),
);

test('a thread that holds a name itself, by whatever of its tasks, learns that it would wait for ever', async () => {
  const held = await hold('own');
  assert.throws(
    () => manager.acquire('own'),
    (error) => {
      assert.ok(error instanceof DeadlockError);
      assert.match(error.message, /the named lock 'own'/);
      assert.deepEqual(error.cycle, [{ threadId: 0, byteOffset: -1, name: 'own' }]);
      return true;
    },
  );
  assert.throws(() => manager.acquire('own', { timeout: 10 }), { code: 'ERR_LOCK_TIMEOUT' });
  held.release();
  await held.request;
  const sharing = await hold('own', { mode: 'shared' });
  assert.throws(() => manager.acquire('own'), deadlock);
  manager.acquire('own', { mode: 'shared' }).unlock();
  const writer = locks.request('own', () => 'writer');
  assert.throws(() => manager.acquire('own', { mode: 'shared' }), deadlock, 'behind one who waits for this thread');
  sharing.release();
  assert.equal(await writer, 'writer');
});

test(
  'a thread learns that it would wait for ever behind its own request, which does not say that it holds the name',
  watched(async (_, threads) => {
    const [worker] = await startActors(threads, 1);
    const holding = worker.do((here) =>
      here.sablock.locks.requestSync('elsewhere', () => {
        here.raise(0);
        here.waitForFlag(1);
      }),
    );
    await threads.raised(0);
    const mine = locks.request('elsewhere', () => 'mine');
    await pendingFor(threads, 'elsewhere', 1);
    assert.throws(() => manager.acquire('elsewhere'), { ...deadlock, message: /holds itself, or waits for already,/ });
    threads.raise(1);
    await holding;
    assert.equal(await mine, 'mine');
  }),
);

test(
  'threads that wait for each other, for names, learn which',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const actors = await startActors(threads, 2);
    const names = ['left', 'right'];
    const cross = (here, mine, names) =>
      here.sablock.locks.requestSync(names[mine], () => {
        here.raise(mine);
        here.waitForFlag(1 - mine);
        try {
          return here.sablock.locks.requestSync(names[1 - mine], () => 'went on');
        } catch ({ code, cycle }) {
          return [code, ...cycle.map(({ name }) => name).sort()];
        }
      });
    const ends = await Promise.all(actors.map((actor, mine) => actor.do(cross, mine, names)));
    const expected = ['went on', ['ERR_LOCK_DEADLOCK', ...names]];
    assert.deepEqual(ends[0] === 'went on' ? ends : ends.reverse(), expected);
  }),
);

for (const mode of ['exclusive', 'shared']) {
  test(
    `a thread learns that who waits for its name, the second of two, has the first that it asks for: ${mode}`,
    needs('termination when busy'),
    watched(async (_, threads) => {
      const [holder, other] = await startActors(threads, 2);
      const holding = holder.do(
        (here, mode) =>
          here.sablock.locks.requestSync('second of two', () => {
            here.raise(0);
            here.waitForFlag(1);
            try {
              return here.sablock.locks.requestSync('first of two', { mode }, () => 'went on');
            } catch ({ code }) {
              return code;
            }
          }),
        mode,
      );
      await threads.raised(0);
      const both = other.do((here) =>
        here.sablock.locks.requestSync(['first of two', 'second of two'], () => 'has both'),
      );
      await pendingFor(threads, 'second of two', 1);
      threads.raise(1);
      assert.deepEqual(await Promise.all([holding, both]), ['ERR_LOCK_DEADLOCK', 'has both']);
    }),
  );
}

test(
  'threads that wait for each other, for names and a mutex, learn of it',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(4);
    const actors = await startActors(threads, 2, buffer);
    const [HAS_NAME, HAS_MUTEX] = [0, 1];
    const first = actors[0].do(
      (here, mine, other) =>
        here.sablock.locks.requestSync('crosswise', () => {
          here.raise(mine);
          here.waitForFlag(other);
          const mutex = new here.sablock.Mutex(here.buffer);
          mutex.lock();
          mutex.unlock();
          return 'first went on';
        }),
      HAS_NAME,
      HAS_MUTEX,
    );
    const second = actors[1].do(
      (here, mine, other) => {
        const mutex = new here.sablock.Mutex(here.buffer);
        mutex.lock();
        try {
          here.raise(mine);
          here.waitForFlag(other);
          return here.sablock.locks.requestSync('crosswise', () => 'second went on');
        } finally {
          mutex.unlock();
        }
      },
      HAS_MUTEX,
      HAS_NAME,
    );
    const ends = await Promise.allSettled([first, second]);
    const failed = ends.filter(({ status }) => status === 'rejected');
    assert.equal(failed.length, 1, 'one of them gave up, for the other');
    assert.equal(failed[0].reason.code, 'ERR_LOCK_DEADLOCK');
    assert.match(failed[0].reason.message, /the named lock 'crosswise'/);
    assert.match(failed[0].reason.message, /mutex at byte offset 0/);
  }),
);
