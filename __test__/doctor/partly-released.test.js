// Holds of which a part went back, or that changed: the rest is held on, and the doctor says so.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const sablock = require('../../index.js');
const { startActors } = require('../helpers/actors.js');
const { about, sleep, withDoctor } = require('../helpers/doctor.js');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const QUIET = { stuckMs: Infinity, longHoldMs: Infinity, likelyMs: Infinity };
const STUCK = { ...QUIET, stuckMs: limit(60) };

/** Three of four permits. */
const permits = (take, part = (taken) => taken.release(1), options = {}) => ({
  type: 'Semaphore',
  args: [4],
  options,
  take,
  part,
  want: (pool, limits) => pool.acquireAsync(4, limits),
});
const ofRwLock = (take, part, want) => ({ type: 'RwLock', args: [], options: {}, take, part, want });
const toWrite = (rw, limits) => rw.write.acquireAsync(limits);

/** What is taken, which part of that goes back, and who has to wait for the rest. `take` and `part` run in workers too, as source. */
const CASES = {
  'permits of acquire()': permits((pool) => pool.acquire(3)),
  'permits of tryAcquire()': permits((pool) => pool.tryAcquire(3)),
  'permits of acquireAsync()': permits((pool) => pool.acquireAsync(3)),
  'permits of acquireAsync() that waited': permits(async (pool) => {
    const all = pool.acquire(4);
    const waiting = pool.acquireAsync(3);
    all.release();
    return waiting;
  }),
  'permits of a fair semaphore': permits((pool) => pool.acquire(3), undefined, { fair: true }),
  'permits that go back one by one': permits(
    (pool) => pool.acquire(3),
    (taken) => taken.release(1) && taken.release(1),
  ),
  'permits of which more were to go back': permits(
    (pool) => pool.acquire(3),
    (taken) => {
      try {
        taken.release(4);
      } catch {
        // It is refused.
      }
    },
  ),
  'a guard to write that is downgraded': ofRwLock(
    (rw) => rw.write.acquire(),
    (guard) => guard.downgrade(),
    toWrite,
  ),
  'a guard to read that is upgraded': ofRwLock(
    (rw) => rw.read.acquire(),
    (guard) => guard.tryUpgrade(),
    (rw, limits) => rw.read.acquireAsync(limits),
  ),
  'one of two guards to read': ofRwLock(
    (rw) => [rw.read.acquire(), rw.read.acquire()],
    ([first]) => first.unlock(),
    toWrite,
  ),
};

let made = 0;
const create = ({ type, args, options }) => {
  made += 1;
  const buffer = new SharedArrayBuffer(sablock[type].bytes?.(...args) ?? sablock[type].BYTES);
  const all = { ...options, name: `partly ${process.pid}.${made}`, allowMainThread: true };
  return { buffer, options: all, lock: new sablock[type](buffer, 0, ...args, all) };
};

/** Gives the rest back. */
const giveBack = (taken) => {
  for (const one of [taken].flat()) {
    if (one.release) one.release();
    else one.unlock();
  }
};

