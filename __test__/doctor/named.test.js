// Named locks under the doctor: orders, deadlocks of tasks, contention, and what is as without it.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { about, namedMutexes, sleep, withDoctor } = require('../helpers/doctor.js');
const { createFolder } = require('../helpers/folder.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { LockManager, locks } = require('../../index.js');
const { binding } = require('../../lib/engine/thread.js');

/** Holds a name of a directory until its input ends. */
const HOLDER = path.join(__dirname, '..', 'programs', 'holds-name.js');

/** A name of a directory, which that program holds. */
async function heldElsewhere(t, name = names(1)[0], directory = createFolder(t)) {
  const holder = spawn(process.execPath, [HOLDER, directory, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  return { directory, name, holder };
}

const QUIET = { stuckMs: Infinity, longHoldMs: Infinity, likelyMs: 60 };

let made = 0;
const names = (count) => Array.from({ length: count }, () => `doctor ${process.pid}.${made++}`);
const cycles = (doctor) => doctor.report().lockOrder.map(({ edges }) => edges.map(({ from }) => from.name));
const inside = (outer, inner) => locks.request(outer, () => locks.request(inner, () => {}));

test(
  'two names in both orders are a cycle, and one order is none',
  needs('async frames'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a, b, c] = names(3);
      await inside(a, b);
      await inside(b, c);
      await inside(a, c);
      assert.deepEqual(cycles(doctor), []);
      await inside(b, a);
      assert.deepEqual(cycles(doctor), [[a, b]]);
      const [{ edges }] = doctor.report().lockOrder;
      assert.deepEqual(edges[0].from, { name: a, kind: 'HeldLock', byteOffset: null });
      assert.match(edges[0].locked.stack[0], /named\.test\.js/);
    }),
  ),
);

test(
  'a name and a mutex in both orders are a cycle',
  needs('async frames'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a] = names(1);
      const [mutex] = namedMutexes(1);
      await locks.request(a, () => mutex.executeLocked(() => {}));
      await mutex.executeLocked(() => locks.request(a, () => {}));
      assert.equal(cycles(doctor).length, 1);
    }),
  ),
);

test(
  'a request for one of several names inside their callback is a likely deadlock, with both places',
  needs('async stacks'),
  watched(() =>
    withDoctor({ ...QUIET, throwOnDeadlock: 'likely' }, async (doctor) => {
      const [a, b, c] = names(3);
      const other = locks.request(b, () => sleep(20));
      const several = locks.request([a, b, c], async function asksAgain() {
        await locks.request(c, () => {});
      });
      await assert.rejects(several, { code: 'ERR_LOCK_DEADLOCK' });
      await other;
      const [{ waits }, ...more] = doctor.report().deadlocks;
      assert.deepEqual(more, []);
      assert.deepEqual(
        waits.map(({ lock }) => lock.name),
        [c],
      );
      assert.match(waits[0].holder.stack[0], /named\.test\.js/);
      assert.match(waits[0].waiter.stack[0], /asksAgain .*named\.test\.js/);
      const [{ waiters }] = about(doctor.report().contention, { name: b });
      assert.match(waiters[0].place.stack[0], /named\.test\.js/);
    }),
  ),
);

test(
  'a request for several names of the machine inside of one of them waits at its own place',
  needs('async hooks'),
  watched((t) =>
    withDoctor(QUIET, async (doctor) => {
      const [a, b] = names(2).sort();
      const directory = createFolder(t);
      const manager = new LockManager({ directory });
      const waiting = () => about(doctor.report().waiting, { name: b });
      const abort = new AbortController();
      const askForBoth = () => manager.request([a, b], { signal: abort.signal }, () => {});
      await manager.request(b, async () => {
        const both = askForBoth();
        while (waiting().length === 0) await sleep(5);
        assert.match(waiting()[0].waiter.stack[0], /^askForBoth /);
        abort.abort();
        await assert.rejects(both, { name: 'AbortError' });
      });
    }),
  ),
);

test(
  'what is tried, timed or stolen makes no order',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a, b] = names(2);
      await inside(a, b);
      for (const options of [{ ifAvailable: true }, { timeout: 1000 }, { steal: true }]) {
        await locks.request(b, () => locks.request(a, options, () => {}));
      }
      assert.deepEqual(cycles(doctor), []);
    }),
  ),
);

