// Users' code that runs in the middle of a verb: what it releases or waits for there is not taken for what the verb does.

const assert = require('node:assert/strict');
const { unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { runInNewContext } = require('node:vm');
const {
  AutoResetEvent,
  Condition,
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
const { thread } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { withDoctor } = require('../helpers/doctor.js');
const { subscribe } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const QUIET = { stuckMs: Infinity, longHoldMs: Infinity, likelyMs: Infinity };
const MAY = { allowMainThread: true };
const LATER = 60_000;

const memory = () => new SharedArrayBuffer(64);
let made = 0;
const nameOf = (kind) => {
  made += 1;
  return `${kind} ${process.pid}.${made}`;
};
const newMutex = (options) => new Mutex(memory(), 0, { ...MAY, name: nameOf('mutex'), ...options });
const held = () => thread.doctor.holds.active.map(({ info }) => info.name);

/** A marked mutex. */
const abandoned = async (threads, options) => {
  const mutex = newMutex(options);
  const [doomed] = await startActors(threads, 1);
  await doomed.do((here, buffer) => new here.sablock.Mutex(buffer).tryLock(), mutex.buffer);
  await doomed.terminate();
  await doomed.exited;
  return mutex;
};
/** Options whose getter calls `act`. */
const calling = (act) => ({
  get timeout() {
    act();
    return LATER;
  },
});

/** Each takes a lock by a verb in which users' code calls `act`; returns its name, and what releases it. */
const VERBS = {
  'lock() with a getter': (act) => {
    const mutex = newMutex();
    mutex.lock(calling(act));
    return [mutex.name, () => mutex.unlock()];
  },
  'lockAsync() with a getter': async (act) => {
    const mutex = newMutex();
    await mutex.lockAsync(calling(act));
    return [mutex.name, () => mutex.unlock()];
  },
  'acquireAsync() with a getter': async (act) => {
    const mutex = newMutex();
    const guard = await mutex.acquireAsync(calling(act));
    return [mutex.name, () => guard.unlock()];
  },
  'lockAsync() with a signal': async (act) => {
    const mutex = newMutex();
    let isCalled = false;
    class Calls extends EventTarget {
      get aborted() {
        if (!isCalled) act();
        isCalled = true;
        return false;
      }
    }
    await mutex.lockAsync({ signal: new Calls() });
    return [mutex.name, () => mutex.unlock()];
  },
  'lock() with onAbandoned': async (act, threads) => {
    const mutex = await abandoned(threads, { onAbandoned: act });
    mutex.lock();
    return [mutex.name, () => mutex.unlock()];
  },
  'lock() that warns': async (act, threads, t) => {
    const mutex = await abandoned(threads);
    t.mock.method(process, 'emitWarning', act);
    thread.warnings = null;
    mutex.lock();
    return [mutex.name, () => mutex.unlock()];
  },
  'lock() that is told of': (act) => {
    const mutex = newMutex();
    mutex.lock();
    subscribe('sablock:contended', act);
    mutex.lock(1);
    unsubscribe('sablock:contended', act);
    return [mutex.name, () => mutex.unlock()];
  },
  'lock() of a table': (act) => {
    const table = new LockTable(memory(), 0, 2, { ...MAY, name: nameOf('table') });
    table.lock(1, calling(act));
    return [table.name, () => table.unlock(1)];
  },
  'acquire() of permits': (act) => {
    const semaphore = new Semaphore(memory(), 0, 1, { ...MAY, name: nameOf('semaphore') });
    const permits = semaphore.acquire(1, calling(act));
    return [semaphore.name, () => permits.release()];
  },
  'acquire() of a name': (act) => {
    const lock = new LockManager(MAY).acquire(nameOf('name'), calling(act));
    return [lock.name, () => lock.unlock()];
  },
};

/** Each returns what users' code does in a verb, and what is done at the end. */
const ACTS = {
  'unlocks a mutex': () => {
    const mutex = newMutex();
    mutex.lock();
    return [() => mutex.unlock()];
  },
  'unlocks a guard': () => {
    const guard = newMutex().acquire();
    return [() => guard.unlock()];
  },
  'unlocks a row': () => {
    const table = new LockTable(memory(), 0, 2, { ...MAY, name: nameOf('table') });
    table.lock(0);
    return [() => table.unlock(0)];
  },
  'waits for an event': () => {
    const event = new AutoResetEvent(memory());
    let waiting;
    const end = () => {
      event.set();
      return waiting;
    };
    const act = () => {
      waiting = event.waitAsync();
    };
    return [act, end];
  },
  'runs once': () => {
    const once = new Once(memory(), 0, MAY);
    return [() => once.runSync(() => {})];
  },
};

for (const [verb, take] of Object.entries(VERBS)) {
  for (const [what, make] of Object.entries(ACTS)) {
    test(
      `${verb}: users' code in it ${what}, and the doctor knows what is held`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        await withDoctor(QUIET, async () => {
          const [act, end] = make();
          const [name, release] = await take(act, threads, t);
          assert.deepEqual(held(), [name]);
          release();
          await end?.();
          assert.deepEqual(held(), []);
        });
      }),
    );
  }
}

