// Users' code that runs in the middle of a release (a patched `then`, a hook of promises), and releases the same hold: it is
// released once, and the hold that comes behind it stays.

const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { test } = require('node:test');
const { Latch, LockManager, Mutex, RwLock, Semaphore } = require('../..');
const { turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const memory = () => new SharedArrayBuffer(64);
const LATER = { timeout: 60_000 };

/** Each calls `act` once, at the next promise that the package makes. */
const WAYS = {
  'a patched then()': (act) => {
    const { then } = Promise.prototype;
    const patch = (value) => Object.defineProperty(Promise.prototype, 'then', { value });
    const restore = () => patch(then);
    patch(function (...args) {
      restore();
      act();
      return then.apply(this, args);
    });
    return restore;
  },
  'a hook of promises': (act) => {
    let hasRun = false;
    const hook = createHook({
      init(_id, type) {
        if (type !== 'PROMISE' || hasRun) return;
        hasRun = true;
        act();
      },
    });
    hook.enable();
    return () => hook.disable();
  },
};

/** A wait of this thread, in whose way nothing of the test is. */
function waitElsewhere() {
  const mutex = new Mutex(memory());
  const guard = mutex.tryAcquire();
  const controller = new AbortController();
  const wait = mutex.lockAsync({ signal: controller.signal });
  return async () => {
    controller.abort('done');
    await assert.rejects(wait, (reason) => reason === 'done');
    guard.unlock();
  };
}

const aborted = (call) => {
  const controller = new AbortController();
  call({ signal: controller.signal, ...LATER }).catch(() => {});
  return () => controller.abort();
};

// `outer()` is the verb, and what `inside()` does within it; `check()` looks at what is held then. `end()` takes back the wait that
// makes the verb go the long way.

const ofGuard = (lock) => {
  const guard = lock.tryAcquire();
  let next;
  return {
    guard,
    end: aborted((options) => lock.lockAsync(options)),
    outer: () => guard.unlock(),
    inside() {
      assert.equal(guard.unlock(), true);
      next = lock.tryAcquire();
      assert.equal(next.locked, true);
    },
    check() {
      assert.deepEqual([guard.locked, next.locked, lock.isHeldByThisThread], [false, true, true]);
      return next.unlock();
    },
  };
};

const ofReaders = (rwlock) => {
  const [guard, other] = [rwlock.read.tryAcquire(), rwlock.read.tryAcquire()];
  return {
    guard,
    other,
    end: aborted((options) => rwlock.write.lockAsync(options)),
    outer: () => guard.unlock(),
    inside: () => assert.equal(guard.unlock(), true),
    check() {
      assert.deepEqual([guard.locked, other.mode, other.locked, rwlock.readers], [false, 'shared', true, 1]);
      return other.unlock();
    },
  };
};

/** As `ofReaders`, of which the first is the thread itself. */
const ofThread = (rwlock) => {
  rwlock.read.tryLock();
  const other = rwlock.read.tryAcquire();
  return {
    rwlock,
    end: aborted((options) => rwlock.write.lockAsync(options)),
    inside: () => rwlock.read.unlock(),
    check() {
      assert.deepEqual([other.mode, other.locked, rwlock.readers], ['shared', true, 1]);
      return other.unlock();
    },
  };
};

const KINDS = {
  'unlock() of a guard': () => ofGuard(new Mutex(memory())),
  'unlock() of a guard that writes': () => ofGuard(new RwLock(memory()).write),
  'unlock() of a guard that reads': () => ofReaders(new RwLock(memory())),
  'downgrade() of a guard': () => {
    const it = ofGuard(new RwLock(memory()).write);
    return { ...it, outer: () => it.guard.downgrade(), error: 'ERR_LOCK_NOT_OWNER' };
  },
  'tryUpgrade() of a guard': () => {
    const it = ofReaders(new RwLock(memory()));
    const inside = () => {
      it.inside();
      it.end();
    };
    return { ...it, inside, outer: () => it.guard.tryUpgrade(), error: 'ERR_LOCK_NOT_OWNER' };
  },
  'unlock() of read, by the thread itself': () => {
    const { rwlock, ...it } = ofThread(new RwLock(memory()));
    return { ...it, outer: () => rwlock.read.unlock(), error: 'ERR_LOCK_NOT_OWNER' };
  },
  'tryUpgrade() of an RwLock': () => {
    const { rwlock, ...it } = ofThread(new RwLock(memory()));
    const inside = () => {
      it.inside();
      it.end();
    };
    return { ...it, inside, outer: () => rwlock.tryUpgrade(), error: 'ERR_LOCK_NOT_OWNER' };
  },
  'release() of permits': () => {
    const semaphore = new Semaphore(memory(), 0, 3);
    const [permits, other] = [semaphore.tryAcquire(2), semaphore.tryAcquire(1)];
    return {
      end: aborted((options) => semaphore.acquireAsync(3, options)),
      outer: () => permits.release(),
      inside: () => assert.equal(permits.release(), true),
      check() {
        assert.deepEqual([permits.count, other.count, semaphore.available], [0, 1, 2]);
        return other.release();
      },
    };
  },
  'release() of permits, some of which are released inside': () => {
    const semaphore = new Semaphore(memory(), 0, 4);
    const [permits, other] = [semaphore.tryAcquire(3), semaphore.tryAcquire(1)];
    return {
      end: aborted((options) => semaphore.acquireAsync(4, options)),
      outer: () => !permits.release(),
      inside: () => assert.equal(permits.release(1), true),
      check() {
        assert.deepEqual([permits.count, other.count, semaphore.available], [0, 1, 3]);
        return other.release();
      },
    };
  },
  'release() of a part of permits, of which fewer are left inside': () => {
    const semaphore = new Semaphore(memory(), 0, 5);
    const [permits, other] = [semaphore.tryAcquire(4), semaphore.tryAcquire(1)];
    return {
      end: aborted((options) => semaphore.acquireAsync(5, options)),
      outer: () => permits.release(3),
      inside: () => assert.equal(permits.release(2), true),
      error: 'ERR_OUT_OF_RANGE',
      check() {
        assert.deepEqual([permits.count, other.count, semaphore.available], [2, 1, 2]);
        return permits.release() && other.release();
      },
    };
  },
  'leave() of an entry': () => {
    const latch = new Latch(memory());
    const [entry, other] = [latch.enter(), latch.enter()];
    return {
      end: aborted((options) => latch.waitAsync(options)),
      outer: () => entry.leave(),
      inside: () => assert.equal(entry.leave(), true),
      check() {
        assert.equal(latch.count, 1);
        return other.leave();
      },
    };
  },
  'unlock() of a name': () => {
    const manager = new LockManager({ allowMainThread: true });
    const lock = manager.acquire('unlocked inside');
    let next;
    return {
      end() {},
      outer: () => lock.unlock(),
      inside() {
        assert.equal(lock.unlock(), true);
        next = manager.acquire('another, inside');
      },
      async check() {
        const { held } = await manager.query();
        assert.deepEqual([lock.locked, next.locked, held.map(({ name }) => name)], [false, true, ['another, inside']]);
        return next.unlock();
      },
    };
  },
};

for (const [way, runInside] of Object.entries(WAYS)) {
  for (const [kind, make] of Object.entries(KINDS)) {
    test(
      `${kind}: ${way} that releases the same hold, and no other`,
      way === 'a hook of promises' ? needs('async hooks') : {},
      watched(async () => {
        const end = waitElsewhere();
        const it = make();
        await turns();
        let hasRun = false;
        const restore = runInside(() => {
          hasRun = true;
          it.inside();
        });
        try {
          if (it.error === undefined) assert.equal(it.outer(), false);
          else assert.throws(it.outer, { code: it.error });
        } finally {
          restore();
        }
        assert.equal(hasRun, true);
        assert.equal(await it.check(), true);
        it.end();
        await end();
      }),
    );
  }
}
