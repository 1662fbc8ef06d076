// Reports of several threads to the process as one: lock orders, deadlocks between tasks and blocked threads, contention,
// long holds and holds that are never released.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, LockManager, Semaphore, lockAll } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { DOCTOR, about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { holdIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Workers of the test before would still be in the report. */
const ENDS = needs('prompt ends');
const CHAINS = needs('prompt ends', 'async stacks');

const QUIET = { stuckMs: Infinity, longHoldMs: Infinity, likelyMs: 60 };

const startSteps = (threads, mutexes, hasDoctor = true) => {
  const [{ buffer }] = mutexes;
  return threads.start('doctor-steps', { buffer, names: mutexes.map(({ name }) => name), hasDoctor });
};

const cyclesOf = (doctor) =>
  doctor.report().lockOrder.map(({ edges }) => edges.map(({ from }) => from.name.at(-1)).join(''));

const order = (title, expected, steps) =>
  test(
    title,
    ENDS,
    watched((_, threads) =>
      withDoctor(QUIET, async (doctor) => {
        const mutexes = namedMutexes(4);
        const workers = [0, 1].map(() => startSteps(threads, mutexes));
        for (const worker of workers) await worker.call('nothing');
        for (const [worker, ...step] of steps) await workers[worker].call(...step);
        assert.deepEqual(cyclesOf(doctor), expected);
        assert.deepEqual(doctor.report().threadsWithoutDoctor, []);
      }),
    ),
  );

order(
  'two threads that lock in opposite orders, one after the other, are a cycle',
  ['ab'],
  [
    [0, 'nested', 0, 1],
    [1, 'nested', 1, 0],
  ],
);
order(
  'one thread that locks in both orders is a cycle',
  ['ab'],
  [
    [0, 'nested', 0, 1],
    [0, 'nested', 1, 0],
  ],
);
test(
  'a lock that is blocked for with a timeout, in vain, does not come after what is held meanwhile',
  ENDS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(2);
      const worker = startSteps(threads, mutexes);
      await mutexes[1].lockAsync();
      await worker.call('nestedTimed', 0, 1, 20);
      mutexes[1].unlock();
      await worker.call('nested', 1, 0);
      assert.deepEqual(cyclesOf(doctor), []);
    }),
  ),
);
order(
  'four locks in a circle over two threads are a cycle',
  ['abcd'],
  [
    [0, 'nested', 0, 1],
    [1, 'nested', 1, 2],
    [0, 'nested', 2, 3],
    [1, 'nested', 3, 0],
  ],
);
order(
  'executeLockedSync() inside executeLockedSync() counts',
  ['ab'],
  [
    [0, 'nestedSync', 0, 1],
    [1, 'nestedSync', 1, 0],
  ],
);
order(
  'one order in all threads is no cycle',
  [],
  [
    [0, 'nested', 0, 1],
    [1, 'nested', 1, 2],
    [1, 'nested', 0, 2],
    [0, 'nestedSync', 2, 3],
  ],
);
order(
  'tryLock() in the opposite order is no cycle',
  [],
  [
    [0, 'nested', 0, 1],
    [1, 'nestedTry', 1, 0],
  ],
);
order(
  'a lock with a timeout in the opposite order is no cycle',
  [],
  [
    [0, 'nested', 0, 1],
    [1, 'nestedTimed', 1, 0],
  ],
);

test(
  'an edge names the thread that was seen first, and its functions',
  ENDS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(2);
      const workers = [0, 1].map(() => startSteps(threads, mutexes));
      await workers[0].call('nested', 0, 1);
      await workers[1].call('nested', 1, 0);
      const [{ edges }] = doctor.report().lockOrder;
      edges.forEach(({ held, locked }, index) => {
        for (const place of [held, locked]) {
          assert.equal(place.threadId, workers[index].threadId);
          assert.match(place.stack[0], /^.*holdsFirst.* \(.*doctor-steps\.js:\d+:\d+\)$/);
        }
        assert.notEqual(held.stack[0], locked.stack[0]);
      });
    }),
  ),
);

