// The doctor reports what waits and what is stuck, and leaves the rest as it is.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { DOCTOR, about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const sablock = require('../../index.js');

const { Barrier, Condition, Exchanger, Latch, LockTable, Mutex, RwLock, Semaphore } = sablock;

/** Long enough that a thread on a slow machine can say where it holds. */
const STUCK_MS = limit(60);
const STUCK = { stuckMs: STUCK_MS, longHoldMs: Infinity, likelyMs: Infinity };
const QUIET = { stuckMs: Infinity, longHoldMs: Infinity };
const memory = (bytes) => new SharedArrayBuffer(bytes);

test(
  'a pool whose permits do not come back is stuck, with the place of each permit',
  watched(() =>
    withDoctor(STUCK, async (doctor) => {
      const pool = new Semaphore(memory(4), 0, 2, { name: 'hung pool' });
      const held = [await pool.acquireAsync(), pool.tryAcquire()];
      const next = pool.acquireAsync();
      const stuck = () => about(doctor.report().stuck, pool);
      while (stuck().length === 0) await sleep(5);
      const [{ holders, waiters }] = stuck();
      assert.equal(holders.length, 2);
      for (const { stack } of [...holders, ...waiters]) assert.match(stack[0], /waiting\.test\.js/);
      for (const permits of held) permits.release();
      (await next).release();
    }),
  ),
);

test(
  'of several who hold at once it is the others who hold on once one gives back, however it took and gives',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const pool = new Semaphore(memory(4), 0, 4, { name: 'pool', allowMainThread: true });
      const { read, write } = new RwLock(memory(RwLock.BYTES), 0, { name: 'many', allowMainThread: true });
      const holdersOf = async (lock, wait) => {
        const [{ holders }] = about(doctor.report().waiting, lock);
        wait.abort();
        return holders.map(({ stack }) => stack[0].split(' ')[0]).sort();
      };
      const wanting = (verb, ...args) => {
        const wait = new AbortController();
        verb(...args, { signal: wait.signal }).catch(() => {});
        return wait;
      };
      const all = () => wanting(pool.acquireAsync.bind(pool), 4);
      const alone = () => wanting(write.lockAsync.bind(write));

      const first = () => pool.acquire();
      const second = () => pool.tryAcquire();
      const third = () => pool.acquireAsync();
      const permits = [first(), second(), await third()];
      // Another is granted after a wait.
      const full = pool.tryAcquire();
      async function fourth() {
        return await pool.acquireAsync();
      }
      const waits = fourth();
      full.release();
      permits.push(await waits);
      permits[2].release();
      permits[0].release();
      assert.deepEqual(await holdersOf(pool, all()), ['fourth', 'second']);
      permits[3].release();
      assert.deepEqual(await holdersOf(pool, all()), ['second']);
      let goOn;
      async function executes() {
        await pool.execute(() => new Promise((resolve) => (goOn = resolve)));
      }
      const executed = executes();
      while (goOn === undefined) await sleep(1);
      permits[1].release();
      assert.deepEqual(await holdersOf(pool, all()), ['executes']);
      goOn();
      await executed;

      function guarded() {
        return read.acquire();
      }
      function raw() {
        read.lock();
      }
      const guard = guarded();
      raw();
      guard.unlock();
      assert.deepEqual(await holdersOf({ name: 'many' }, alone()), ['raw']);
      const late = guarded();
      read.unlock();
      assert.deepEqual(await holdersOf({ name: 'many' }, alone()), ['guarded']);
      late.unlock();
    }),
  ),
);

test(
  'a pool whose permits go round is not stuck, though somebody always waits',
  watched(() =>
    withDoctor({ ...STUCK, stuckMs: 8 * STUCK_MS }, async (doctor) => {
      const pool = new Semaphore(memory(4), 0, 1, { name: 'busy pool' });
      const until = performance.now() + 24 * STUCK_MS;
      const work = async () => {
        while (performance.now() < until) await pool.execute(() => sleep(5));
      };
      await Promise.all([work(), work(), work()]);
      assert.deepEqual(about(doctor.report().stuck, pool), []);
    }),
  ),
);