test(
  'acquire() counts, until it is unlocked',
  needs('async hooks'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a, b] = names(2);
      const manager = new LockManager({ allowMainThread: true });
      const one = manager.acquire(a);
      manager.acquire(b).unlock();
      one.unlock();
      const first = manager.acquire(b);
      first.unlock();
      manager.acquire(a).unlock();
      assert.deepEqual(cycles(doctor), []);
      const held = manager.acquire(b);
      manager.requestSync(a, () => {});
      held.unlock();
      assert.deepEqual(cycles(doctor), [[a, b]]);
    }),
  ),
);

test(
  'request() inside request() of one name is likely, with both places',
  needs('async stacks'),
  watched(() =>
    withDoctor(QUIET, async (doctor, messages) => {
      const [b] = names(1);
      locks.request(b, async function outer() {
        await locks.request(b, { ref: false }, () => {});
      });
      for (let turn = 0; turn < 200 && messages.length === 0; turn++) await sleep(2);
      assert.deepEqual(
        messages.map(({ certainty, name }) => [certainty, name]),
        [['likely', b]],
      );
      const [{ waits }] = doctor.report().deadlocks;
      assert.match(waits[0].waiter.stack[0], /outer .*named\.test\.js/);
      assert.match(waits[0].holder.stack[0], /named\.test\.js/);
    }),
  ),
);

test(
  'two functions that hold a name and a mutex, each inside of another request, are likely',
  needs('async stacks'),
  watched(() =>
    withDoctor(QUIET, async (doctor, messages) => {
      const [a] = names(1);
      const [mutex, other] = namedMutexes(2);
      const options = { ref: false };
      locks.request(a, () =>
        locks.request(names(1)[0], async () => {
          await sleep(2);
          await mutex.executeLocked(() => {}, options);
        }),
      );
      mutex.executeLocked(() =>
        other.executeLocked(async () => {
          await sleep(2);
          await locks.request(a, options, () => {});
        }),
      );
      for (let turn = 0; turn < 200 && messages.length === 0; turn++) await sleep(2);
      assert.deepEqual(
        messages.map(({ certainty }) => certainty),
        ['likely'],
      );
      const [{ waits }] = doctor.report().deadlocks;
      assert.deepEqual(new Set(waits.map(({ lock }) => lock.name)), new Set([a, mutex.name]));
    }),
  ),
);

test(
  'waits for a name are counted',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a] = names(1);
      await Promise.all([locks.request(a, () => sleep(10)), locks.request(a, () => {})]);
      const [{ waits, totalMs }] = about(doctor.report().contention, { name: a });
      assert.equal(waits, 1);
      assert.ok(totalMs >= 5, String(totalMs));
    }),
  ),
);

test(
  'a name whose holder does not change is stuck, with both places',
  watched(() =>
    withDoctor({ stuckMs: 60, longHoldMs: Infinity }, async (doctor) => {
      const [a] = names(1);
      const isStuck = () => about(doctor.report().stuck, { name: a });
      let release;
      const held = locks.request(
        a,
        () =>
          new Promise((resolve) => {
            release = resolve;
          }),
      );
      const waits = locks.request(a, () => {});
      while (isStuck().length === 0) await sleep(5);
      release();
      await Promise.all([held, waits]);
      const [{ lock, holders, waiters }] = isStuck();
      assert.deepEqual(lock, { name: a, kind: 'HeldLock', byteOffset: null });
      for (const place of [...holders, ...waiters]) assert.match(place.stack[0], /named\.test\.js/);
      assert.equal(waiters.length, 1);
    }),
  ),
);

for (const scope of ['process', 'machine']) {
  test(
    `a name of the ${scope} that is shared for long is stuck once, with the places of all who hold it`,
    watched((t) =>
      withDoctor({ stuckMs: 60, longHoldMs: Infinity }, async (doctor) => {
        const [a, b] = names(2);
        const directory = createFolder(t);
        const manager = new LockManager(scope === 'machine' ? { directory } : {});
        const stuck = (name) => about(doctor.report().stuck, { name });
        const readOne = () => manager.acquireAsync(a, { mode: 'shared' });
        const readOther = () => manager.acquireAsync(a, { mode: 'shared' });
        const elsewhere = await locks.acquireAsync(b);
        const held = [await readOne(), await readOther()];
        const waits = [manager.request(a, () => {}), locks.request(b, () => {})];
        while (stuck(a).length === 0 || stuck(b).length === 0) await sleep(5);
        // It is looked at again.
        await sleep(100);
        const [{ lock, holders, waiters }, ...more] = stuck(a);
        assert.deepEqual(more, []);
        assert.deepEqual(lock, { name: a, kind: 'HeldLock', byteOffset: null });
        const callers = holders.map(({ stack }) => stack[0].split(' ')[0]);
        assert.deepEqual(callers.sort(), ['readOne', 'readOther']);
        assert.equal(waiters.length, 1);
        assert.match(waiters[0].stack[0], /named\.test\.js/);
        for (const one of [...held, elsewhere]) one.unlock();
        await Promise.all(waits);
      }),
    ),
  );
}

