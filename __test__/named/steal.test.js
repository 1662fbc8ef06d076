// Locks that are taken from those who hold them.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { askForName, startActors, startBusyActor } = require('../helpers/actors.js');
const { deferred, hold, modesOf, pendingFor, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const stolen = { name: 'AbortError', message: /stolen/ };
const steal = (name, callback) => locks.request(name, { steal: true }, callback);

test('a free name can be stolen too, and is not marked by that', async () => {
  assert.deepEqual(await steal('free', ({ abandoned, mode }) => [abandoned, mode]), [false, 'exclusive']);
});

test('a stolen lock: its request rejects, its signal aborts, and it can be unlocked no more', async () => {
  const held = await hold('stolen');
  const { signal } = held.lock;
  const thief = await hold('stolen', { steal: true });
  assert.equal(thief.lock.abandoned, true);
  await assert.rejects(held.request, stolen);
  assert.ok((await held.request.catch((error) => error)) instanceof DOMException);
  assert.deepEqual([signal.aborted, signal.reason.name, held.lock.locked], [true, 'AbortError', false]);
  assert.equal(held.lock.signal, signal);
  assert.equal(held.lock.unlock(), false);
  held.release();
  await turns();
  assert.deepEqual(await modesOf('stolen'), { held: ['exclusive'], pending: [] });
  thief.release();
  await thief.request;
});

test('unlock() of a stolen lock returns false in the same turn as well, and the request rejects all the same', async () => {
  const held = await hold('same turn');
  const thief = steal('same turn', () => {});
  assert.equal(held.lock.unlock(), false);
  assert.equal(held.lock.signal.aborted, true);
  await assert.rejects(held.request, stolen);
  await thief;
});

test('a lock that is stolen before its callback begins: the callback runs, and the request rejects', async () => {
  let hasRun = false;
  const first = locks.request('before', () => {
    hasRun = true;
  });
  const thief = steal('before', () => 'thief');
  await assert.rejects(first, stolen);
  assert.equal(await thief, 'thief');
  assert.equal(hasRun, true);
});

test('a lock that is stolen before its callback begins, which goes on for ever: the request rejects', async () => {
  const endless = () => new Promise(() => {});
  const requests = [
    locks.request('endless', endless),
    steal('endless', endless),
    steal('endless', endless),
    steal('endless', (lock) => lock.markConsistent()),
  ];
  const ends = await Promise.allSettled(requests);
  assert.deepEqual(
    ends.map(({ status, reason }) => [status, reason?.name]),
    [...Array(3).fill(['rejected', 'AbortError']), ['fulfilled', undefined]],
  );
});

test('a lock that is stolen inside a function fails its call when that returns, of several names too, whichever it is', async () => {
  const blocking = new LockManager({ allowMainThread: true });
  for (const names of ['a', ['a'], ['a', 'b'], ['a', 'b', 'c']]) {
    for (const victim of [names].flat()) {
      const theft = () => {
        const thief = steal(victim, (lock) => lock.markConsistent());
        thief.catch(() => {});
      };
      const title = `${victim} of ${names}`;
      await assert.rejects(locks.request(names, theft), stolen, `request of ${title}`);
      assert.throws(() => blocking.requestSync(names, theft), stolen, `requestSync of ${title}`);
      for (const name of [names].flat()) assert.equal(await locks.request(name, ({ abandoned }) => abandoned), false);
    }
  }
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
});

test('a thief goes before all who wait, and they stay in line', async () => {
  const held = await hold('line');
  const order = [];
  const waiting = [1, 2].map((label) => locks.request('line', () => order.push(label)));
  const thief = steal('line', () => order.push('thief'));
  await assert.rejects(held.request, stolen);
  await Promise.all([...waiting, thief]);
  assert.deepEqual(order, ['thief', 1, 2]);
});

test('all who share a name lose it', async () => {
  const sharers = await Promise.all([1, 2, 3].map(() => hold('sharers', { mode: 'shared' })));
  await steal('sharers', () => {});
  for (const { request } of sharers) await assert.rejects(request, stolen);
  assert.deepEqual(await modesOf('sharers'), { held: [], pending: [] });
});

test('the last thief wins', async () => {
  const first = await hold('last', { steal: true });
  const second = await hold('last', { steal: true });
  await assert.rejects(first.request, stolen);
  second.release('mine');
  assert.equal(await second.request, 'mine');
});

test('the mark of a stolen lock stays until a holder says that all is well', async () => {
  await hold('mark');
  await steal('mark', ({ abandoned }) => assert.equal(abandoned, true));
  assert.equal(await locks.request('mark', { mode: 'shared' }, ({ abandoned }) => abandoned), true);
  await locks.request('mark', (lock) => {
    lock.markConsistent();
    assert.equal(lock.abandoned, false);
  });
  assert.equal(await locks.request('mark', ({ abandoned }) => abandoned), false);
});

test('what acquireAsync() returned can be stolen', async () => {
  const lock = await locks.acquireAsync('guard');
  const { signal } = lock;
  const aborted = deferred();
  signal.addEventListener('abort', () => aborted.resolve());
  const thief = await locks.acquireAsync('guard', { steal: true });
  await aborted.promise;
  assert.deepEqual([lock.locked, lock.abandoned, lock.unlock()], [false, false, false]);
  assert.equal(thief.unlock(), true);
});

test(
  'a lock is stolen from another thread, whose request rejects there, and the process lives',
  watched(async (_, threads) => {
    const [victim] = await startActors(threads, 1);
    const held = victim.do((here) =>
      here.sablock.locks
        .request('across', (lock) => {
          here.lock = lock;
          here.raise(0);
          return new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
        })
        .catch(({ name }) => [name, here.lock.locked]),
    );
    await threads.raised(0);
    assert.equal(await steal('across', ({ abandoned }) => abandoned), true);
    assert.deepEqual(await held, ['AbortError', false]);
  }),
);

test(
  'requestSync() throws an AbortError after its function, if the lock was stolen meanwhile',
  watched(async (_, threads) => {
    const [victim] = await startActors(threads, 1);
    const [INSIDE, GO] = [0, 1];
    const held = victim.do(
      (here, inside, go) => {
        let hasEnded = false;
        try {
          here.sablock.locks.requestSync('blocked victim', () => {
            here.raise(inside);
            here.waitForFlag(go);
            hasEnded = true;
          });
        } catch ({ name }) {
          return [name, hasEnded];
        }
        return 'nothing was thrown';
      },
      INSIDE,
      GO,
    );
    await threads.raised(INSIDE);
    await steal('blocked victim', () => threads.raise(GO));
    assert.deepEqual(await held, ['AbortError', true]);
  }),
);

test(
  'a lock that was granted to a busy thread is stolen before its code learns of it',
  watched(async (_, threads) => {
    const held = await hold('granted to the busy');
    const busy = await startBusyActor(threads, askForName, 'granted to the busy');
    await pendingFor(threads, 'granted to the busy', 1);
    held.lock.unlock();
    await steal('granted to the busy', () => {});
    busy.goOn();
    assert.equal(await busy.asked, 'AbortError');
    assert.deepEqual(await modesOf('granted to the busy'), { held: [], pending: [] });
    held.release();
    await held.request;
  }),
);

test('whoever holds one name beside thousands that are released learns that it was stolen', async () => {
  const released = await Promise.all(
    Array.from({ length: 2000 }, (_, index) => locks.acquireAsync(`released ${index}`)),
  );
  const last = await locks.acquireAsync('last of many');
  const { signal } = last;
  for (const lock of released) lock.unlock();
  await steal('last of many', (lock) => lock.markConsistent());
  assert.deepEqual([signal.aborted, last.locked], [true, false]);
});
