// The doctor's memory of a thread's code and locks, and how long it lasts.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Script } = require('node:vm');
const { Mutex } = require('../..');
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
      const rounds = 3000;
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
    const rounds = 3000;
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
