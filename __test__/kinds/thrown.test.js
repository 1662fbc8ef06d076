// What users' code throws comes out as it is, also what is no error: `undefined` is thrown too.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, LockManager, LockTable, Mutex, Once, RwLock, Semaphore, lockAll, lockAllAsync } = require('../..');
const { start } = require('../../lib/doctor/index.js');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { rowsOf } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const VALUES = [undefined, null, 0, -0, Number.NaN, '', false, 'a string', new Error('on purpose')];
const OPTIONS = { allowMainThread: true };
const memory = () => new SharedArrayBuffer(64);
const nothing = () => {};

/** What comes out, in an array; a word if nothing does. */
const thrownBy = async (call) => {
  try {
    await call();
  } catch (error) {
    return [error];
  }
  return 'nothing';
};

/** Ways to fail: those of code that a verb awaits come last. */
const throws = (value) => () => {
  throw value;
};
const WAYS = {
  'throws at once': throws,
  rejects: (value) => () => Promise.reject(value),
  'throws later': (value) => async () => {
    await undefined;
    throw value;
  },
};

const exclusive =
  (make, ...args) =>
  (_, buffer) => {
    const lock = make(buffer);
    return { lock, isFree: () => lock.tryLock(...args) && lock.unlock(...args) === undefined };
  };
const names = () => ({
  lock: new LockManager(OPTIONS),
  isFree: async ({ lock }) => rowsOf((await lock.query()).held, 'thrown').length === 0,
});
const ofMachine = (t) => ({ ...names(), lock: new LockManager({ ...OPTIONS, directory: createFolder(t) }) });
const byName = {
  request: (lock, fn) => lock.request('thrown', fn),
  'request with a signal': (lock, fn) => lock.request('thrown', { signal: new AbortController().signal }, fn),
  'request of several': (lock, fn) => lock.request(['thrown', 'thrown too'], fn),
  'request of none': (lock, fn) => lock.request([], fn),
  requestSync: (lock, fn) => lock.requestSync('thrown', fn),
  'requestSync of several': (lock, fn) => lock.requestSync(['thrown', 'thrown too'], fn),
};
const executes = {
  executeLocked: (lock, fn) => lock.executeLocked(fn),
  'executeLocked with options': (lock, fn) => lock.executeLocked(fn, { timeout: 60_000 }),
  executeLockedSync: (lock, fn) => lock.executeLockedSync(fn),
};

/** By class: how one is made, on this memory, and every verb that runs a function while it holds. */
const CLASSES = {
  Mutex: [exclusive((buffer) => new Mutex(buffer, 0, OPTIONS)), executes],
  WriteLock: [exclusive((buffer) => new RwLock(buffer, 0, OPTIONS).write), executes],
  ReadLock: [
    (_, buffer) => {
      const { read, write } = new RwLock(buffer, 0, OPTIONS);
      return { lock: read, isFree: () => write.tryLock() && write.unlock() === undefined };
    },
    executes,
  ],
  LockTable: [
    exclusive((buffer) => new LockTable(buffer, 0, 4, OPTIONS), 2),
    {
      executeLocked: (table, fn) => table.executeLocked(2, fn),
      executeLockedSync: (table, fn) => table.executeLockedSync(2, fn),
    },
  ],
  Semaphore: [
    (_, buffer) => {
      const lock = new Semaphore(buffer, 0, 1, OPTIONS);
      return { lock, isFree: () => lock.available === 1 };
    },
    {
      execute: (semaphore, fn) => semaphore.execute(fn),
      executeSync: (semaphore, fn) => semaphore.executeSync(fn),
    },
  ],
  Once: [
    (_, buffer) => {
      const lock = new Once(buffer, 0, OPTIONS);
      return { lock, isFree: () => !lock.isDone && lock.inspect().holders.length === 0 };
    },
    {
      run: (once, fn) => once.run(fn),
      'run with options': (once, fn) => once.run(fn, { timeout: 60_000 }),
      runSync: (once, fn) => once.runSync(fn),
      'runSync with options': (once, fn) => once.runSync(fn, { timeout: 60_000 }),
    },
  ],
  LockManager: [names, byName],
  'LockManager of the machine': [ofMachine, byName],
};

for (const [name, [make, verbs]] of Object.entries(CLASSES)) {
  for (const [verb, call] of Object.entries(verbs)) {
    for (const hasDoctor of [false, true]) {
      test(
        `${name}: ${verb} throws what its function throws, whatever that is, and holds nothing then${hasDoctor ? ', with the doctor' : ''}`,
        watched(async (t) => {
          const doctor = hasDoctor ? start({ contention: false }) : null;
          try {
            const made = make(t, memory());
            for (const [way, fail] of Object.entries(/Sync/.test(verb) ? { 'throws at once': throws } : WAYS)) {
              for (const value of VALUES) {
                const what = `${way}: ${String(value)}`;
                assert.deepEqual(await thrownBy(() => call(made.lock, fail(value))), [value], what);
                assert.equal(await made.isFree(made), true, what);
              }
            }
            // It goes on as if nothing had been.
            const given = [];
            await call(made.lock, (...args) => {
              given.push(args.length);
            });
            // A named lock, and the notes of a Once, come as an argument; other functions get none.
            assert.deepEqual(given, [/LockManager|Once/.test(name) ? 1 : 0]);
          } finally {
            doctor?.stop();
          }
        }),
      );
    }
  }
}