test(
  'a task that awaits what a blocked thread holds, which waits for what the task holds, is likely',
  CHAINS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, likelyMs: 60, throwOnDeadlock: 'likely' }, async (doctor, messages) => {
      const mutexes = namedMutexes(2);
      const [a, b] = mutexes;
      const worker = startSteps(threads, mutexes);
      const end = a.executeLocked(async () => {
        const step = worker.call('holdAndLock', 1, 0, 0, 1);
        await threads.raised(0);
        threads.raise(1);
        while (a.inspect().waiters.length === 0) await sleep(1);
        const inner = b.executeLocked(() => {});
        await inner;
        await step;
      });
      await assert.rejects(end, { name: 'DeadlockError' });
      assert.deepEqual(
        messages.map(({ certainty }) => certainty),
        ['likely'],
      );
      const [{ waits }] = doctor.report().deadlocks;
      assert.deepEqual(new Set(waits.map(({ waiter }) => waiter.threadId)), new Set([0, worker.threadId]));
      const ofWorker = waits.find(({ waiter }) => waiter.threadId === worker.threadId);
      assert.equal(ofWorker.lock.name, a.name);
      assert.match(ofWorker.waiter.stack[0], /holdAndLock/);
      assert.equal(ofWorker.holder.threadId, 0);
    }),
  ),
);

test(
  'a thread that blocks last finds the deadlock with tasks of another, before it blocks',
  CHAINS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(2);
      const [a, b] = mutexes;
      const worker = startSteps(threads, mutexes);
      const step = worker.call('holdAndLock', 1, 0, 0, 1);
      await threads.raised(0);
      const end = a.executeLocked(() => b.executeLocked(() => {}, { ref: false }));
      end.catch(() => {});
      while (b.inspect().waiters.length === 0) await sleep(1);
      await sleep(20);
      threads.raise(1);
      await threads.until('the deadlock is found', () => doctor.report().deadlocks.length > 0);
      const [{ certainty, waits }] = doctor.report().deadlocks;
      assert.equal(certainty, 'likely');
      assert.equal(waits.length, 2);
      step.catch(() => {});
    }),
  ),
);

test(
  'of a task and a thread that blocked last, the task is told, since nobody can tell the thread',
  CHAINS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, likelyMs: 60, throwOnDeadlock: 'likely' }, async (doctor, messages) => {
      const mutexes = namedMutexes(2);
      const [a, b] = mutexes;
      const worker = startSteps(threads, mutexes);
      const step = worker.call('holdAndLock', 1, 0, 0, 1);
      await threads.raised(0);
      const end = a.executeLocked(() => b.executeLocked(() => {}));
      while (b.inspect().waiters.length === 0) await sleep(1);
      await sleep(20);
      threads.raise(1);
      await assert.rejects(end, { name: 'DeadlockError' });
      await step;
      assert.deepEqual(
        messages.map(({ certainty }) => certainty),
        ['likely'],
      );
      assert.equal(doctor.report().deadlocks.length, 1);
    }),
  ),
);

test(
  'tasks of two threads that lock in opposite orders are likely',
  CHAINS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(2);
      const workers = [0, 1].map(() => startSteps(threads, mutexes));
      workers[0].call('holdAndAwait', 0, 1, 0, 2).catch(() => {});
      workers[1].call('holdAndAwait', 1, 0, 1, 2).catch(() => {});
      await Promise.all([threads.raised(0), threads.raised(1)]);
      threads.raise(2);
      await threads.until('the deadlock is found', () => doctor.report().deadlocks.length > 0);
      const [{ certainty, waits }] = doctor.report().deadlocks;
      assert.equal(certainty, 'likely');
      assert.deepEqual(new Set(waits.map(({ waiter }) => waiter.threadId)), new Set(workers.map((w) => w.threadId)));
    }),
  ),
);