test(
  'what no lock explains waits, and is not stuck',
  watched(() =>
    withDoctor(STUCK, async (doctor) => {
      const latch = new Latch(memory(Latch.BYTES), 0, { name: 'rest' });
      latch.add();
      const [mutex] = namedMutexes(1);
      const condition = new Condition(memory(4), 0, { name: 'news' });
      await mutex.lockAsync();
      const exchanger = new Exchanger(memory(8), 0, { name: 'place' });
      const barrier = new Barrier(memory(Barrier.BYTES), 0, 2, { name: 'start' });
      const events = ['ManualResetEvent', 'AutoResetEvent'].map(
        (type) => new sablock[type](memory(sablock[type].BYTES), 0, { name: type }),
      );
      const waits = [latch.waitAsync(), condition.waitAsync(mutex), exchanger.exchangeAsync(1), barrier.waitAsync()];
      waits.push(...events.map((event) => event.waitAsync()));
      await sleep(3 * STUCK_MS);
      const { stuck, waiting } = doctor.report();
      for (const lock of [latch, condition, exchanger, barrier, ...events]) {
        assert.deepEqual(about(stuck, lock), []);
        const [{ waiter, waitedMs, holders, outside }] = about(waiting, lock);
        assert.match(waiter.stack[0], /waiting\.test\.js/);
        assert.ok(waitedMs >= 2 * STUCK_MS);
        assert.deepEqual([holders, outside], [[], null]);
      }
      latch.countDown();
      for (const event of events) event.set();
      await barrier.waitAsync();
      while (condition.notifyOne() === 0) await sleep(1);
      assert.equal(await exchanger.exchangeAsync(2), 1);
      await Promise.all(waits);
      mutex.unlock();
      assert.deepEqual(doctor.report().waiting, []);
    }),
  ),
);

test(
  'wait() and waitAsync() are waits too, each with its place',
  needs('prompt ends'),
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const shared = memory(32);
      const integers = new Int32Array(shared);
      const worker = threads.start('doctor-steps', { buffer: shared, names: [], hasDoctor: true });
      await worker.call('nothing');
      const blocked = worker.call('waitAt', 5);
      const { waitAsync } = sablock;
      const waits = [
        waitAsync(integers, 1, 0),
        waitAsync(new BigInt64Array(shared, 8), 1, 0n),
        waitAsync(integers, 0, 0, 60_000),
      ];
      const seen = () =>
        doctor
          .report()
          .waiting.map(({ lock, waiter }) => [lock.byteOffset, waiter.threadId])
          .sort(([a], [b]) => a - b);
      const expected = [
        [0, 0],
        [4, 0],
        [16, 0],
        [20, worker.threadId],
      ];
      while (seen().length < expected.length) await sleep(5);
      assert.deepEqual(seen(), expected);
      for (const { lock, waiter } of doctor.report().waiting) {
        assert.equal(lock.kind, 'wait()');
        assert.match(waiter.stack[0], /waiting\.test\.js|doctor-steps\.js/);
      }
      // The doctor knows of a wait before the thread is in the queue.
      for (const index of [0, 1, 5]) while (sablock.notify(integers, index) === 0) await sleep(1);
      sablock.notify(new BigInt64Array(shared, 8), 1);
      assert.equal(await blocked, 'ok');
      assert.deepEqual(await Promise.all(waits.map(({ value }) => value)), ['ok', 'ok', 'ok']);
      assert.deepEqual(doctor.report().waiting, []);
    }),
  ),
);

test(
  'every hold has its place, the hundredth too',
  needs('async frames'),
  watched(() =>
    withDoctor({ ...QUIET, stuckMs: STUCK_MS }, async (doctor) => {
      const [mutex] = namedMutexes(1);
      for (let round = 0; round < 100; round++) {
        await mutex.lockAsync();
        mutex.unlock();
      }
      const forgets = () => mutex.lockAsync();
      await forgets();
      const wait = mutex.lockAsync();
      while (about(doctor.report().stuck, mutex).length === 0) await sleep(5);
      assert.match(about(doctor.report().stuck, mutex)[0].holders[0].stack[0], /^forgets /);
      mutex.unlock();
      await wait;
      mutex.unlock();
    }),
  ),
);