/** Each returns a function that begins a wait, and one that ends it. */
const WAITS = {
  'lockAsync()': () => {
    const mutex = newMutex();
    mutex.lock();
    return [() => mutex.lockAsync(), () => mutex.unlock()];
  },
  'lockAllAsync()': () => {
    const mutex = newMutex();
    mutex.lock();
    return [() => lockAllAsync([mutex]), () => mutex.unlock()];
  },
  'acquireAsync() of permits': () => {
    const semaphore = new Semaphore(memory(), 0, 0);
    return [() => semaphore.acquireAsync(), () => semaphore.release()];
  },
  'request()': () => {
    const lock = new LockManager(MAY).acquire(nameOf('name'));
    return [() => locks.request(lock.name, () => {}), () => lock.unlock()];
  },
  'waitAsync() of an event': () => {
    const event = new AutoResetEvent(memory());
    return [() => event.waitAsync(), () => event.set()];
  },
  'waitAsync() of a condition': () => {
    const buffer = memory();
    const [mutex, condition] = [new Mutex(buffer), new Condition(buffer, 4)];
    mutex.tryLock();
    return [() => condition.waitAsync(mutex), () => condition.notifyAll()];
  },
};

for (const [what, make] of Object.entries(WAITS)) {
  test(
    `${what}: it waits for what it has asked for, though the program's formatter of stacks waits for a lock`,
    needs("V8's flags"),
    watched(async () => {
      const other = newMutex();
      other.lock();
      let isCalled = false;
      let waiting;
      const { prepareStackTrace } = Error;
      await withDoctor(QUIET, async () => {
        const [begin, end] = make();
        Error.prepareStackTrace = (error, frames) => {
          // Its own wait has a stack, too.
          if (!isCalled) {
            isCalled = true;
            waiting = other.lockAsync();
          }
          return [String(error), ...frames.map((frame) => `    at ${frame}`)].join('\n');
        };
        let promise;
        try {
          promise = begin();
        } finally {
          Error.prepareStackTrace = prepareStackTrace;
        }
        assert.ok(waiting instanceof Promise);
        end();
        await promise;
        other.unlock();
        assert.equal(await waiting, true);
      });
    }),
  );
}

/** Calls that block for what another thread holds, or does not do; each gets `[mutex, other, name]`. */
const CUT_OFF = {
  'lock()': ([mutex]) => mutex.lock(),
  'lockAll()': ([mutex, other]) => lockAll([other, mutex]),
  'requestSync()': ([, , name]) => new LockManager(MAY).requestSync(name, () => {}),
  'wait() of a condition'([, other]) {
    if (!other.isHeldByThisThread) other.lock();
    new Condition(memory(), 0, MAY).wait(other);
  },
};