test(
  'waits are counted by who waited and whose unlock ended them, and their time is right',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, lockOrder: false, deadlocks: false }, async (doctor) => {
      const mutexes = namedMutexes(1);
      const workers = [0, 1].map(() => startSteps(threads, mutexes));
      const waitOften = (times) => Promise.all(workers.map((worker) => worker.call('waitOften', 0, times)));
      // The first wait of a thread loads files.
      const guard = await mutexes[0].acquireAsync();
      const first = waitOften(1);
      await threads.queued(mutexes[0], 2);
      guard.unlock();
      await first;
      const [{ totalMs: before }] = about(doctor.report().contention, mutexes[0]);
      const all = await waitOften(40);
      const measured = all.flat().filter((ms) => ms >= 1);
      const total = measured.reduce((sum, ms) => sum + ms, 0);
      const [entry] = about(doctor.report().contention, mutexes[0]);
      assert.ok(measured.length >= 10, `only ${measured.length} waits`);
      // Every wait that the clock saw, and short ones that it cannot distinguish from a free lock. The clock saw as well how long a
      // thread that was let in waited for a processor: on a busy machine that may be most of it.
      const counted = entry.totalMs - before;
      const most = all.flat().reduce((sum, ms) => sum + ms, 0);
      assert.ok(counted >= 0.25 * total && counted <= 1.05 * most, `${counted} of ${total}, and ${most} ms in all`);
      // A thread that stood in a free lock for as long, without a processor, did not wait for it.
      assert.ok(entry.waits >= measured.length / 2 && entry.waits <= 2 + all.flat().length, `${entry.waits} waits`);
      assert.ok(entry.maxMs <= entry.totalMs);
      const sum = (delays, key) => delays.reduce((before, delay) => before + delay[key], 0);
      assert.ok(Math.abs(sum(entry.waiters, 'totalMs') - entry.totalMs) < 1e-3);
      assert.equal(sum(entry.waiters, 'waits'), entry.waits);
      assert.ok(sum(entry.unlockers, 'totalMs') >= 0.95 * entry.totalMs);
      for (const { place } of [...entry.waiters, ...entry.unlockers].filter(({ place }) => place.threadId !== 0)) {
        assert.match(place.stack[0], /waitOften .*doctor-steps\.js/);
        assert.ok(workers.some(({ threadId }) => threadId === place.threadId));
      }
      const totals = entry.waiters.map(({ totalMs }) => totalMs);
      assert.deepEqual(
        totals,
        [...totals].sort((one, other) => other - one),
      );
    }),
  ),
);

test(
  'lockAll() is a wait for each lock that it has waited for, which an unlock ended if it was let in',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, lockOrder: false, deadlocks: false }, async (doctor) => {
      const mutexes = namedMutexes(3);
      const worker = startSteps(threads, mutexes);
      const [first, , last] = await Promise.all(mutexes.map((mutex, index) => index !== 1 && mutex.acquireAsync()));
      const counts = () =>
        mutexes.map((mutex) =>
          about(doctor.report().contention, mutex).map((all) => [all.waits, all.unlockers.length]),
        );
      const inVain = assert.rejects(worker.call('lockAll', 1000), { code: 'ERR_LOCK_TIMEOUT' });
      await threads.queued(mutexes[0], 1);
      first.unlock();
      await inVain;
      assert.deepEqual(counts(), [[[1, 1]], [], [[1, 0]]]);
      const taken = worker.call('lockAll', 60_000);
      await threads.queued(mutexes[2], 1);
      last.unlock();
      await taken;
      assert.deepEqual(counts(), [[[1, 1]], [], [[2, 1]]]);
      // The second one is free when the call begins, and is taken while that waits for the first.
      const before = await mutexes[0].acquireAsync();
      const meanwhile = worker.call('lockAll', 60_000);
      await threads.queued(mutexes[0], 1);
      const between = await mutexes[1].acquireAsync();
      before.unlock();
      await threads.queued(mutexes[1], 1);
      between.unlock();
      await meanwhile;
      // That wait is known at its end only: its unlock was nobody's affair.
      assert.deepEqual(counts(), [[[2, 2]], [[1, 0]], [[2, 1]]]);
    }),
  ),
);