test(
  'of names that were used once nothing stays on the heap',
  watched(() => {
    const program = `
      const { locks } = require(${JSON.stringify(path.join(__dirname, '..', '..'))});
      const use = async (count, prefix) => {
        for (let index = 0; index < count; index++) await locks.request(prefix + index, () => {});
        gc();
        return process.memoryUsage().heapUsed;
      };
      use(10_000, 'before').then(async (before) => console.log((await use(20_000, 'after')) - before));
    `;
    const args = ['--expose-gc', '--require', DOCTOR, '--eval', program];
    const grown = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    assert.ok(grown <= 100 * 20_000, `${grown} bytes`);
  }),
);

test(
  'what is asked for after a wait is of its own place, and of none if no code of the program asks',
  needs('async frames'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [first, second, third] = namedMutexes(3);
      first.tryLock();
      setImmediate(() => first.unlock());
      await first.lockAsync();
      const guard = await (function asksForBoth() {
        return sablock.lockAllAsync([second]);
      })();
      third.tryLock();
      setTimeout(third.lockAsync.bind(third), 0);
      const wait = second.lockAsync();
      while (third.inspect().waiters.length === 0) await sleep(1);
      const { waiting } = doctor.report();
      const [[ofSecond], [ofThird]] = [second, third].map((lock) => about(waiting, lock));
      assert.match(ofSecond.holders[0].stack[0], /^asksForBoth /);
      assert.deepEqual(ofThird.waiter.stack, []);
      guard.unlock();
      await wait;
      second.unlock();
      third.unlock();
      first.unlock();
    }),
  ),
);

for (const asked of ['asked alone', ['asked first', 'asked second']]) {
  test(
    `what no code of the program asks for is of no place, also after a request for ${[asked].flat().length} of names`,
    needs('async frames'),
    watched(() =>
      withDoctor(QUIET, async (doctor) => {
        const [mutex] = namedMutexes(1);
        await sablock.locks.request(asked, () => {});
        mutex.tryLock();
        setTimeout(mutex.lockAsync.bind(mutex), 0);
        while (mutex.inspect().waiters.length === 0) await sleep(1);
        const [{ waiter }] = about(doctor.report().waiting, mutex);
        assert.deepEqual(waiter.stack, []);
        mutex.unlock();
        while (!mutex.isHeldByThisThread) await sleep(1);
        mutex.unlock();
      }),
    ),
  );
}

test(
  'options are read once, methods are no constructors, and Promise is as it was',
  watched(() => {
    const { then } = Promise.prototype;
    const { lockAsync } = Mutex.prototype;
    return withDoctor(QUIET, async () => {
      assert.equal(Promise.prototype.then, then);
      assert.notEqual(Mutex.prototype.lockAsync, lockAsync);
      for (const name of Object.getOwnPropertyNames(Mutex.prototype).filter((each) => each !== 'constructor')) {
        const { value } = Object.getOwnPropertyDescriptor(Mutex.prototype, name);
        if (value !== undefined) assert.throws(() => Reflect.construct(value, []), TypeError);
      }
      let reads = 0;
      const options = {
        get timeout() {
          reads += 1;
          return 1000;
        },
      };
      const [mutex] = namedMutexes(1);
      await mutex.lockAsync(options);
      assert.equal(reads, 1);
      mutex.unlock();
      await assert.rejects(mutex.lockAsync({ timeout: 'soon' }));
      await assert.rejects(mutex.executeLocked(1));
      const table = new LockTable(memory(16), 0, 4, { allowMainThread: true });
      let indices = 0;
      const index = { valueOf: () => indices++ };
      for (const lock of ['lock', 'tryLock', 'lockAsync']) {
        await assert.rejects(async () => table[lock](index), { code: 'ERR_INVALID_ARG_TYPE' });
      }
      assert.equal(indices, 0);
      const results = [];
      class Sub extends Promise {
        // biome-ignore lint/suspicious/noThenProperty: that it is read is the subject.
        get then() {
          results.push('then');
          return super.then;
        }
      }
      await mutex.executeLocked(() => Sub.resolve(1));
      assert.equal(results.length, 2);
      const condition = new Condition(memory(4));
      await mutex.lockAsync();
      condition.waitAsync(mutex);
      while (condition.notifyOne() === 0) await sleep(1);
      while (!mutex.isHeldByThisThread) await sleep(1);
      mutex.unlock();
    });
  }),
);

