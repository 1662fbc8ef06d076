// The doctor's memory of a thread's code and locks, and how long it lasts.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Script } = require('node:vm');
const { Mutex, lockAll } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { collector } = require('../helpers/collect.js');
const { DOCTOR, about, createLocks, namedMutexes, withDoctor } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const QUIET = { lockOrder: false, stuckMs: Infinity, longHoldMs: Infinity };
/** No more places are kept of a thread: `MOST_SITES` in lib/doctor/sites.js. */
const MOST = 20_000;
const AT_ONCE = 100;

/** The places of those who hold the mutex, as the report of one who waits says. */
async function placesOf(doctor, mutex) {
  const wait = new AbortController();
  const waits = mutex.lockAsync({ signal: wait.signal });
  const [{ holders }] = about(doctor.report().waiting, mutex);
  wait.abort();
  await assert.rejects(waits, { name: 'AbortError' });
  return holders.map(({ stack }) => stack[0] ?? 'nowhere');
}

test(
  'code that is compiled at two lines of the program has two places',
  // Only it tells where code was compiled.
  needs("V8's flags"),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const takes = [
        new Function('mutex', 'return mutex.tryLock();'),
        new Function('mutex', 'return mutex.tryLock();'),
      ];
      const mutexes = createLocks(2);
      // From the same place of the program.
      for (const [index, mutex] of mutexes.entries()) takes[index](mutex);
      const places = [];
      for (const mutex of mutexes) {
        places.push(await placesOf(doctor, mutex));
        mutex.unlock();
      }
      const lines = places.map(([place]) => Number(/places\.test\.js:(\d+):/.exec(place)[1]));
      assert.equal(lines[1], lines[0] + 1, `${places}`);
    }),
  ),
);

test(
  'the places of a thread are bounded: those beyond are none, and those from before are known as ever',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const source = `[\n${'(mutex) => mutex.tryLock(),\n'.repeat(MOST + 1)}]`;
      const takes = new Script(source, { filename: '/app/many.js' }).runInThisContext();
      // Always from the same place: all that is on the stack makes one.
      const takeBy = (index, mutex) => new Promise((resolve) => queueMicrotask(() => resolve(takes[index](mutex))));
      const mutexes = createLocks(AT_ONCE);
      // The places of what is held are read when somebody asks.
      for (let from = 0; from < takes.length; from += AT_ONCE) {
        const count = Math.min(AT_ONCE, takes.length - from);
        await Promise.all(Array.from({ length: count }, (_, index) => takeBy(from + index, mutexes[index])));
        doctor.report();
        for (let index = 0; index < count; index++) mutexes[index].unlock();
      }
      const [first] = mutexes;
      for (const [index, place] of [
        [0, '/app/many.js:2:'],
        [MOST, 'nowhere'],
      ]) {
        await takeBy(index, first);
        const [found] = await placesOf(doctor, first);
        first.unlock();
        assert.ok(found.includes(place), found);
      }
    }),
  ),
);

test(
  'others are told where a thread holds, however much it took in a turn, and however often',
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const many = 200;
      const buffer = new SharedArrayBuffer(4 * many);
      const options = { execArgv: ['--require', DOCTOR] };
      const [peer] = await startActors(threads, 1, buffer, options);
      const last = new Mutex(buffer, 4 * (many - 1), { name: 'last' });
      for (let turn = 0; turn < 2; turn++) {
        await peer.do(async (here, many) => {
          here.mutexes = Array.from({ length: many }, (_, index) => new here.sablock.Mutex(here.buffer, 4 * index));
          for (const mutex of here.mutexes) mutex.lock();
          await null;
        }, many);
        const [place] = await placesOf(doctor, last);
        assert.notEqual(place, 'nowhere', `turn ${turn}`);
        await peer.do((here) => {
          for (const mutex of here.mutexes) mutex.unlock();
        });
      }
    }),
  ),
);

/** Formatters of stacks that programs have, whose result is no line for each frame. */
const FORMATTERS = {
  'returns the frames': (_, frames) => frames,
  'returns nothing': () => undefined,
  throws() {
    throw new RangeError('mine');
  },
  'leaves out the frames of Node.js, and the first one': (error, frames) =>
    [String(error), ...frames.slice(1).filter((frame) => !frame.getFileName()?.startsWith('node:'))]
      .map((frame) => `    at ${frame}`)
      .join('\n'),
  'adds a line to each frame': (error, frames) =>
    [String(error), ...frames.flatMap((frame) => [`    at before (/a.js:1:1)`, `    at ${frame}`])].join('\n'),
};