test(
  'lockAll() waits for none of its locks that is free, and comes after what is held all the same',
  ENDS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(4, { allowMainThread: true });
      const outer = mutexes.pop();
      const worker = startSteps(threads, mutexes);
      mutexes[1].tryLock();
      const taken = worker.call('lockAll');
      await threads.queued(mutexes[1], 1);
      const { waiting } = doctor.report();
      assert.deepEqual(
        waiting.map(({ lock, holders }) => [lock.name, holders.length]),
        [[mutexes[1].name, 1]],
      );
      mutexes[1].unlock();
      await taken;
      outer.lock();
      lockAll(mutexes).unlock();
      outer.unlock();
      for (const mutex of mutexes) mutex.executeLockedSync(() => outer.executeLockedSync(() => {}));
      assert.equal(doctor.report().lockOrder.length, mutexes.length);
    }),
  ),
);

test(
  'a long hold has its holder and the place where it began, while it lasts and afterwards',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, longHoldMs: 50 }, async (doctor) => {
      const mutexes = namedMutexes(2);
      const worker = startSteps(threads, mutexes);
      const long = (mutex) => about(doctor.report().longHolds, mutex);
      const shortMs = await worker.call('holdFor', 1, 1);
      // On a busy machine a short hold may be long.
      for (const { heldMs } of long(mutexes[1]))
        assert.ok(heldMs >= 40 && heldMs <= shortMs, `${heldMs} of ${shortMs}`);
      worker.call('hold', 0, 0, 1).catch(() => {});
      // The worker has the limit of 100 ms that it started with.
      await threads.until('it is long', () => long(mutexes[0]).some(({ heldMs }) => heldMs >= 120));
      threads.raise(1);
      await worker.call('nothing');
      const [{ holder, heldMs }] = long(mutexes[0]);
      assert.equal(holder.threadId, worker.threadId);
      assert.match(holder.stack[0], /hold .*doctor-steps\.js/);
      assert.ok(heldMs >= 40, String(heldMs));
    }),
  ),
);

test(
  'a hold has its place while its thread is busy, though the thread has had more holds in that turn than have theirs read at once',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, longHoldMs: 50 }, async (doctor) => {
      const mutexes = namedMutexes(2);
      const worker = startSteps(threads, mutexes);
      const holders = (mutex) => about(doctor.report().longHolds, mutex).map(({ holder }) => holder);
      const done = worker.call('holdAfterMany', 100, 0, 1, 2, 3);
      await threads.raised(0);
      await threads.until('the core has looked', () => holders(mutexes[1]).length > 0);
      threads.raise(1);
      await threads.until('it is long', () => holders(mutexes[0]).length > 0);
      assert.match(holders(mutexes[0])[0].stack[0], /hold .*doctor-steps\.js/);
      threads.raise(3);
      await done;
    }),
  ),
);

/** Longer than a machine that stands still takes from a grant to the end of its function. */
const LONG_MS = 3000;
const AWAY_MS = LONG_MS + 200;

/** Holds that are none while they are away: `run({ t, lock, away, back })` awaits `away()` then, and calls `back()` with it again. */
const AWAY = {
  async 'with a wait for a condition'({ lock, away, back }) {
    const condition = new Condition(new SharedArrayBuffer(4));
    const running = lock.executeLocked(async () => {
      await condition.waitAsync(lock);
      back();
    });
    await away();
    condition.notifyOne();
    await running;
  },
  async 'with a wait for a condition, of a guard'({ lock, away, back }) {
    const condition = new Condition(new SharedArrayBuffer(4));
    const guard = await lock.acquireAsync();
    const waiting = condition.waitAsync(lock);
    await away();
    condition.notifyOne();
    await waiting;
    back();
    guard.unlock();
  },
  'with a wait for a condition that blocks'({ lock, back }) {
    const condition = new Condition(new SharedArrayBuffer(4));
    lock.executeLockedSync(() => {
      condition.wait(lock, AWAY_MS);
      back();
    });
  },
  async 'until another process lets it have the name'({ t, lock: { name }, away, back }) {
    const { directory, peers } = await startPeers(t, 1);
    await holdIn(peers[0], name);
    const running = new LockManager({ directory }).request(name, back);
    await away();
    await unlockIn(peers[0]);
    await running;
  },
};