for (const [title, { type, args, options: more, take, part, want }] of Object.entries(CASES)) {
  test(
    `${title}: who waits for the rest is shown who holds it, until that has gone back`,
    watched(() =>
      withDoctor(STUCK, async (doctor) => {
        const { lock } = create({ type, args, options: more });
        const taken = await take(lock);
        part(taken);
        const controller = new AbortController();
        const waiting = want(lock, { signal: controller.signal });
        const { report } = doctor;
        const holders = (list) => about(report.call(doctor)[list], lock).flatMap((entry) => entry.holders);
        assert.equal(holders('waiting').length, 1);
        assert.match(holders('waiting')[0].stack[0], /partly-released\.test\.js/);
        while (about(doctor.report().stuck, lock).length === 0) await sleep(5);
        assert.equal(holders('stuck').length, 1);
        giveBack(taken);
        const last = await waiting;
        // What waits now is shown the next holder, and not the one before.
        const next = want(lock, { signal: controller.signal });
        if (about(doctor.report().waiting, lock).length > 0) assert.equal(holders('waiting').length, 1);
        giveBack(last);
        giveBack(await next);
      }),
    ),
  );

  for (const isAllGivenBack of [false, true]) {
    test(
      `${title}: a thread that ends with the rest ${isAllGivenBack ? 'given back has' : 'has not'} released it`,
      needs('prompt ends'),
      watched((_, threads) =>
        withDoctor(QUIET, async (doctor) => {
          const { buffer, options, lock } = create({ type, args, options: more });
          const [actor] = await startActors(threads, 1, buffer);
          await actor.do(
            async (here, type, args, options, sources, isAllGivenBack) => {
              here.require('../../lib/doctor/index.js').start();
              const [take, part, giveBack] = sources.map((source) => new Function(`return ${source};`)());
              here.lock = new here.sablock[type](here.buffer, 0, ...args, options);
              here.taken = await take(here.lock);
              part(here.taken);
              if (isAllGivenBack) giveBack(here.taken);
            },
            type,
            args,
            options,
            [take, part, giveBack].map(String),
            isAllGivenBack,
          );
          assert.deepEqual(about(doctor.report().neverReleased, lock), []);
          await actor.terminate();
          const holders = about(doctor.report().neverReleased, lock).map(({ holder }) => holder.threadId);
          assert.deepEqual(holders, isAllGivenBack ? [] : [actor.threadId]);
        }),
      ),
    );
  }

  test(
    `${title}: the rest is a leak once it is collected, and none if it was given back`,
    needs('complete collection'),
    watched(() =>
      withDoctor({ ...QUIET, leaks: true }, async (doctor) => {
        require('node:v8').setFlagsFromString('--expose-gc');
        const collect = require('node:vm').runInNewContext('gc');
        const [leaking, clean] = [0, 1].map(() => create({ type, args, options: more }).lock);
        await (async () => {
          const taken = await take(clean);
          part(taken);
          giveBack(taken);
          part(await take(leaking));
        })();
        const leaks = (lock) => about(doctor.report().leaks, lock).length;
        for (let round = 0; round < 200 && leaks(leaking) === 0; round++) {
          collect();
          await sleep(5);
        }
        assert.deepEqual([leaks(leaking), leaks(clean)], [1, 0]);
      }),
    ),
  );
}

/** Holds without a guard that change, and permits that nobody gives back: each leaves `holders` of these functions. */
const CHANGES = {
  'a lock to write that is downgraded'() {
    const { lock } = create({ type: 'RwLock', args: [], options: {} });
    (function writes() {
      lock.write.lock();
    })();
    lock.downgrade();
    return { lock, want: toWrite, holders: ['writes'], end: () => lock.read.unlock() };
  },
  'a lock to read that is upgraded'() {
    const { lock } = create({ type: 'RwLock', args: [], options: {} });
    (function reads() {
      lock.read.lock();
    })();
    assert.equal(lock.tryUpgrade(), true);
    const want = (rw, limits) => rw.read.acquireAsync(limits);
    return { lock, want, holders: ['reads'], end: () => lock.write.unlock() };
  },
  'the last of two locks to read'() {
    const { lock } = create({ type: 'RwLock', args: [], options: {} });
    (function outer() {
      lock.read.lock();
    })();
    (function inner() {
      lock.read.lock();
    })();
    lock.read.unlock();
    return { lock, want: toWrite, holders: ['outer'], end: () => lock.read.unlock() };
  },
  'the first of two rows'() {
    const { lock } = create({ type: 'LockTable', args: [2], options: {} });
    lock.lock(0);
    (function second() {
      lock.lock(1);
    })();
    lock.unlock(0);
    const want = (table, limits) => table.at(1).acquireAsync(limits);
    return { lock, want, holders: ['second'], end: () => lock.unlock(1) };
  },
  'permits that were used up'() {
    const { lock } = create({ type: 'Semaphore', args: [3], options: {} });
    const used = lock.tryAcquire();
    const kept = (function keeps() {
      return lock.tryAcquire(2);
    })();
    used.forget();
    return {
      lock,
      want: (pool, limits) => pool.acquireAsync(1, limits),
      holders: ['keeps'],
      end: () => kept.release(),
    };
  },
};

for (const [title, change] of Object.entries(CHANGES)) {
  test(
    `${title}: who waits is shown who holds on, and nobody once that has gone back`,
    watched(() =>
      withDoctor(QUIET, async (doctor) => {
        const { lock, want, holders, end } = change();
        const names = () =>
          about(doctor.report().waiting, lock).map((wait) => wait.holders.map(({ stack }) => stack[0].split(' ')[0]));
        const waiting = want(lock);
        assert.deepEqual(names(), [holders]);
        end();
        const next = await waiting;
        const controller = new AbortController();
        const other = want(lock, { signal: controller.signal });
        for (const [holder, ...more] of names()) assert.deepEqual([holder === holders[0], more], [false, []]);
        controller.abort();
        await other.then(
          (taken) => giveBack(taken),
          () => {},
        );
        giveBack(next);
      }),
    ),
  );
}
