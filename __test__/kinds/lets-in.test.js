// However a hold ends for which somebody waits, it lets them in, and nothing of it is left. So it is while another hold of this thread
// is away in a condition: then each release looks whether its hold is there.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, LockTable, Mutex, Once, RwLock, Semaphore, lockAll, lockAllAsync } = require('../..');
const { watched } = require('../helpers/threads.js');
const { ways } = require('../helpers/ways.js');

const OPTIONS = { allowMainThread: true };
const failed = new Error('on purpose');

/** Every way to hold a lock: takes it, calls `inside`, and frees it. */
const several = {
  lockAll(lock, inside) {
    const guard = lockAll([new Mutex(new SharedArrayBuffer(4), 0, OPTIONS), lock]);
    inside();
    guard.unlock();
  },
  async lockAllAsync(lock, inside) {
    const guard = await lockAllAsync([new Mutex(new SharedArrayBuffer(4)), lock]);
    inside();
    guard.unlock();
  },
};
const ofMutex = { ...Object.fromEntries(ways.map(({ name, hold }) => [name, hold])), ...several };
const { 'enter and leave': _, ...ofRwLock } = ofMutex;
const onLock = (all, lock) =>
  Object.fromEntries(Object.entries(all).map(([name, hold]) => [name, (inside) => hold(lock, inside)]));

/** A wait that frees at once what it gets. */
const waitOf = (lock) => () => lock.lockAsync().then(() => lock.unlock());

/** By kind, on this memory: the ways to hold it, and who may wait for it. */
const KINDS = {
  Mutex: (buffer) => {
    const mutex = new Mutex(buffer, 0, OPTIONS);
    return { holds: onLock(ofMutex, mutex), waits: { another: waitOf(mutex) } };
  },
  'a lock of a table': (buffer) => {
    const table = new LockTable(buffer, 0, 2, OPTIONS);
    const holds = {
      lock(inside) {
        table.lock(1);
        inside();
        table.unlock(1);
      },
      executeLocked: (inside) => table.executeLocked(1, inside),
      executeLockedSync: (inside) => table.executeLockedSync(1, inside),
      ...onLock(several, table.at(1)),
    };
    return { holds, waits: { another: () => table.lockAsync(1).then(() => table.unlock(1)) } };
  },
  'write of an RwLock': (buffer) => {
    const rwlock = new RwLock(buffer, 0, OPTIONS);
    const { read, write } = rwlock;
    const holds = {
      ...onLock(ofRwLock, write),
      downgrade(inside) {
        write.lock();
        inside();
        rwlock.downgrade();
        read.unlock();
      },
      'downgrade() of a guard'(inside) {
        const guard = write.acquire();
        inside();
        guard.downgrade();
        guard.unlock();
      },
    };
    return { holds, waits: { 'a writer': waitOf(write), 'a reader': waitOf(read) } };
  },
  'read of an RwLock': (buffer) => {
    const rwlock = new RwLock(buffer, 0, OPTIONS);
    const { read, write } = rwlock;
    const holds = onLock(ofRwLock, read);
    for (const [name, hold] of Object.entries(holds)) {
      holds[`${name} beside a hold of the thread`] = async (inside) => {
        read.lock();
        await hold(inside);
        read.unlock();
      };
      holds[`${name} beside a guard`] = async (inside) => {
        const guard = read.acquire();
        await hold(inside);
        assert.equal(guard.unlock(), true);
      };
    }
    Object.assign(holds, {
      'tryUpgrade() of a guard'(inside) {
        const guard = read.acquire();
        assert.equal(guard.tryUpgrade(), true);
        inside();
        guard.unlock();
      },
      tryUpgrade(inside) {
        read.lock();
        assert.equal(rwlock.tryUpgrade(), true);
        inside();
        write.unlock();
      },
    });
    return { holds, waits: { 'a writer': waitOf(write) } };
  },
  Semaphore: (buffer) => {
    const semaphore = new Semaphore(buffer, 0, 2, OPTIONS);
    const ofPermits = (permits, inside) => {
      inside();
      permits.release();
    };
    const holds = {
      acquire: (inside) => ofPermits(semaphore.acquire(2), inside),
      tryAcquire: (inside) => ofPermits(semaphore.tryAcquire(2), inside),
      acquireAsync: async (inside) => ofPermits(await semaphore.acquireAsync(2), inside),
      execute: (inside) => semaphore.execute(inside, { permits: 2 }),
      executeSync: (inside) => semaphore.executeSync(inside, { permits: 2 }),
      'forget and release'(inside) {
        const permits = semaphore.acquire(2);
        inside();
        permits.forget();
        semaphore.release(2);
      },
    };
    const waitFor = (count) => () => semaphore.acquireAsync(count).then((permits) => permits.release());
    return { holds, waits: { 'for one permit': waitFor(1), 'for all permits': waitFor(2) } };
  },
  Once: (buffer) => {
    const once = new Once(buffer, 0, OPTIONS);
    const throws = (inside) => () => {
      inside();
      throw failed;
    };
    const isFailed = (error) => error === failed;
    const holds = {
      'run that fails': (inside) => assert.rejects(once.run(throws(inside)), isFailed),
      'runSync that fails': (inside) => assert.throws(() => once.runSync(throws(inside)), isFailed),
    };
    const wait = () => assert.rejects(once.run(throws(() => {})), isFailed);
    return { holds, waits: { another: wait } };
  },
};