test(
  'what lockAll() took and gave back is no long hold where only contention is counted',
  watched(() =>
    withDoctor({ lockOrder: false, deadlocks: false, stuckMs: Infinity, longHoldMs: 20 }, async (doctor) => {
      const [first, second, held] = namedMutexes(3, { allowMainThread: true });
      sablock.lockAll([first, second]).unlock();
      held.lock();
      const next = held.lockAsync();
      // The watchdog has seen this one for so long that it would have seen the others.
      while (about(doctor.report().longHolds, held).length === 0) await sleep(5);
      held.unlock();
      await next;
      held.unlock();
      for (const lock of [first, second]) assert.deepEqual(about(doctor.report().longHolds, lock), []);
    }),
  ),
);

/** Ways in which a wait for a condition ends: what is passed to it, and what ends it. */
const ENDS_OF_WAIT = {
  'is notified': (condition) => [{}, () => condition.notifyAll()],
  'is over': () => [{ timeout: 1 }, () => {}],
  'is aborted'() {
    const controller = new AbortController();
    return [{ signal: controller.signal }, () => controller.abort()];
  },
};
/** Ways to hold a mutex for it. */
const WAYS_TO_HOLD = {
  'its function': (mutex, body) => mutex.executeLocked(body),
  async 'a guard'(mutex, body) {
    const guard = await mutex.acquireAsync();
    await body();
    guard.unlock();
  },
  async 'the thread'(mutex, body) {
    await mutex.lockAsync();
    await body();
    mutex.unlock();
  },
};

for (const [how, endOf] of Object.entries(ENDS_OF_WAIT)) {
  for (const [whose, hold] of Object.entries(WAYS_TO_HOLD)) {
    test(
      `a wait for a condition that ${how} holds the mutex for ${whose} once it is locked again, and not before`,
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const [mutex] = namedMutexes(1);
          const condition = new Condition(memory(4));
          const [options, end] = endOf(condition);
          const held = () => about(doctor.report().waiting, mutex).map(({ holders }) => holders.length);
          let isTaken = false;
          let seen;
          const waiting = hold(mutex, async () => {
            const over = condition.waitAsync(mutex, options).catch(() => {});
            // At once: it may be over in the next turn.
            isTaken = mutex.tryLock();
            await over;
            const next = mutex.lockAsync();
            seen = held();
            next.then(() => mutex.unlock());
          });
          while (!isTaken) await sleep(1);
          end();
          while (mutex.inspect().waiters.length === 0) await sleep(1);
          assert.deepEqual(held(), [1], 'another holds it');
          mutex.unlock();
          await waiting;
          assert.deepEqual(seen, [1], 'it is locked again');
          while (mutex.isLocked) await sleep(1);
          const guard = mutex.tryAcquire();
          const last = mutex.lockAsync();
          assert.deepEqual(held(), [1], 'it is unlocked');
          guard.unlock();
          await last;
          mutex.unlock();
        }),
      ),
    );
  }
}

test(
  'a name of any characters is in the report as it is',
  watched(() =>
    withDoctor({}, async (doctor) => {
      const name = 'quote " backslash \\ line \n first \u0001 last \u001f end \u2028';
      const mutex = new Mutex(new SharedArrayBuffer(4), 0, { name });
      mutex.tryLock();
      const wait = mutex.lockAsync();
      assert.deepEqual(
        doctor.report().waiting.map(({ lock }) => lock.name),
        [name],
      );
      mutex.unlock();
      await wait;
      mutex.unlock();
    }),
  ),
);