test(
  'results and errors are as without the doctor',
  watched(() =>
    withDoctor(QUIET, async () => {
      const [a] = names(1);
      assert.equal(await locks.request(a, ({ name, mode }) => `${name} ${mode}`), `${a} exclusive`);
      assert.equal(await locks.request(a, { mode: 'shared' }, ({ mode }) => mode), 'shared');
      await assert.rejects(
        locks.request(a, () => Promise.reject(new RangeError('mine'))),
        RangeError,
      );
      await assert.rejects(locks.request(a), { code: 'ERR_INVALID_ARG_TYPE' });
      await locks.request(a, async (lock) => {
        assert.equal(await locks.request(a, { ifAvailable: true }, (other) => other), null);
        assert.equal(lock.unlock(), true);
        assert.equal(lock.unlock(), false);
      });
      assert.equal((await locks.query()).held.filter(({ name }) => name === a).length, 0);
    }),
  ),
);

for (const [form, wait] of [
  ['an awaited request', ({ manager, name }) => manager.request(name, () => {})],
  [
    'two awaited requests',
    ({ manager, name }) => Promise.all([manager.request(name, () => {}), manager.request(name, () => {})]),
  ],
  ['a blocked thread', ({ worker, directory, name }) => worker.call('lockNamed', directory, name)],
  ['a request for several names', ({ manager, name }) => manager.request([`${name} too`, name], () => {})],
]) {
  test(
    `a name of the machine that another process holds is stuck for ${form}, with the process and since when`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { directory, name, holder } = await heldElsewhere(t);
      await withDoctor({ ...QUIET, stuckMs: 60 }, async (doctor) => {
        const manager = new LockManager({ directory });
        const worker = threads.start('doctor-steps', { buffer: new SharedArrayBuffer(8), names: [], hasDoctor: true });
        await worker.call('nothing');
        const waits = wait({ manager, worker, directory, name });
        const stuck = () => about(doctor.report().stuck, { name });
        while (stuck().length === 0) await sleep(5);
        const [{ holders, outside, waiters }] = stuck();
        assert.equal(stuck().length, 1);
        assert.deepEqual(holders, []);
        assert.equal(outside.pid, holder.pid);
        assert.ok(outside.heldMs >= 60, `${outside.heldMs} ms`);
        for (const { stack } of waiters) assert.match(stack[0], /named\.test\.js|doctor-steps\.js/);
        assert.match(
          binding.doctorRead(binding.Reading.Text),
          new RegExp(`^STUCK: lock "${name}" of the machine, .*\n {4}held by   process ${holder.pid}, for `, 'm'),
        );
        holder.stdin.end();
        await waits;
      });
    }),
  );
}

for (const [form, lock] of [
  ['awaited', ({ manager, name }) => manager.request(name, () => {})],
  ['blocking', ({ worker, directory, name }) => worker.call('lockNamed', directory, name)],
]) {
  test(
    `${form}: the process that holds a name of the machine is known from the beginning of the wait`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { directory, name, holder } = await heldElsewhere(t);
      // So late the watchdog never looks for it.
      await withDoctor({ ...QUIET, stuckMs: 600_000 }, async (doctor) => {
        const manager = new LockManager({ directory });
        const worker = threads.start('doctor-steps', { buffer: new SharedArrayBuffer(8), names: [], hasDoctor: true });
        await worker.call('nothing');
        const locked = lock({ manager, worker, directory, name });
        const waits = () => about(doctor.report().waiting, { name }).filter(({ outside }) => outside !== null);
        while (waits().length === 0) await sleep(5);
        assert.deepEqual(
          waits().map(({ outside }) => outside.pid),
          [holder.pid],
        );
        holder.stdin.end();
        await locked;
      });
    }),
  );
}