/** Has a hold of this thread go away, to a condition; returns what brings it back and frees it. */
function sendAway() {
  const buffer = new SharedArrayBuffer(8);
  const mutex = new Mutex(buffer, 0, OPTIONS);
  const condition = new Condition(buffer, 4);
  const guard = mutex.tryAcquire();
  const waits = condition.waitAsync(mutex);
  return async () => {
    condition.notifyOne();
    await waits;
    assert.equal(guard.unlock(), true);
  };
}

for (const [kind, make] of Object.entries(KINDS)) {
  const { holds, waits } = make(new SharedArrayBuffer(64));
  for (const way of Object.keys(holds)) {
    test(
      `${kind}: ${way} lets in who waits when it ends`,
      watched(async () => {
        for (const isAway of [false, true]) {
          for (const who of [...Object.keys(waits), 'all']) {
            const what = `${who}${isAway ? ', beside a hold that is away' : ''}`;
            const buffer = new SharedArrayBuffer(64);
            const made = make(buffer);
            const bringBack = isAway ? sendAway() : () => {};
            const got = [];
            let pending = [];
            await made.holds[way](() => {
              const asked = who === 'all' ? [...Object.keys(waits), ...Object.keys(waits)] : [who];
              pending = asked.map((each) => made.waits[each]().then(() => got.push(each)));
            });
            await Promise.all(pending);
            assert.equal(got.length, pending.length, what);
            assert.ok(pending.length > 0, what);
            assert.ok(
              new Int32Array(buffer).every((word) => word === 0),
              `${what}: something is left`,
            );
            await bringBack();
          }
        }
      }),
    );
  }
}

for (const [who, hold] of Object.entries({
  'an RwLock': (rwlock) => {
    rwlock.write.lock();
    return { downgrade: () => rwlock.downgrade(), unlock: () => rwlock.read.unlock() };
  },
  'a guard': (rwlock) => rwlock.write.acquire(),
})) {
  test(
    `downgrade() of ${who} lets in readers of the same thread, beside its own hold`,
    watched(async () => {
      const rwlock = new RwLock(new SharedArrayBuffer(8), 0, OPTIONS);
      const held = hold(rwlock);
      const reads = rwlock.read.lockAsync();
      held.downgrade();
      assert.equal(await reads, true);
      assert.equal(rwlock.readers, 2);
      held.unlock();
      rwlock.read.unlock();
      assert.equal(rwlock.readers, 0);
    }),
  );
}
