// Starting and stopping, options, and what must be as before while it is on and afterwards.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const sablock = require('../../index.js');
const { start } = require('../../lib/doctor/index.js');
const { toOptions } = require('../../lib/doctor/options.js');
const { thread } = require('../../lib/engine/thread.js');
const { collector } = require('../helpers/collect.js');
const { startActors } = require('../helpers/actors.js');
const { declaredIn } = require('../helpers/declared.js');
const { DOCTOR, about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const { Condition, LockGuard, LockTable, Mutex, Once, RwLock, RwLockGuard, lockAll, lockAllAsync } = sablock;
const QUIET = { stuckMs: Infinity, longHoldMs: Infinity };
const LOOKING = { stuckMs: Infinity, longHoldMs: 1 };
const rwlock = new RwLock(new SharedArrayBuffer(8));
const PROTOTYPES = [Mutex, LockGuard, RwLock, RwLockGuard, LockTable, Condition, Once]
  .map(({ prototype }) => prototype)
  .concat([rwlock.read, rwlock.write].map(Object.getPrototypeOf));

const descriptors = () => PROTOTYPES.map((prototype) => Object.getOwnPropertyDescriptors(prototype));

test('after stop() every method is the one that it was, with the same attributes', () => {
  const before = descriptors();
  const { then } = Promise.prototype;
  const doctor = start(QUIET);
  assert.notDeepEqual(descriptors(), before);
  doctor.stop();
  assert.equal(Promise.prototype.then, then);
  descriptors().forEach((properties, index) => {
    for (const [name, descriptor] of Object.entries(properties))
      assert.deepEqual(descriptor, before[index][name], name);
  });
});

test('after stop() the process has the listeners that it had', () => {
  const listeners = () => ['exit', 'newListener', 'removeListener'].map((event) => process.listenerCount(event));
  // Modules that are loaded with the first one may listen for ever.
  start(QUIET).stop();
  const before = listeners();
  const doctor = start(QUIET);
  assert.ok(listeners().every((count, index) => count > before[index]));
  doctor.stop();
  assert.deepEqual(listeners(), before);
});

test('after stop() what every verb reads of its thread is as fast as before', {
  skip: (process.versions.bun ?? process.versions.deno) !== undefined && 'of V8, which tells with a flag',
}, async () => {
  require('node:v8').setFlagsFromString('--allow-natives-syntax');
  const isFast = new Function('object', 'return %HasFastProperties(object)');
  await sablock.locks.request('fast', () => {});
  const objects = [thread, thread.held];
  assert.deepEqual(objects.map(isFast), [true, true]);
  start(QUIET).stop();
  assert.deepEqual(objects.map(isFast), [true, true]);
});

/** Returns what a method does that is called as a function. */
const outcomeWithoutThis = (method) => {
  try {
    method().catch(() => {});
    return 'a promise';
  } catch (error) {
    return error.message;
  }
};

test('while it is on, methods keep their names and lengths, and what they are called on', () => {
  // Also of what they inherit.
  const all = (prototype) =>
    prototype === Object.prototype
      ? {}
      : { ...all(Object.getPrototypeOf(prototype)), ...Object.getOwnPropertyDescriptors(prototype) };
  const shapes = () =>
    PROTOTYPES.map((prototype) =>
      Object.entries(all(prototype))
        .filter(([, { value }]) => typeof value === 'function')
        .map(([name, { value }]) => [name, value.name, value.length, outcomeWithoutThis(value)])
        .sort(),
    );
  const before = shapes();
  const doctor = start(QUIET);
  const during = shapes();
  doctor.stop();
  assert.deepEqual(during, before);
});

test('start() returns the same doctor until it is stopped', () => {
  const doctor = start(QUIET);
  assert.equal(start(), doctor);
  doctor.stop();
  doctor.stop();
  const next = start(QUIET);
  assert.notEqual(next, doctor);
  next.stop();
});

test('a doctor that was stopped stops no other, and still says what there is', () => {
  const before = start(QUIET);
  before.stop();
  const doctor = start({ ...QUIET, contention: false });
  before.stop();
  assert.equal(start(), doctor);
  const [a, b] = namedMutexes(2, { allowMainThread: true });
  for (const [outer, inner] of [
    [a, b],
    [b, a],
  ])
    outer.executeLockedSync(() => inner.executeLockedSync(() => {}));
  for (const each of [before, doctor]) assert.equal(each.report().lockOrder.length, 1);
  doctor.stop();
  assert.equal(doctor.report().lockOrder.length, 1);
});

test('bad options are refused before anything changes', () => {
  const before = descriptors();
  const bad = [
    [null, /"options" argument must be an object/],
    [{ lockOrder: 1 }, /"options\.lockOrder" argument must be a boolean/],
    [{ stuckMs: '5' }, /"options\.stuckMs" argument must be a number of milliseconds above 0/],
    [{ stuckMs: 0 }, /above 0/],
    [{ longHoldMs: Number.NaN }, /above 0/],
    [{ throwOnDeadlock: 'yes' }, /a boolean or "likely"/],
    [{ stuckms: 100 }, /There is no option 'stuckms'\. Did you mean 'stuckMs'\?/],
    [{ longHold: 5 }, /Did you mean 'longHoldMs'\?/],
  ];
  for (const [options, message] of bad) {
    assert.throws(() => start(options), { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE', message });
  }
  assert.deepEqual(descriptors(), before);
});

test('bad options are refused as well while it runs, and good ones leave it as it is', () => {
  const doctor = start(QUIET);
  assert.throws(() => start({ trace: 1 }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.equal(start({ trace: true }), doctor);
  doctor.stop();
});

test('the defaults of the options are those of the documentation', () => {
  const types = fs.readFileSync(path.join(__dirname, '..', '..', 'types', 'entries', 'doctor.d.ts'), 'utf8');
  const [, options] = /interface DoctorOptions \{(.*?)\n\}/s.exec(types);
  const told = Array.from(options.matchAll(/@default (\S+)\n +\*\/\n +(\w+)\?/g), ([, value, name]) => [
    name,
    JSON.parse(value),
  ]);
  assert.deepEqual(toOptions(), Object.fromEntries(told));
  const none = Object.fromEntries(told.map(([name]) => [name, undefined]));
  assert.deepEqual(toOptions(none), toOptions());
  const endless = { longHoldMs: Infinity, stuckMs: Infinity, likelyMs: Infinity };
  assert.deepEqual(toOptions(endless), { ...toOptions(), ...endless });
});

test('a method that the program has put in the place of its own while it ran stays after stop()', () => {
  const { tryLock, unlock } = Mutex.prototype;
  const doctor = start(QUIET);
  const mine = () => false;
  Mutex.prototype.tryLock = mine;
  doctor.stop();
  const after = [Mutex.prototype.tryLock, Mutex.prototype.unlock];
  Mutex.prototype.tryLock = tryLock;
  assert.deepEqual(after, [mine, unlock]);
});

test('a report without anything to report has all of its lists', () => {
  const doctor = start(QUIET);
  const report = doctor.report();
  doctor.stop();
  assert.deepEqual(report, {
    lockOrder: [],
    sameClass: [],
    deadlocks: [],
    contention: [],
    longHolds: [],
    neverReleased: [],
    leaks: [],
    stuck: [],
    waiting: [],
    threadsWithoutDoctor: [],
    bundles: [],
  });
});

test(
  'a report with something in each of its lists is as it is declared',
  needs('prompt ends', 'complete collection', 'async frames'),
  watched(async (_, threads) => {
    const misfits = declaredIn(path.join('entries', 'doctor.d.ts'));
    const options = { stuckMs: 20, longHoldMs: 1, leaks: true };
    await withDoctor(options, async (doctor) => {
      const collect = collector();
      const [a, b, stuck, free, kept] = namedMutexes(5, { allowMainThread: true });
      const [one, other] = [0, 4].map((offset) => new Mutex(new SharedArrayBuffer(8), offset, { name: 'one class' }));
      const [doctored, plain] = [
        await startActors(threads, 1, kept.buffer, { execArgv: ['--require', DOCTOR] }),
        await startActors(threads, 1, free.buffer),
      ].flat();
      for (const [outer, inner] of [
        [a, b],
        [b, a],
        [one, other],
      ]) {
        await outer.executeLocked(() => inner.executeLocked(() => {}));
      }
      a.lock();
      assert.throws(() => a.lock(), { code: 'ERR_LOCK_DEADLOCK' });
      a.unlock();
      (function leaks() {
        free.tryAcquire();
      })();
      const held = stuck.tryAcquire();
      const waits = stuck.lockAsync();
      await doctored.do((here, offset) => new here.sablock.Mutex(here.buffer, offset).tryLock(), kept.byteOffset);
      await doctored.terminate();
      await plain.do((here) => new here.sablock.Mutex(new SharedArrayBuffer(4)).tryLock());
      const unnamed = new Mutex(new SharedArrayBuffer(4));
      unnamed.tryLock();
      const next = unnamed.lockAsync();
      unnamed.unlock();
      await next;
      unnamed.unlock();
      const isFull = ({ bundles, ...lists }) => Object.values(lists).every((list) => list.length > 0);
      let report;
      do {
        collect();
        await sleep(5);
        report = doctor.report();
        assert.deepEqual(misfits(report, 'DoctorReport'), []);
      } while (!isFull(report));
      held.unlock();
      await waits;
      stuck.unlock();
    });
  }),
);

test(
  'a new start forgets what the last one found',
  needs('async frames'),
  watched(async () => {
    const [a, b] = namedMutexes(2);
    await withDoctor(QUIET, async (doctor) => {
      await a.executeLocked(() => b.executeLocked(() => {}));
      await b.executeLocked(() => a.executeLocked(() => {}));
      assert.equal(doctor.report().lockOrder.length, 1);
    });
    await withDoctor(QUIET, async (doctor) => assert.deepEqual(doctor.report().lockOrder, []));
  }),
);

test(
  'with contention alone no method is swapped, and waits are counted',
  watched(async () => {
    const before = descriptors();
    await withDoctor({ ...QUIET, lockOrder: false, deadlocks: false }, async (doctor) => {
      assert.deepEqual(descriptors(), before);
      const [a] = namedMutexes(1);
      await Promise.all([a.executeLocked(() => sleep(5)), a.executeLocked(() => {})]);
      const [{ waits, totalMs }] = about(doctor.report().contention, a);
      assert.equal(waits, 1);
      assert.ok(totalMs >= 3);
    });
  }),
);

const NOTHING = { ...QUIET, lockOrder: false, deadlocks: false, contention: false, trace: false, leaks: false };

/** By an option: a program in which it has something to report; the lists of the report that have something then. */
const ALONE = {
  async lockOrder() {
    const [a, b] = namedMutexes(2, { allowMainThread: true });
    for (const [outer, inner] of [
      [a, b],
      [b, a],
    ]) {
      outer.executeLockedSync(() => inner.executeLockedSync(() => {}));
    }
  },
  async deadlocks() {
    const [a] = namedMutexes(1, { allowMainThread: true });
    a.executeLockedSync(() => assert.throws(() => a.lock(), { code: 'ERR_LOCK_DEADLOCK' }));
  },
  async contention() {
    const [a] = namedMutexes(1);
    await Promise.all([a.executeLocked(() => sleep(5)), a.executeLocked(() => {})]);
  },
  async leaks(doctor) {
    const collect = collector();
    (function leaves() {
      namedMutexes(1)[0].tryAcquire();
    })();
    while (doctor.report().leaks.length === 0) {
      collect();
      await sleep(1);
    }
  },
};

for (const [option, run] of Object.entries(ALONE)) {
  test(
    `the option ${option} needs no other, and reports nothing of theirs; without it nothing is reported`,
    option === 'leaks' ? needs('complete collection') : {},
    watched(async () => {
      const full = ({ waiting, ...lists }) => Object.keys(lists).filter((name) => lists[name].length > 0);
      await withDoctor({ ...NOTHING, [option]: true }, async (doctor) => {
        await run(doctor);
        assert.deepEqual(full(doctor.report()), [option]);
      });
      if (option === 'leaks') return;
      await withDoctor(NOTHING, async (doctor) => {
        await run(doctor);
        assert.deepEqual(full(doctor.report()), []);
      });
    }),
  );
}

test(
  'without contention no wait is counted',
  watched(() =>
    withDoctor({ ...QUIET, contention: false }, async (doctor) => {
      const [a] = namedMutexes(1);
      await Promise.all([a.executeLocked(() => sleep(5)), a.executeLocked(() => {})]);
      assert.deepEqual(doctor.report().contention, []);
    }),
  ),
);

test(
  'what locks return, throw and reject with is as without the doctor',
  watched(() =>
    withDoctor(QUIET, async () => {
      const [a] = namedMutexes(1, { allowMainThread: true });
      assert.equal(a.lock(), true);
      assert.throws(() => a.lock(), { code: 'ERR_LOCK_DEADLOCK' });
      assert.equal(a.tryLock(), false);
      assert.equal(a.unlock(), undefined);
      assert.throws(() => a.unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
      const guard = a.acquire();
      assert.ok(guard instanceof LockGuard);
      assert.equal(guard.unlock(), true);
      assert.equal(guard.unlock(), false);
      assert.equal(
        a.executeLockedSync(() => 7),
        7,
      );
      assert.throws(() => a.executeLockedSync(() => Promise.resolve()), TypeError);
      assert.equal(await a.executeLocked(() => 8), 8);
      assert.equal(await a.executeLocked(async () => 9), 9);
      await assert.rejects(
        a.executeLocked(() => Promise.reject(new RangeError('mine'))),
        RangeError,
      );
      await assert.rejects(a.executeLocked(5), { code: 'ERR_INVALID_ARG_TYPE' });
      await assert.rejects(a.lockAsync('soon'), { code: 'ERR_INVALID_ARG_TYPE' });
      assert.throws(() => Mutex.prototype.lock.call({}), TypeError);
      assert.equal(a.isLocked, false);
    }),
  ),
);

/** Results of functions that are thenable in their own ways; each notes in `log` what is read and called of it. */
const ODD = {
  'a promise with a then of its own': (log) => {
    const promise = Promise.resolve(1);
    // biome-ignore lint/suspicious/noThenProperty: that it is called is the subject.
    promise.then = (...args) => {
      log.push('then');
      return Promise.resolve(2).then(...args);
    };
    return promise;
  },
  'a promise with a constructor of its own': (log) =>
    Object.defineProperty(Promise.resolve(1), 'constructor', {
      get() {
        log.push('constructor');
        return Promise;
      },
    }),
  'a promise of a subclass': (log) => {
    class Own extends Promise {
      // biome-ignore lint/suspicious/noThenProperty: that it is called is the subject.
      then(...args) {
        log.push('then');
        return super.then(...args);
      }
    }
    return Own.resolve(3);
  },
  'a thenable': (log) => ({
    // biome-ignore lint/suspicious/noThenProperty: that it is called is the subject.
    get then() {
      log.push('then');
      return (resolve) => resolve(4);
    },
  }),
};

for (const [what, make] of Object.entries(ODD)) {
  test(
    `${what} that a function returns is awaited as without the doctor`,
    watched(async () => {
      const outcomes = async () => {
        const [mutex] = namedMutexes(1);
        const log = [];
        const results = [
          await mutex.executeLocked(() => make(log)),
          await sablock.locks.request(mutex.name, () => make(log)),
        ];
        return { results, log };
      };
      const before = await outcomes();
      await withDoctor(QUIET, async () => assert.deepEqual(await outcomes(), before));
    }),
  );
}

test(
  'each way of holding is seen while it lasts, and not afterwards',
  watched(async () => {
    let doctor = start(LOOKING);
    try {
      const options = { allowMainThread: true };
      const [a] = namedMutexes(1, options);
      const lock = new RwLock(new SharedArrayBuffer(8), 0, { ...options, name: `${a.name} rw` });
      const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(4)), 0, 4, {
        ...options,
        name: `${a.name} table`,
      });
      const held = (of) => of.report().longHolds.map((hold) => hold.lock.name);
      const using = (guard) => () => guard.unlock();
      const ways = [
        [a, () => a.lock() && (() => a.unlock())],
        [a, () => a.tryLock() && (() => a.unlock())],
        [a, async () => (await a.lockAsync()) && (() => a.unlock())],
        [a, () => using(a.acquire())],
        [a, () => using(a.tryAcquire())],
        [a, async () => using(await a.acquireAsync())],
        [a, () => using(lockAll([a]))],
        [lock, () => lock.read.lock() && (() => lock.read.unlock())],
        [lock, () => using(lock.read.acquire())],
        [lock, async () => (await lock.write.lockAsync()) && (() => lock.write.unlock())],
        [lock, () => using(lock.write.acquire())],
        [table, () => table.lock(2) && (() => table.unlock(2))],
        [table, async () => (await table.lockAsync(3)) && (() => table.unlock(3))],
        [table, () => using(table.acquire(1))],
      ];
      for (const [index, [{ name }, take]] of ways.entries()) {
        const release = await take();
        // It is seen by the thread that looks every few milliseconds.
        while (!held(doctor).includes(name)) await sleep(2);
        release();
        doctor.stop();
        doctor = start(LOOKING);
        await sleep(20);
        assert.ok(!held(doctor).includes(name), `way ${index} is still held`);
      }
    } finally {
      doctor.stop();
    }
  }),
);

test(
  'a guard that is collected while it holds is a leak',
  needs('complete collection'),
  watched(() =>
    withDoctor({ ...QUIET, leaks: true }, async (doctor, _) => {
      require('node:v8').setFlagsFromString('--expose-gc');
      const collect = require('node:vm').runInNewContext('gc');
      const [a, b] = namedMutexes(2, { allowMainThread: true });
      (function leaves() {
        a.acquire();
        b.acquire().unlock();
      })();
      for (let round = 0; round < 200 && about(doctor.report().leaks, a).length === 0; round++) {
        collect();
        await sleep(5);
      }
      const [{ place }] = about(doctor.report().leaks, a);
      assert.match(place.stack[0], /leaves \(.*start-stop\.test\.js/);
      assert.deepEqual(about(doctor.report().leaks, b), []);
    }),
  ),
);

test(
  'so is one that had to wait, though the thread waits for nothing since',
  needs('complete collection'),
  watched(() =>
    withDoctor({ ...QUIET, leaks: true }, async (doctor) => {
      require('node:v8').setFlagsFromString('--expose-gc');
      const collect = require('node:vm').runInNewContext('gc');
      const [a] = namedMutexes(1);
      await (async function leaves() {
        const first = a.tryAcquire();
        const waiting = a.acquireAsync();
        first.unlock();
        await waiting;
      })();
      for (let round = 0; round < 200 && about(doctor.report().leaks, a).length === 0; round++) {
        collect();
        await sleep(5);
      }
      const [{ place }] = about(doctor.report().leaks, a);
      assert.match(place.stack[0], /leaves \(.*start-stop\.test\.js/);
    }),
  ),
);

for (const [what, take] of Object.entries({
  'lockAll()': (locks) => lockAll(locks),
  'lockAllAsync()': (locks) => lockAllAsync(locks),
  async 'lockAllAsync() that had to wait'(locks) {
    const first = locks[0].tryAcquire();
    const waiting = lockAllAsync(locks);
    first.unlock();
    await waiting;
  },
})) {
  test(
    `so is that of ${what}, with each of its locks`,
    needs('complete collection'),
    watched(() =>
      withDoctor({ ...QUIET, leaks: true }, async (doctor) => {
        const collect = collector();
        const mutexes = namedMutexes(2, { allowMainThread: true });
        const others = namedMutexes(2, { allowMainThread: true });
        await (async function leaves() {
          await take(mutexes);
          lockAll(others).unlock();
        })();
        const leaks = () => mutexes.map((mutex) => about(doctor.report().leaks, mutex));
        while (leaks().some(({ length }) => length === 0)) {
          collect();
          await sleep(1);
        }
        for (const [{ place }] of leaks()) assert.match(place.stack[0], /start-stop\.test\.js/);
        for (const mutex of others) assert.deepEqual(about(doctor.report().leaks, mutex), []);
      }),
    ),
  );
}