test(
  'contention counts the waits of each place, and their milliseconds together and at most',
  watched(() =>
    withDoctor({}, async (doctor) => {
      const mutex = new Mutex(new SharedArrayBuffer(4), 0, { name: 'contended twice' });
      for (let round = 0; round < 2; round += 1) {
        // Asked for by the same frames each time.
        await sleep(1);
        mutex.tryLock();
        const wait = mutex.lockAsync();
        await sleep(40);
        mutex.unlock();
        await wait;
        mutex.unlock();
      }
      const [{ waits, totalMs, maxMs, waiters }] = about(doctor.report().contention, mutex);
      assert.deepEqual([waits, waiters.map((waiter) => waiter.waits)], [2, [2]]);
      assert.ok(totalMs >= 70 && maxMs >= 35 && maxMs < totalMs, `${totalMs} ms, ${maxMs} ms`);
      assert.equal(waiters[0].totalMs, totalMs);
    }),
  ),
);

const MAY = { allowMainThread: true };

/** By the kind that reports name: `hold` takes it and returns what frees it, and `wait` waits for it. */
const COUNTED = {
  Mutex(options) {
    const mutex = new Mutex(memory(4), 0, options);
    return { hold: () => mutex.tryLock() && (() => mutex.unlock()), wait: () => mutex.lockAsync() };
  },
  RwLock(options) {
    const { read, write } = new RwLock(memory(RwLock.BYTES), 0, options);
    return { hold: () => read.tryLock() && (() => read.unlock()), wait: () => write.lockAsync() };
  },
  LockTable(options) {
    const table = new LockTable(memory(8), 0, 2, options);
    return { hold: () => table.tryLock(1) && (() => table.unlock(1)), wait: () => table.lockAsync(1) };
  },
  Semaphore(options) {
    const pool = new Semaphore(memory(4), 0, 1, options);
    return {
      hold() {
        const permit = pool.tryAcquire();
        return () => permit.release();
      },
      wait: () => pool.acquireAsync(),
    };
  },
  Once(options) {
    const once = new sablock.Once(memory(4), 0, options);
    return {
      async hold() {
        let free;
        once.run(() => new Promise((resolve) => (free = resolve)));
        while (free === undefined) await sleep(1);
        return free;
      },
      wait: () => once.run(() => {}),
    };
  },
  HeldLock({ name }) {
    return {
      async hold() {
        const held = await sablock.locks.acquireAsync(name);
        return () => held.unlock();
      },
      wait: () => sablock.locks.acquireAsync(name),
    };
  },
};

/** Kinds that are waited for until something happens: nobody holds them, so the time is not counted. */
const UNCOUNTED = {
  Latch(options) {
    const latch = new Latch(memory(Latch.BYTES), 0, options);
    latch.add();
    return { hold: () => () => latch.countDown(), wait: () => latch.waitAsync() };
  },
  Barrier(options) {
    const barrier = new Barrier(memory(Barrier.BYTES), 0, 2, options);
    return { hold: () => () => barrier.waitAsync(), wait: () => barrier.waitAsync() };
  },
  ManualResetEvent(options) {
    const event = new sablock.ManualResetEvent(memory(sablock.ManualResetEvent.BYTES), 0, options);
    return { hold: () => () => event.set(), wait: () => event.waitAsync() };
  },
  Exchanger(options) {
    const exchanger = new Exchanger(memory(8), 0, options);
    return { hold: () => () => exchanger.exchangeAsync(1), wait: () => exchanger.exchangeAsync(2) };
  },
};

for (const [kinds, isCounted] of [
  [COUNTED, true],
  [UNCOUNTED, false],
]) {
  for (const [kind, make] of Object.entries(kinds)) {
    test(
      `a wait of the kind ${kind} is shown, and ${isCounted ? 'counted' : 'not counted'}`,
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const name = `counted ${process.pid} ${kind}`;
          const { hold, wait } = make({ ...MAY, name });
          const free = await hold();
          const waits = wait();
          const shown = about(doctor.report().waiting, { name }).map(({ lock }) => lock.kind);
          assert.deepEqual(shown, [kind]);
          (function frees() {
            free();
          })();
          await waits;
          const counts = about(doctor.report().contention, { name });
          assert.deepEqual(
            counts.map((entry) => [entry.lock.kind, entry.waits]),
            isCounted ? [[kind, 1]] : [],
          );
          // A once that has run is no lock that is unlocked.
          if (kind !== 'Once') for (const { unlockers } of counts) assert.equal(unlockers.length, 1);
        }),
      ),
    );
  }
}