for (const [why, run] of Object.entries(AWAY)) {
  test(
    `a hold that is away ${why} is none meanwhile: it is not long for that`,
    watched((t) =>
      withDoctor({ ...QUIET, longHoldMs: LONG_MS, likelyMs: Infinity }, async (doctor) => {
        const [lock] = namedMutexes(1, { allowMainThread: true });
        const look = () => {
          const { longHolds, waiting } = doctor.report();
          return [about(longHolds, lock), waiting];
        };
        let seen;
        const back = () => {
          seen = look();
        };
        await run({ t, lock, away: () => sleep(AWAY_MS), back });
        assert.deepEqual(seen, [[], []], 'when it is held again');
        assert.deepEqual(look(), [[], []], 'afterwards');
      }),
    ),
  );
}

test(
  'each hold of a thread that does not come back to its event loop has its place',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, longHoldMs: 20 }, async (doctor) => {
      const mutexes = namedMutexes(8);
      const worker = startSteps(threads, mutexes);
      worker.call('holdAll', 0, 1).catch(() => {});
      await threads.raised(0);
      const long = () => mutexes.flatMap((mutex) => about(doctor.report().longHolds, mutex));
      await threads.until('all are long', () => long().length === mutexes.length);
      for (const { holder } of long()) assert.match(holder.stack[0] ?? '', /holdAll .*doctor-steps\.js/);
      threads.raise(1);
      await worker.call('nothing');
    }),
  ),
);

test(
  'what a thread holds when it ends was never released',
  ENDS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(1);
      const worker = startSteps(threads, mutexes);
      await worker.call('lock', 0);
      assert.deepEqual(doctor.report().neverReleased, []);
      await worker.terminate();
      const [{ lock, holder }] = doctor.report().neverReleased;
      assert.equal(lock.name, mutexes[0].name);
      assert.equal(holder.threadId, worker.threadId);
      assert.match(holder.stack[0], /doctor-steps\.js/);
    }),
  ),
);

test(
  'a thread without the doctor is named, and is seen as a holder',
  ENDS,
  watched((_, threads) =>
    withDoctor({ ...QUIET, stuckMs: 60 }, async (doctor) => {
      const mutexes = namedMutexes(1);
      const worker = startSteps(threads, mutexes, false);
      worker.call('hold', 0, 0, 1).catch(() => {});
      await threads.raised(0);
      assert.deepEqual(doctor.report().threadsWithoutDoctor, [worker.threadId]);
      const wait = mutexes[0].lockAsync();
      await threads.until('it is stuck', () => about(doctor.report().stuck, mutexes[0]).length > 0);
      const [{ holders, waiters }] = about(doctor.report().stuck, mutexes[0]);
      assert.deepEqual(holders, [{ threadId: worker.threadId, stack: [] }]);
      assert.equal(waiters.length, 1);
      assert.match(waiters[0].stack[0], /threads\.test\.js/);
      threads.raise(1);
      await wait;
      mutexes[0].unlock();
    }),
  ),
);