test(
  'who has a name in another process is found in a directory that was moved',
  watched(async (t) => {
    const folder = createFolder(t);
    const [before, directory] = ['before', 'after'].map((name) => path.join(folder, name));
    await new LockManager({ directory: before }).request('moved', () => {});
    fs.renameSync(before, directory);
    const { name, holder } = await heldElsewhere(t, undefined, directory);
    await withDoctor({ ...QUIET, stuckMs: 60 }, async (doctor) => {
      const waits = new LockManager({ directory }).request(name, () => {});
      const stuck = () => about(doctor.report().stuck, { name });
      while (stuck().length === 0) await sleep(5);
      assert.equal(stuck()[0].outside?.pid, holder.pid);
      holder.stdin.end();
      await waits;
    });
  }),
);

test(
  'a name of the machine that a thread of the process holds without the doctor is stuck once, and held by that thread',
  watched((t, threads) =>
    withDoctor({ ...QUIET, stuckMs: 60 }, async (doctor) => {
      const [name] = names(1);
      const directory = createFolder(t);
      const worker = threads.start('doctor-steps', { buffer: new SharedArrayBuffer(8), names: [], hasDoctor: false });
      await worker.call('holdNamed', directory, name);
      const manager = new LockManager({ directory });
      const waits = manager.request(name, () => {});
      const stuck = () => about(doctor.report().stuck, { name });
      while (stuck().length === 0) await sleep(5);
      // Time in which it would be looked for elsewhere.
      await sleep(300);
      assert.deepEqual(
        stuck().map(({ holders, outside }) => [holders.map(({ threadId }) => threadId), outside]),
        [[[worker.threadId], null]],
      );
      await worker.call('freeNamed');
      await waits;
    }),
  ),
);

test(
  'a name that another process has had is reported with its holder here, and with none elsewhere',
  needs('prompt ends'),
  watched(async (t) => {
    const { directory, name, holder } = await heldElsewhere(t);
    await withDoctor({ ...QUIET, stuckMs: 60 }, async (doctor) => {
      const manager = new LockManager({ directory });
      const [first, second] = [manager.acquireAsync(name), manager.acquireAsync(name)];
      const waiting = () => about(doctor.report().waiting, { name });
      while (!waiting().every(({ outside }) => outside !== null)) await sleep(5);
      holder.stdin.end();
      const lock = await first;
      const [{ holders, outside }] = waiting();
      assert.deepEqual([holders.length, outside], [1, null]);
      lock.unlock();
      (await second).unlock();
    });
  }),
);

test(
  'who has a name in one directory is nobody who has it in another, or in the process',
  needs('prompt ends', 'async frames'),
  watched(async (t) => {
    const [name] = names(1);
    const [one, other] = [await heldElsewhere(t, name), await heldElsewhere(t, name)];
    await withDoctor(QUIET, async (doctor) => {
      let end;
      const ended = new Promise((resolve) => {
        end = resolve;
      });
      let began;
      const begun = new Promise((resolve) => {
        began = resolve;
      });
      const callback = () => {
        began();
        return ended;
      };
      const managers = [one, other].map(({ directory }) => new LockManager({ directory }));
      const first = () => managers[0].request(name, callback);
      const second = () => managers[1].request(name, callback);
      const requests = [locks.request(name, () => ended), first(), second()];
      requests.push(...[locks, ...managers].map((manager) => manager.request(name, () => {})));
      await sleep(5);
      one.holder.stdin.end();
      await begun;
      const holders = about(doctor.report().waiting, { name }).flatMap((wait) => wait.holders);
      const places = holders.map(({ stack }) => /named\.test/.test(stack[0]) && stack[0].split(' ')[0]);
      assert.ok(places.includes('first'), String(places));
      assert.ok(!places.includes('second'), String(places));
      end();
      other.holder.stdin.end();
      await Promise.all(requests);
    });
  }),
);

test(
  'thousands of names at once are had as without the doctor, by each verb',
  watched(() =>
    withDoctor(QUIET, async () => {
      const manager = new LockManager({ allowMainThread: true });
      const many = names(3000);
      const count = (all) => all.length;
      const verbs = {
        request: () => manager.request(many, count),
        'request of a function that waits': () =>
          manager.request(many, async (all) => manager.request('one', () => count(all))),
        requestSync: () => manager.requestSync(many, count),
        acquireAsync: async () => (await manager.acquireAsync(many)).unlock(),
        acquire: () => manager.acquire(many).unlock(),
      };
      for (const [verb, ask] of Object.entries(verbs)) {
        assert.equal(await ask(), verb.startsWith('request') ? many.length : true, verb);
      }
      const { held, pending } = await manager.query();
      const asked = new Set(many);
      assert.deepEqual(
        [...held, ...pending].filter(({ name }) => asked.has(name)),
        [],
      );
    }),
  ),
);