for (const [what, prepare] of Object.entries(FORMATTERS)) {
  for (const descriptor of [{ value: prepare, writable: true }, { get: () => prepare }]) {
    test(
      `a formatter that ${what}, ${descriptor.get ? 'an accessor' : 'a value'}, keeps no place from being known, and stays as it is`,
      needs("V8's flags"),
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const [mutex] = createLocks(1);
          const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
          Object.defineProperty(Error, 'prepareStackTrace', { ...descriptor, configurable: true });
          const during = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
          let places;
          let after;
          try {
            (function takes() {
              mutex.tryLock();
            })();
            places = await placesOf(doctor, mutex);
            after = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
          } finally {
            delete Error.prepareStackTrace;
            if (before !== undefined) Object.defineProperty(Error, 'prepareStackTrace', before);
          }
          assert.match(places.join(), /^takes \(.*places\.test\.js:\d+:\d+\)$/);
          assert.deepEqual(after, during);
          mutex.unlock();
        }),
      ),
    );
  }
}

test(
  'a place is that of all its frames: what two functions do by a third one is of two places',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [mutex] = namedMutexes(1);
      const locksIt = () => mutex.lockAsync();
      const one = () => [locksIt()][0];
      const other = () => [locksIt()][0];
      mutex.tryLock();
      const waits = [one(), other()];
      const callers = about(doctor.report().waiting, mutex).map(({ waiter }) => waiter.stack[1].split(' ')[0]);
      assert.deepEqual(callers.sort(), ['one', 'other']);
      mutex.unlock();
      for (const wait of waits) {
        await wait;
        mutex.unlock();
      }
      const [{ waiters }] = about(doctor.report().contention, mutex);
      assert.deepEqual(
        waiters.map((waiter) => waiter.waits),
        [1, 1],
      );
    }),
  ),
);

/** Waits for a mutex in this memory, which is free afterwards. */
async function contend(buffer) {
  const mutex = new Mutex(buffer, 0);
  mutex.tryLock();
  const next = mutex.lockAsync();
  mutex.unlock();
  await next;
  mutex.unlock();
}

test(
  'what was counted for locks whose memory is gone is kept as one, and nothing else of them',
  needs('complete collection'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      // More than are told of at a time: `MOST_GONE` in lib/doctor/locks.js.
      const rounds = 1500;
      const collect = collector();
      const [kept] = namedMutexes(1);
      kept.tryLock();
      const next = kept.lockAsync();
      for (let round = 0; round < rounds; round++) await contend(new SharedArrayBuffer(4));
      kept.unlock();
      await next;
      let counts;
      do {
        collect();
        await nextTurn();
        counts = doctor.report().contention;
      } while (!counts.some(({ lock }) => lock.kind === 'Locks used before'));
      assert.ok(counts.length < rounds, `${counts.length} locks`);
      const waits = counts.reduce((sum, { waits }) => sum + waits, 0);
      assert.equal(waits, rounds + 1);
      assert.equal(about(counts, kept)[0].waits, 1);
      kept.unlock();
    }),
  ),
);

test(
  'memory that a doctor before knew, and that goes, takes nothing from the next',
  needs('complete collection'),
  watched(async () => {
    const rounds = 2200;
    const collect = collector();
    let gone = 0;
    const registry = new FinalizationRegistry(() => {
      gone += 1;
    });
    let buffers = Array.from({ length: rounds }, () => new SharedArrayBuffer(4));
    for (const buffer of buffers) registry.register(buffer);
    // A method that code of the program keeps keeps that doctor.
    let kept;
    await withDoctor(QUIET, async () => {
      kept = Mutex.prototype.tryLock;
      for (const buffer of buffers) await contend(buffer);
    });
    assert.notEqual(kept, Mutex.prototype.tryLock);
    buffers = null;
    await withDoctor(QUIET, async (doctor) => {
      const here = Array.from({ length: rounds }, () => new SharedArrayBuffer(4));
      for (const buffer of here) await contend(buffer);
      // More than are told of at a time; the last may stay on the stack.
      while (gone < rounds / 2) {
        collect();
        await nextTurn();
      }
      await nextTurn();
      const { contention } = doctor.report();
      assert.deepEqual(
        [contention.length, new Set(contention.map(({ lock }) => lock.kind))],
        [rounds, new Set(['Mutex'])],
      );
      assert.equal(kept.call(new Mutex(here[0], 0)), true);
    });
  }),
);

/** Collects until that holds. */
async function collectUntil(isSo) {
  const collect = collector();
  while (!isSo()) {
    collect();
    await nextTurn();
  }
}