test(
  'an order counts as soon as a thread waits in it, though it may never get the lock',
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const [first, second] = namedMutexes(2, { allowMainThread: true });
      const { buffer } = first;
      second.lock();
      first.lock();
      first.unlock();
      const [peer] = await startActors(threads, 1, buffer, { execArgv: ['--require', DOCTOR] });
      const names = [first.name, second.name];
      const waiting = peer.do((here, names) => {
        const [first, second] = names.map((name, index) => new here.sablock.Mutex(here.buffer, 8 * index, { name }));
        first.lock();
        second.lock();
        second.unlock();
        first.unlock();
      }, names);
      while (about(doctor.report().waiting, second).length === 0) await sleep(1);
      const orders = doctor.report().lockOrder.map(({ edges }) => edges.map(({ to }) => to.name));
      assert.deepEqual(orders, [[first.name, second.name]]);
      second.unlock();
      await waiting;
    }),
  ),
);

test(
  'locks of a worker that has ended are in no order with those that come to their addresses',
  ENDS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const options = { execArgv: ['--require', DOCTOR] };
      // By rounds that lock upwards, and by those that lock downwards.
      const seen = [new Set(), new Set()];
      const reused = () => [...seen[0]].filter((address) => seen[1].has(address)).length;
      for (let round = 0; reused() < 10; round++) {
        const [worker] = await startActors(threads, 1, new SharedArrayBuffer(4), options);
        const addresses = await worker.do(
          (here, isDown) => {
            const { binding } = here.require('../../lib/engine/thread.js');
            const mutexes = Array.from({ length: 50 }, () => {
              const buffer = new SharedArrayBuffer(4);
              return { mutex: new here.sablock.Mutex(buffer), address: binding.address(new Int32Array(buffer)) };
            });
            mutexes.sort((one, other) => (one.address - other.address) * (isDown ? -1 : 1));
            for (const { mutex } of mutexes) mutex.lock();
            for (const { mutex } of mutexes) mutex.unlock();
            return mutexes.map(({ address }) => address);
          },
          round % 2 === 1,
        );
        for (const address of addresses) seen[round % 2].add(address);
        await worker.terminate();
      }
      assert.deepEqual(doctor.report().lockOrder, []);
    }),
  ),
);

test(
  'who waits for a permit beside its own is in no deadlock while a thread without the doctor has the other',
  CHAINS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const pool = new Semaphore(new SharedArrayBuffer(4), 0, 2, { name: 'pool' });
      const [worker] = await startActors(threads, 1, pool.buffer);
      await worker.do((here) => {
        here.permit = new here.sablock.Semaphore(here.buffer, 0, 2).tryAcquire();
      });
      const nested = pool.execute(() => pool.execute(() => {}));
      await sleep(3 * QUIET.likelyMs);
      await worker.do((here) => here.permit.release());
      await nested;
      assert.deepEqual(doctor.report().deadlocks, []);
    }),
  ),
);

test(
  'a wait that lost a race is in no deadlock while its thread is blocked',
  CHAINS,
  watched((_, threads) =>
    withDoctor(QUIET, async (doctor) => {
      const mutexes = namedMutexes(3, { allowMainThread: true });
      const [outer, lost, last] = mutexes;
      const prepare = (here, names) => {
        here.mutexes = names.map((name, index) => new here.sablock.Mutex(here.buffer, 8 * index, { name }));
      };
      const options = { execArgv: ['--require', DOCTOR], prepare };
      const names = mutexes.map(({ name }) => name);
      const [waiter, holder] = await startActors(threads, 2, outer.buffer, options, names);
      await waiter.do((here) => here.mutexes[1].lock());
      await holder.do((here) => here.mutexes[2].lock());
      const ends = [];
      await outer.executeLocked(async () => {
        ends.push(lost.lockAsync());
        await Promise.race([ends[0], sleep(20)]);
        ends.push(
          waiter.do((here) => {
            here.mutexes[0].lock();
            for (const mutex of here.mutexes.slice(0, 2)) mutex.unlock();
          }),
          holder.do((here, ms) => {
            while (here.mutexes[0].inspect().waiters.length === 0);
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
            here.mutexes[2].unlock();
          }, 4 * QUIET.likelyMs),
        );
        last.lock();
        last.unlock();
      });
      await Promise.all(ends);
      lost.unlock();
      assert.deepEqual(doctor.report().deadlocks, []);
    }),
  ),
);