for (const [name, [make, verbs]] of Object.entries(CLASSES)) {
  if (/LockManager/.test(name)) continue;
  for (const [verb, call] of Object.entries(verbs)) {
    test(`${name}: ${verb} whose hold cannot be given back says why, unless its function throws: then that comes out`, async () => {
      for (const value of [...VALUES, nothing]) {
        const buffer = memory();
        const { lock } = make(null, buffer);
        const run = () =>
          call(lock, () => {
            // No sablock writes that.
            new Int32Array(buffer).fill(-1);
            if (value !== nothing) throw value;
          });
        const [error] = await thrownBy(run);
        if (value === nothing) assert.equal(error.code, 'ERR_LOCK_CORRUPT');
        else assert.ok(Object.is(error, value), String(value));
      }
    });
  }
}

test(
  'what the function of a request that gets nothing throws comes out too',
  watched(async () => {
    const manager = new LockManager(OPTIONS);
    const held = await manager.acquireAsync('thrown');
    const options = { ifAvailable: true };
    for (const value of VALUES) {
      for (const [verb, asked] of [
        ['request', 'thrown'],
        ['request', ['thrown', 'thrown too']],
        ['requestSync', 'thrown'],
        ['requestSync', ['thrown', 'thrown too']],
      ]) {
        assert.deepEqual(await thrownBy(() => manager[verb](asked, options, throws(value))), [value], verb);
      }
    }
    assert.equal(held.unlock(), true);
  }),
);

for (const verb of ['waitFor', 'waitForAsync']) {
  test(
    `what the predicate of ${verb}() throws comes out, whatever it is, and the mutex is held as before`,
    watched(async () => {
      const buffer = memory();
      const mutex = new Mutex(buffer, 0, OPTIONS);
      const condition = new Condition(buffer, 4, OPTIONS);
      for (const fail of Object.values(verb === 'waitFor' ? { throws } : WAYS)) {
        for (const value of VALUES) {
          const guard = mutex.acquire();
          assert.deepEqual(await thrownBy(() => condition[verb](mutex, fail(value))), [value]);
          // Or when it is asked again, out of time.
          let calls = 0;
          const later = () => (calls++ === 0 ? false : fail(value)());
          assert.deepEqual(await thrownBy(() => condition[verb](mutex, later, 1)), [value]);
          assert.deepEqual([calls, guard.unlock()], [2, true]);
        }
      }
    }),
  );
}

const REPAIRS = {
  lock: (lock) => lock.lock(),
  tryLock: (lock) => lock.tryLock(),
  lockAsync: (lock) => lock.lockAsync(),
  acquire: (lock) => lock.acquire(),
  tryAcquire: (lock) => lock.tryAcquire(),
  acquireAsync: (lock) => lock.acquireAsync(),
  executeLocked: (lock) => lock.executeLocked(nothing),
  executeLockedSync: (lock) => lock.executeLockedSync(nothing),
  lockAll: (lock) => lockAll([new Mutex(memory(), 0, OPTIONS), lock]),
  lockAllAsync: (lock) => lockAllAsync([new Mutex(memory(), 0, OPTIONS), lock]),
};

/** By kind: one in this memory, with these options. */
const REPAIRED = {
  Mutex: (buffer, options) => new Mutex(buffer, 0, options),
  WriteLock: (buffer, options) => new RwLock(buffer, 0, options).write,
  'lock of a table': (buffer, options) => new LockTable(buffer, 0, 4, options).at(0),
};

for (const [kind, make] of Object.entries(REPAIRED)) {
  test(
    `what onAbandoned of a ${kind} throws comes out of every verb, whatever it is, and the lock is free and marked then`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const buffer = memory();
      const [doomed] = await startActors(threads, 1, buffer);
      await doomed.do((here, kind) => {
        if (kind === 'WriteLock') new here.sablock.RwLock(here.buffer).write.lock();
        else new here.sablock.Mutex(here.buffer).lock();
      }, kind);
      await doomed.terminate();
      let fail = nothing;
      const lock = make(buffer, { ...OPTIONS, onAbandoned: () => fail() });
      for (const [verb, call] of Object.entries(REPAIRS)) {
        for (const value of VALUES) {
          fail = throws(value);
          assert.deepEqual(await thrownBy(() => call(lock)), [value], verb);
          assert.equal(lock.isHeldByThisThread, false, verb);
        }
      }
      let calls = 0;
      fail = () => {
        calls += 1;
      };
      await lock.lockAsync();
      assert.equal(calls, 1);
      lock.unlock();
    }),
  );
}

test(
  'what onAbandoned of names throws comes out of every verb, whatever it is',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const [doomed] = await startActors(threads, 1);
    await doomed.do(async (here) => {
      here.kept = await here.sablock.locks.acquireAsync('thrown by a repair');
    });
    await doomed.terminate();
    let fail;
    const manager = new LockManager({ ...OPTIONS, onAbandoned: () => fail() });
    const name = 'thrown by a repair';
    const verbs = {
      request: () => manager.request(name, nothing),
      requestSync: () => manager.requestSync(name, nothing),
      acquire: () => manager.acquire(name),
      acquireAsync: () => manager.acquireAsync(name),
      'request of several': () => manager.request([name, 'another'], nothing),
      'requestSync of several': () => manager.requestSync([name, 'another'], nothing),
      'acquire of several': () => manager.acquire([name, 'another']),
      'acquireAsync of several': () => manager.acquireAsync([name, 'another']),
    };
    for (const [verb, call] of Object.entries(verbs)) {
      for (const [way, make] of Object.entries(/Sync|^acquire(?: |$)/.test(verb) ? { throws } : WAYS)) {
        for (const value of VALUES) {
          fail = make(value);
          assert.deepEqual(await thrownBy(call), [value], `${verb}: ${way}`);
          assert.deepEqual(rowsOf((await manager.query()).held, name), [], `${verb}: ${way}`);
        }
      }
    }
    let calls = 0;
    fail = () => {
      calls += 1;
    };
    await manager.request(name, nothing);
    assert.equal(calls, 1);
  }),
);