for (const [how, take] of Object.entries({
  'by itself': (mutex) => mutex.tryLock(),
  'with others': (mutex) => lockAll([mutex]),
})) {
  test(
    `a lock that was taken ${how}, and is gone with its memory, is held no more`,
    needs('complete collection'),
    watched(() =>
      withDoctor(QUIET, async (doctor) => {
        const { holds } = thread.doctor;
        (function leaves() {
          for (let round = 0; round < 50; round++) {
            take(new Mutex(new SharedArrayBuffer(4), 0, { allowMainThread: true }));
          }
        })();
        assert.equal(holds.active.length, 50);
        const kept = createLocks(1)[0];
        kept.tryLock();
        // The last may stay on the stack.
        await collectUntil(() => holds.active.length < 5);
        assert.equal(
          holds.slots.filter((number, index) => number !== 0 && index % 6 === 0).length,
          holds.active.length + 1,
        );
        const [place] = await placesOf(doctor, { name: kept.name, lockAsync: kept.lockAsync.bind(kept) });
        assert.match(place, /places\.test\.js/);
        kept.unlock();
      }),
    ),
  );
}

test(
  'of objects of one lock that are gone nothing stays while its memory does',
  needs('complete collection'),
  watched(() =>
    withDoctor(QUIET, async () => {
      const count = 10_000;
      const collect = collector();
      const memory = new SharedArrayBuffer(4);
      const heaps = [];
      for (let round = 0; round < 4; round++) {
        for (let index = 0; index < count; index++) {
          const mutex = new Mutex(memory, 0, { name: 'of the settings' });
          mutex.tryLock();
          mutex.unlock();
        }
        for (let turn = 0; turn < 5; turn++) {
          await nextTurn();
          collect();
        }
        heaps.push(process.memoryUsage().heapUsed);
      }
      const grown = (heaps[3] - heaps[0]) / (3 * count);
      assert.ok(grown < 30, `${grown} bytes for each`);
    }),
  ),
);

test(
  'the memory of locks that are in an order is kept, and not beyond a bound',
  needs('complete collection'),
  watched(() =>
    withDoctor({ ...QUIET, lockOrder: true }, async (doctor) => {
      const size = 2 ** 26;
      const nest = (buffer) => {
        const [outer, inner] = [0, 4].map((offset) => new Mutex(buffer, offset, { allowMainThread: true }));
        outer.lock();
        inner.lock();
        inner.unlock();
        outer.unlock();
        return [outer, inner];
      };
      let gone = 0;
      const registry = new FinalizationRegistry(() => {
        gone += 1;
      });
      const make = () => {
        const buffer = new SharedArrayBuffer(size);
        registry.register(buffer);
        return buffer;
      };
      for (let round = 0; round < 12; round++) nest(make());
      // The last may stay on the stack.
      await collectUntil(() => gone >= 7);
      assert.ok(thread.doctor.locks.kept.buffers.size > 0);
      doctor.stop();
      await collectUntil(() => gone >= 11);
    }),
  ),
);

/** Locks one inside of the other. */
const lockBoth = (outer, inner) => outer.executeLockedSync(() => inner.executeLockedSync(() => {}));

test(
  'the memory of each lock of an order is kept, also of locks that have memory of their own',
  needs('complete collection'),
  watched(() =>
    withDoctor({ ...QUIET, lockOrder: true }, async () => {
      const gone = { 'an outer': 0, 'an inner': 0, another: 0 };
      const registry = new FinalizationRegistry((which) => {
        gone[which] += 1;
      });
      const make = (which) => {
        const buffer = new SharedArrayBuffer(4);
        registry.register(buffer, which);
        return new Mutex(buffer, 0, { allowMainThread: true });
      };
      (function leaves() {
        for (let round = 0; round < 50; round++) {
          lockBoth(make('an outer'), make('an inner'));
          make('another').executeLockedSync(() => {});
        }
      })();
      // The last may stay on the stack.
      await collectUntil(() => gone.another >= 45);
      assert.deepEqual({ ...gone, another: 0 }, { 'an outer': 0, 'an inner': 0, another: 0 });
    }),
  ),
);

test(
  'all orders of one memory are known, however large that is; and those of names, however much memory is kept',
  watched(() =>
    withDoctor({ ...QUIET, lockOrder: true }, async (doctor) => {
      const large = new SharedArrayBuffer(2 ** 28 + 64);
      const inLarge = Array.from({ length: 4 }, (_, index) => new Mutex(large, 4 * index, { allowMainThread: true }));
      for (const [index, mutex] of inLarge.entries()) lockBoth(mutex, inLarge[(index + 1) % 4]);
      const sizes = () => doctor.report().lockOrder.map(({ edges }) => edges.length);
      assert.deepEqual(sizes(), [4]);
      const [a, b] = namedMutexes(2, { allowMainThread: true });
      lockBoth(a, b);
      lockBoth(b, a);
      assert.deepEqual(sizes().sort(), [2, 4]);
    }),
  ),
);