for (const [what, block] of Object.entries(CUT_OFF)) {
  test(
    `${what} that is cut off by a time limit of vm waits no more, and the doctor sees what comes after it`,
    needs('interruptions at calls'),
    watched(async (t, threads) => {
      const [mutex, other] = [newMutex(), newMutex()];
      const name = nameOf('name');
      const [holder] = await startActors(threads, 1);
      await holder.do(
        (here, buffer, of) => {
          new here.sablock.Mutex(buffer).tryLock();
          here.lock = new here.sablock.LockManager().acquire(of);
        },
        mutex.buffer,
        name,
      );
      await withDoctor(QUIET, async (doctor) => {
        const call = () => block([mutex, other, name]);
        const cutOff = () => runInNewContext('call()', { call }, { timeout: 50 });
        assert.throws(cutOff, { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
        const { waiting: none, contention } = doctor.report();
        assert.deepEqual([none, contention], [[], []], 'at once');
        assert.throws(cutOff, { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
        const write = t.mock.method(process.stderr, 'write', () => true);
        doctor.print();
        write.mock.restore();
        assert.doesNotMatch(write.mock.calls[0].arguments[0], /wanted by/, 'as it is printed');
        assert.throws(cutOff, { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
        const third = newMutex();
        let waiting;
        // Users' code may block in a call that blocks.
        const look = () => {
          third.lock();
          third.lock(1);
          third.unlock();
          waiting = doctor.report().waiting.map(({ lock }) => lock.name);
        };
        subscribe('sablock:long-hold', look);
        while (waiting === undefined) mutex.lock(500);
        unsubscribe('sablock:long-hold', look);
        assert.deepEqual(waiting, [mutex.name], 'while it blocks for another');
        await undefined;
        await undefined;
        third.tryLock();
        assert.ok(held().includes(third.name));
        third.unlock();
      });
    }),
  );
}

/** Verbs that run a function while they hold: each makes a lock, runs `body` with it, and returns its name. */
const RUNNING = (() => {
  const of = (kind, make, run) => async (body) => {
    const name = nameOf(kind);
    await run(make({ ...MAY, name }), body, name);
    return name;
  };
  const mutex = (options) => new Mutex(memory(), 0, options);
  const rwlock = (options) => new RwLock(memory(), 0, options);
  const table = (options) => new LockTable(memory(), 0, 2, options);
  const pool = (options) => new Semaphore(memory(), 0, 3, options);
  const once = (options) => new Once(memory(), 0, options);
  const manager = () => new LockManager(MAY);
  return {
    'executeLocked()': of('mutex', mutex, (lock, body) => lock.executeLocked(body)),
    'executeLockedSync()': of('mutex', mutex, (lock, body) => lock.executeLockedSync(body)),
    'enter()': of('mutex', mutex, (lock, body) =>
      lock.enter((token) => {
        body();
        lock.leave(token);
      }),
    ),
    'read.executeLocked()': of('rwlock', rwlock, ({ read }, body) => read.executeLocked(body)),
    'read.executeLockedSync()': of('rwlock', rwlock, ({ read }, body) => read.executeLockedSync(body)),
    'write.executeLocked()': of('rwlock', rwlock, ({ write }, body) => write.executeLocked(body)),
    'write.executeLockedSync()': of('rwlock', rwlock, ({ write }, body) => write.executeLockedSync(body)),
    'executeLocked() of a row': of('table', table, (lock, body) => lock.executeLocked(1, body)),
    'executeLockedSync() of a row': of('table', table, (lock, body) => lock.executeLockedSync(1, body)),
    'execute()': of('pool', pool, (lock, body) => lock.execute(body)),
    'executeSync()': of('pool', pool, (lock, body) => lock.executeSync(body)),
    'executeSync() of several permits': of('pool', pool, (lock, body) => lock.executeSync(body, { permits: 2 })),
    'run()': of('once', once, (lock, body) => lock.run(body)),
    'runSync()': of('once', once, (lock, body) => lock.runSync(body)),
    'request()': of('name', manager, (all, body, name) => all.request(name, body)),
    'request() that steals': of('name', manager, async (all, body, name) => {
      const lost = new LockManager().request(name, () => new Promise(() => {}));
      // The name that was asked for last is another one.
      await all.request(nameOf('name'), () => {});
      const stolen = all.request(name, { steal: true }, body);
      await assert.rejects(lost, { name: 'AbortError' });
      await stolen;
    }),
    'request() of what is available': of('name', manager, (all, body, name) =>
      all.request(name, { ifAvailable: true }, body),
    ),
    'request() of what is shared': of('name', manager, (all, body, name) =>
      all.request(name, { mode: 'shared' }, body),
    ),
    'requestSync()': of('name', manager, (all, body, name) => all.requestSync(name, body)),
  };
})();

for (const [verb, run] of Object.entries(RUNNING)) {
  // The function that has entered leaves by itself; one that is to run to its end returns no promise.
  const ends = verb === 'enter()' ? ['returned'] : ['returned', 'thrown'];
  if (!/Sync|enter/.test(verb)) ends.push('fulfilled its promise', 'rejected its promise');
  for (const how of ends) {
    const fails = /thrown|rejected/.test(how);
    test(
      `${verb}: its lock is held while its function runs, and not once that has ${how}`,
      watched(() =>
        withDoctor(QUIET, async () => {
          let seen;
          const look = () => {
            seen = held();
            if (fails) throw new RangeError('mine');
          };
          const body = how.includes('promise') ? () => Promise.resolve().then(look) : look;
          const name = await run(body).catch((error) => {
            if (!fails || !(error instanceof RangeError)) throw error;
            return seen[0];
          });
          assert.deepEqual([seen.length, seen[0]], [1, name]);
          assert.deepEqual(held(), []);
        }),
      ),
    );
  }
}

/** Locks of each kind, with what holds one alone: a guard that others wait for. */
const KINDS = {
  mutex: (options) => {
    const lock = new Mutex(memory(), 0, options);
    return { lock, alone: () => lock.tryAcquire(), isExclusive: true };
  },
  'lock to read': (options) => {
    const { read, write } = new RwLock(memory(), 0, options);
    return { lock: read, alone: () => write.tryAcquire(), isExclusive: false };
  },
  'lock to write': (options) => {
    const { write } = new RwLock(memory(), 0, options);
    return { lock: write, alone: () => write.tryAcquire(), isExclusive: true };
  },
  row: (options) => {
    const lock = new LockTable(memory(), 0, 2, options).at(1);
    return { lock, alone: () => lock.tryAcquire(), isExclusive: true };
  },
  'row by its index': (options) => {
    const table = new LockTable(memory(), 0, 2, options);
    const verbs = ['lock', 'tryLock', 'lockAsync', 'acquire', 'tryAcquire', 'acquireAsync', 'unlock'];
    const lock = Object.fromEntries(verbs.filter((verb) => table[verb]).map((verb) => [verb, () => table[verb](1)]));
    return { lock, alone: () => table.at(1).tryAcquire(), isExclusive: true };
  },
  permit: (options) => {
    const pool = new Semaphore(memory(), 0, 1, options);
    const lock = {
      acquire: () => pool.acquire(),
      tryAcquire: () => pool.tryAcquire(),
      acquireAsync: () => pool.acquireAsync(),
    };
    return { lock, alone: () => pool.tryAcquire(), isExclusive: false };
  },
  name: ({ name }) => {
    const manager = new LockManager(MAY);
    const lock = { acquire: () => manager.acquire(name), acquireAsync: () => manager.acquireAsync(name) };
    return { lock, alone: () => manager.acquire(name), isExclusive: true };
  },
  'shared name': ({ name }) => {
    const manager = new LockManager(MAY);
    const mode = 'shared';
    const lock = {
      acquire: () => manager.acquire(name, { mode }),
      acquireAsync: () => manager.acquireAsync(name, { mode }),
    };
    return { lock, alone: () => manager.acquire(name), isExclusive: false };
  },
};

for (const [kind, make] of Object.entries(KINDS)) {
  for (const verb of ['lock', 'tryLock', 'lockAsync', 'acquire', 'tryAcquire', 'acquireAsync']) {
    if (make({ ...MAY, name: '?' }).lock[verb] === undefined) continue;
    for (const waits of verb.endsWith('Async') ? [false, true] : [false]) {
      test(
        `${verb}() of a ${kind}${waits ? ' that waits' : ''}: it is held as it was taken, and not once that has gone back`,
        watched(() =>
          withDoctor(QUIET, async () => {
            const name = nameOf(kind);
            const { lock, alone, isExclusive } = make({ ...MAY, name });
            const first = waits ? alone() : null;
            const taking = lock[verb]();
            if (first?.release) first.release();
            else first?.unlock();
            const taken = await taking;
            const seen = thread.doctor.holds.active.map((hold) => [hold.info.name, hold.isExclusive]);
            assert.deepEqual(seen, [[name, isExclusive]]);
            if (taken === true) lock.unlock();
            else if (taken.release) taken.release();
            else taken.unlock();
            assert.deepEqual(held(), []);
          }),
        ),
      );
    }
  }
}

for (const [verb, takeAll] of Object.entries({ lockAll, lockAllAsync })) {
  for (const waits of verb === 'lockAllAsync' ? [false, true] : [false]) {
    test(
      `${verb}() of one lock twice${waits ? ' that waits' : ''} holds it once`,
      watched(() =>
        withDoctor(QUIET, async () => {
          const [mutex, other] = [newMutex(), newMutex()];
          const first = waits ? mutex.tryAcquire() : null;
          const taking = takeAll([mutex, other, new Mutex(mutex.buffer, 0, { ...MAY, name: mutex.name })]);
          first?.unlock();
          const guard = await taking;
          assert.deepEqual(held(), [mutex.name, other.name]);
          guard.unlock();
          assert.deepEqual(held(), []);
        }),
      ),
    );
  }
}

/** Each returns a mutex that another thread is to hold, and what is tried in vain then. */
const IN_VAIN = {
  'tryLock()': () => {
    const mutex = newMutex();
    return [mutex, (free) => [mutex.tryLock(), free.tryLock() && free.unlock()]];
  },
  'tryAcquire()': () => {
    const mutex = newMutex();
    return [mutex, () => mutex.tryAcquire()];
  },
  'acquire() with a time limit': () => {
    const mutex = newMutex();
    return [mutex, () => assert.throws(() => mutex.acquire(1), { code: 'ERR_LOCK_TIMEOUT' })];
  },
  'lock() with a time limit': () => {
    const mutex = newMutex();
    return [mutex, () => mutex.lock(1)];
  },
  'acquireAsync() with a time limit': () => {
    const mutex = newMutex();
    return [mutex, () => assert.rejects(mutex.acquireAsync(1), { code: 'ERR_LOCK_TIMEOUT' })];
  },
  'executeLocked() with a time limit': () => {
    const mutex = newMutex();
    return [
      mutex,
      () =>
        assert.rejects(
          mutex.executeLocked(() => {}, { timeout: 1 }),
          { code: 'ERR_LOCK_TIMEOUT' },
        ),
    ];
  },
  'lockAll() with a time limit': () => {
    const mutex = newMutex();
    return [mutex, (free) => assert.throws(() => lockAll([free, mutex], 1), { code: 'ERR_LOCK_TIMEOUT' })];
  },
};

for (const [how, make] of Object.entries(IN_VAIN)) {
  test(
    `${how} in vain: nothing is held of what another thread has`,
    watched((_, threads) =>
      withDoctor(QUIET, async () => {
        const [mutex, tryIt] = make();
        const [holder] = await startActors(threads, 1);
        await holder.do((here, buffer) => new here.sablock.Mutex(buffer).tryLock(), mutex.buffer);
        await tryIt(newMutex());
        assert.deepEqual(held(), []);
      }),
    ),
  );
}

test(
  'what is tried in vain of other kinds is not held either',
  watched(() =>
    withDoctor(QUIET, async () => {
      const rwlock = new RwLock(memory(), 0, { ...MAY, name: nameOf('rwlock') });
      const table = new LockTable(memory(), 0, 2, { ...MAY, name: nameOf('table') });
      const pool = new Semaphore(memory(), 0, 1, { ...MAY, name: nameOf('pool') });
      const name = nameOf('name');
      const reads = [rwlock.read.acquire(), rwlock.read.acquire()];
      table.lock(1);
      const permit = pool.tryAcquire();
      const lock = await locks.acquireAsync(name);
      const before = held();
      const tried = [
        rwlock.write.tryLock(),
        rwlock.write.tryAcquire(),
        reads[0].tryUpgrade(),
        table.tryLock(1),
        table.at(1).tryAcquire(),
        pool.tryAcquire(),
        await locks.acquireAsync(name, { ifAvailable: true }),
        await locks.request(name, { ifAvailable: true }, (other) => other),
      ];
      assert.deepEqual(tried, [false, null, false, false, null, null, null, null]);
      assert.deepEqual(held(), before);
      for (const guard of reads) guard.unlock();
      table.unlock(1);
      permit.release();
      lock.unlock();
      assert.deepEqual(held(), []);
    }),
  ),
);

const MARKED = {
  onAbandoned() {
    throw new Error('it cannot be repaired');
  },
};

/** Verbs that fail since the lock is marked: each gets the lock, and one that is free. */
const FAILING = {
  'lock()': (mutex) => mutex.lock(),
  'lockAsync()': (mutex) => mutex.lockAsync(),
  'acquireAsync()': (mutex) => mutex.acquireAsync(),
  'executeLocked()': (mutex) => mutex.executeLocked(() => {}),
  'lockAll()': (mutex, other) => lockAll([mutex, other]),
  'lockAllAsync()': (mutex, other) => lockAllAsync([other, mutex]),
};

for (const [what, take] of Object.entries(FAILING)) {
  for (const waits of what.includes('Async') || what === 'executeLocked()' ? [true, false] : [false]) {
    test(
      `${what} whose onAbandoned throws${waits ? ' after a wait' : ''} holds nothing`,
      watched((_, threads) =>
        withDoctor(QUIET, async () => {
          const [mutex, other] = [newMutex(MARKED), newMutex()];
          const [doomed] = await startActors(threads, 1);
          await doomed.do((here, buffer) => new here.sablock.Mutex(buffer).tryLock(), mutex.buffer);
          const wait = waits ? take(mutex, other) : null;
          wait?.catch(() => {});
          await doomed.terminate();
          await doomed.exited;
          await assert.rejects(async () => await (wait ?? take(mutex, other)), /it cannot be repaired/);
          assert.deepEqual([mutex.isLocked, other.isLocked, held()], [false, false, []]);
        }),
      ),
    );
  }
}

for (const isBlocking of [true, false]) {
  test(
    `${isBlocking ? 'wait()' : 'waitAsync()'} of a condition whose mutex cannot be repaired holds nothing`,
    watched((_, threads) =>
      withDoctor(QUIET, async () => {
        const mutex = newMutex(MARKED);
        const condition = new Condition(memory(), 0, MAY);
        const [doomed] = await startActors(threads, 1);
        mutex.lock();
        const ends = doomed.do((here, buffer) => {
          const taken = new here.sablock.Mutex(buffer);
          while (taken.isLocked) {}
          while (!taken.tryLock()) {}
          setImmediate(() => process.exit());
        }, mutex.buffer);
        ends.catch(() => {});
        await assert.rejects(async () => {
          // A notification that comes once the other has it; the last may come too early.
          while (true) {
            if (isBlocking) condition.wait(mutex, 50);
            else await condition.waitAsync(mutex, { timeout: 50 });
          }
        }, /it cannot be repaired/);
        assert.deepEqual([mutex.isLocked, held()], [false, []]);
      }),
    ),
  );
}

test(
  'what goes back while a condition is waited for is not the hold that is to come back',
  watched((_, threads) =>
    withDoctor(QUIET, async () => {
      let isRepairable = false;
      const mutex = newMutex({ onAbandoned: () => isRepairable || MARKED.onAbandoned() });
      const condition = new Condition(memory(), 0, MAY);
      const [doomed] = await startActors(threads, 1);
      mutex.lock();
      // One that is over, and whose hold is the same.
      condition.wait(mutex, 5);
      const waiting = condition.waitAsync(mutex);
      await doomed.do((here, buffer) => new here.sablock.Mutex(buffer).lock(), mutex.buffer);
      await doomed.terminate();
      await doomed.exited;
      assert.throws(() => mutex.lock(), /it cannot be repaired/);
      isRepairable = true;
      condition.notifyOne();
      await waiting;
      assert.deepEqual([mutex.isHeldByThisThread, held()], [true, [mutex.name]]);
      mutex.unlock();
      assert.deepEqual(held(), []);
    }),
  ),
);