test(
  'what was counted for names that are used no more is one entry, and a name that is used again is a new one',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [old, again] = names(2);
      const contend = (name) => Promise.all([locks.request(name, () => sleep(1)), locks.request(name, () => {})]);
      await contend(old);
      await contend(again);
      const counts = () => doctor.report().contention.map(({ lock, waits }) => [lock.name ?? lock.kind, waits]);
      assert.deepEqual(
        new Map(counts()),
        new Map([
          [old, 1],
          [again, 1],
        ]),
      );
      // More than are known at once: `MOST_NAMES` in lib/doctor/locks.js.
      for (const name of names(4000)) await locks.request(name, () => {});
      await contend(again);
      assert.deepEqual(
        new Map(counts()),
        new Map([
          ['Locks used before', 2],
          [again, 1],
        ]),
      );
    }),
  ),
);

test(
  'a name that is free is no wait, though a thread that asks for it would block',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const manager = new LockManager({ allowMainThread: true });
      const free = names(50);
      for (const name of free) manager.acquire(name).unlock();
      // On a busy machine a thread may stand for a while in one that is free.
      const counted = free.filter((name) => about(doctor.report().contention, { name }).length > 0);
      assert.ok(counted.length < free.length / 2, `${counted.length} of ${free.length}`);
    }),
  ),
);

test(
  'what is asked for inside of a request for several names comes after each of them, also once its function has waited',
  needs('async frames'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [outer, a, b, c, d] = names(5);
      await locks.request(outer, () =>
        locks.request([a, b], async () => {
          await locks.request(c, async () => {
            await undefined;
            await locks.request(d, () => {});
          });
        }),
      );
      for (const first of [a, b, outer]) {
        for (const last of [c, d]) await inside(last, first);
      }
      const found = cycles(doctor).filter((cycle) => cycle.length === 2);
      const expected = [a, b, outer].flatMap((first) => [c, d].map((last) => [first, last].sort()));
      assert.deepEqual(found.map((cycle) => cycle.sort()).sort(), expected.sort());
    }),
  ),
);

/** Verbs that take names without blocking; each unlocks them. */
const TAKING = {
  'request()': (manager, all, options) => manager.request(all, options, () => {}),
  'request() of a function that waits': (manager, all, options) =>
    manager.request(all, options, async () => {
      await undefined;
    }),
  'acquireAsync()': async (manager, all, options) => {
    const held = await manager.acquireAsync(all, options);
    held.unlock();
  },
};

for (const [verb, take] of Object.entries(TAKING)) {
  // None, or one of them, is held by another when they are asked for.
  for (const held of [-1, 0, 1]) {
    test(
      `${verb}: each name comes after what is held, one alone and several, of which ${held < 0 ? 'all are free' : `number ${held} is not`}`,
      needs('async frames'),
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          for (const [options, count] of [
            [{}, 1],
            [{ timeout: 60_000 }, 0],
          ]) {
            const [several, [alone]] = [names(2), names(1)];
            const [mutex] = namedMutexes(1);
            const other = held < 0 ? null : await locks.acquireAsync(several[held]);
            const taken = mutex.executeLocked(async () => {
              await take(locks, [...several].reverse(), options);
              await take(locks, alone, options);
            });
            setImmediate(() => other?.unlock());
            await taken;
            for (const name of [...several, alone]) {
              await locks.request(name, () => mutex.executeLocked(() => {}));
              assert.equal(cycles(doctor).filter((cycle) => cycle.includes(name)).length, count, name);
            }
          }
        }),
      ),
    );
  }
}

test(
  'an order is known as soon as a callback begins, though it may never end',
  needs('async frames'),
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const [a, b] = names(2);
      await inside(b, a);
      let end;
      const ended = new Promise((resolve) => (end = resolve));
      let begin;
      const begun = new Promise((resolve) => (begin = resolve));
      const request = locks.request(a, () =>
        locks.request(b, () => {
          begin();
          return ended;
        }),
      );
      await begun;
      assert.deepEqual(cycles(doctor), [[b, a]]);
      end();
      await request;
    }),
  ),
);
