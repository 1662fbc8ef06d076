// A patched `then` of promises, or iterator of arrays, that throws, at each of the calls that the package makes of it: what was asked
// for settles all the same, and nothing stays held.

const assert = require('node:assert/strict');
const path = require('node:path');
const { test } = require('node:test');
const { Condition, LockManager, Mutex, Once, RwLock, Semaphore, lockAllAsync, locks } = require('../..');
const { abandon, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { noting, onlyThrown, untilFree } = require('../helpers/uncaught.js');

const THROWN = 'thrown by what was patched';
const LIB = path.join(__dirname, '..', '..', 'lib', path.sep);
/** The lock doctor's own calls are many, and no verb's. */
const DOCTOR = path.join(LIB, 'doctor', path.sep);
const SHORT = 5;

/** Throws at the package's call of this number; has `hasThrown` and `restore()`. */
function patch({ prototype }, name, number) {
  const original = prototype[name];
  const define = (value) => Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  const patched = { calls: 0, hasThrown: false, restore: () => define(original) };
  define(function (...args) {
    const caller = new Error('who calls').stack.split('\n')[2];
    if (caller?.includes(LIB) && !caller.includes(DOCTOR)) patched.calls += 1;
    if (patched.calls === number && !patched.hasThrown) {
      patched.hasThrown = true;
      throw new Error(THROWN);
    }
    return Reflect.apply(original, this, args);
  });
  return patched;
}

const PATCHED = {
  'then()': (number) => patch(Promise, 'then', number),
  'an iterator of arrays': (number) => patch(Array, Symbol.iterator, number),
};

/** It is rejected with that; or with what was thrown. */
const rejects = (promise, message) =>
  assert.rejects(promise, (error) => error.message === THROWN || message.test(error.message));

const memory = () => new SharedArrayBuffer(64);
const toFree = (held) => held && (() => (held.unlock ?? held.release).call(held));
const fails = async () => {
  await turns(1);
  throw new Error(THROWN);
};
/** With what waits behind it. */
const run = (lock, fn, behind) => {
  const running = lock(fn);
  return Promise.all([running, behind()]);
};
const ofMutex = () => {
  const mutex = new Mutex(memory());
  return { mutex, take: () => toFree(mutex.tryAcquire()) };
};
let names = 0;
const newName = () => {
  names += 1;
  return `throwing then ${names}`;
};
const ofName = (name, manager = locks) => ({
  take: async () => toFree(await manager.acquireAsync(name, { ifAvailable: true })),
});
/** Marked names, and a manager that repairs them in promises. */
const ofMarked = async (threads) => {
  const all = [newName(), newName()];
  await abandon(threads, ...all);
  const manager = new LockManager({ onAbandoned: () => turns(1) });
  return { all, manager, ...ofName(all, manager) };
};

/** Each has `call()`, which waits for what is to settle, and `take()`, which returns a function that frees, or null. */
const VERBS = {
  'executeLocked()': () => {
    const { mutex, take } = ofMutex();
    const behind = () => mutex.executeLocked(() => {});
    return {
      take,
      call: () =>
        run(
          (fn) => mutex.executeLocked(fn),
          () => turns(1),
          behind,
        ),
    };
  },
  'executeLocked() that fails': () => {
    const { mutex, take } = ofMutex();
    return {
      take,
      call: () =>
        run(
          (fn) => mutex.executeLocked(fn),
          fails,
          () => mutex.executeLocked(() => {}),
        ),
    };
  },
  'read.executeLocked()': () => {
    const { read, write } = new RwLock(memory());
    const behind = () => write.executeLocked(() => {});
    const call = () =>
      run(
        (fn) => read.executeLocked(fn),
        () => turns(1),
        behind,
      );
    return { take: () => toFree(write.tryAcquire()), call };
  },
  'write.executeLocked()': () => {
    const { read, write } = new RwLock(memory());
    const behind = () => read.executeLocked(() => {});
    const call = () =>
      run(
        (fn) => write.executeLocked(fn),
        () => turns(1),
        behind,
      );
    return { take: () => toFree(write.tryAcquire()), call };
  },
  'execute() of a semaphore': () => {
    const semaphore = new Semaphore(memory(), 0, 1);
    const call = () =>
      run(
        (fn) => semaphore.execute(fn),
        () => turns(1),
        () => semaphore.execute(() => {}),
      );
    return { take: () => toFree(semaphore.tryAcquire()), call };
  },
  'run() of a Once': () => {
    const once = new Once(memory());
    const call = () =>
      run(
        (fn) => once.run(fn),
        () => turns(1),
        () => once.run(() => {}),
      );
    return { take: () => (once.isDone ? () => {} : null), call };
  },
  'run() of a Once that fails': () => {
    const once = new Once(memory());
    const call = () =>
      run(
        (fn) => once.run(fn),
        fails,
        () => once.run(() => {}),
      );
    return { take: () => (once.isDone ? () => {} : null), call };
  },
  'enter()': () => {
    const { mutex, take } = ofMutex();
    const enter = () => new Promise((resolve) => mutex.enter(resolve));
    return { take, call: async () => mutex.leave(await enter()) };
  },
  'acquireAsync() that times out': () => {
    const { mutex, take } = ofMutex();
    mutex.tryLock();
    const call = async () => {
      await rejects(mutex.acquireAsync({ timeout: SHORT }), /timed out/);
      mutex.unlock();
    };
    return { take, call };
  },
  'lockAllAsync() that times out': () => {
    const { mutex, take } = ofMutex();
    mutex.tryLock();
    const call = async () => {
      await rejects(lockAllAsync([mutex], { timeout: SHORT }), /timed out/);
      mutex.unlock();
    };
    return { take, call };
  },
  'waitAsync() of a condition': () => {
    const { mutex, take } = ofMutex();
    const condition = new Condition(memory());
    const call = async () => {
      mutex.tryLock();
      const waiting = condition.waitAsync(mutex);
      await turns(1);
      condition.notifyAll();
      assert.equal(await waiting, true);
      mutex.unlock();
    };
    return { take, call };
  },
  'waitAsync() of a condition that is aborted': () => {
    const { mutex, take } = ofMutex();
    const condition = new Condition(memory());
    const call = async () => {
      mutex.tryLock();
      const controller = new AbortController();
      const waiting = condition.waitAsync(mutex, { signal: controller.signal });
      controller.abort(new Error('on purpose'));
      await rejects(waiting, /on purpose/);
      mutex.unlock();
    };
    return { take, call };
  },
  'request()': () => {
    const name = newName();
    const call = () =>
      run(
        (fn) => locks.request(name, fn),
        () => turns(1),
        () => locks.request(name, () => {}),
      );
    return { call, ...ofName(name) };
  },
  'request() of several names': () => {
    const all = [newName(), newName()];
    const call = () =>
      run(
        (fn) => locks.request(all, fn),
        () => turns(1),
        () => locks.request(all, () => {}),
      );
    return { call, ...ofName(all) };
  },
  'requestSync() of several names': () => {
    const all = [newName(), newName()];
    const manager = new LockManager({ allowMainThread: true });
    return { call: async () => manager.requestSync(all, () => {}), ...ofName(all) };
  },
  'unlock() of several names': () => {
    const all = [newName(), newName()];
    return { call: async () => (await locks.acquireAsync(all)).unlock(), ...ofName(all) };
  },
  'unlock() of several locks': () => {
    const { mutex, take } = ofMutex();
    return { take, call: async () => (await lockAllAsync([new Mutex(memory()), mutex])).unlock() };
  },
  'request() that is aborted before its callback': () => {
    const name = newName();
    const call = async () => {
      const controller = new AbortController();
      const request = locks.request(name, { signal: controller.signal }, () => assert.fail('must not run'));
      controller.abort(new Error('on purpose'));
      await rejects(request, /on purpose/);
    };
    return { call, ...ofName(name) };
  },
  'request() that is granted and aborted': () => {
    const name = newName();
    const call = async () => {
      const held = await locks.acquireAsync(name);
      const controller = new AbortController();
      const request = locks.request(name, { signal: controller.signal }, () => assert.fail('must not run'));
      const rejected = rejects(request, /on purpose/);
      await turns(1);
      held.unlock();
      controller.abort(new Error('on purpose'));
      await rejected;
    };
    return { call, ...ofName(name) };
  },
  'request() that repairs': async (threads) => {
    const { all, manager, take } = await ofMarked(threads);
    return { take, call: () => manager.request(all, () => {}) };
  },
  'acquireAsync() that repairs': async (threads) => {
    const { all, manager, take } = await ofMarked(threads);
    return { take, call: async () => toFree(await manager.acquireAsync(all))() };
  },
};

/** Calls the verb, while the thread waits elsewhere; returns whether what is patched has thrown. */
async function check(threads, title, make, patchAt) {
  const it = await make(threads);
  const elsewhere = new Mutex(memory());
  elsewhere.tryLock();
  const wait = elsewhere.lockAsync();
  const patched = patchAt();
  await noting(async (uncaught) => {
    let outcome;
    try {
      it.call().then(
        () => {
          outcome = null;
        },
        (error) => {
          outcome = error;
        },
      );
      await threads.until(`${title} settles`, () => outcome !== undefined);
      await turns();
    } finally {
      patched.restore();
    }
    assert.ok(outcome === null || outcome.message === THROWN, `${title}: ${outcome?.stack}`);
    onlyThrown(uncaught, THROWN, title);
    await untilFree(threads, title, it.take);
  });
  elsewhere.unlock();
  await wait;
  elsewhere.unlock();
  return patched.hasThrown;
}

for (const [name, patchAt] of Object.entries(PATCHED)) {
  for (const [verb, make] of Object.entries(VERBS)) {
    test(
      `${verb}: ${name} that is patched and throws keeps nothing held, and no promise pending`,
      needs('uncaught subscribers'),
      watched(async (_, threads) => {
        for (let number = 1; ; number += 1) {
          if (!(await check(threads, `${verb}, call ${number}`, make, () => patchAt(number)))) break;
        }
      }),
    );
  }
}
