// A query shows everybody at one moment.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const clock = require('../../lib/load/clock.js');
const { binding, thread } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { readRows } = require('../../lib/named/rows.js');
const { createFolder } = require('../helpers/folder.js');
const { deferred, hold, modesOf, pendingFor, rowsOf, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const clientOf = (threadId) => `node-${process.pid}-${threadId}`;

test('while nothing is held or asked for, both lists are empty', async () => {
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
});

test('a holder shows with its name, mode, client, process, thread, and for how long it has held', async () => {
  const held = await hold('one');
  const before = (await locks.query()).held;
  assert.deepEqual(before, [
    { name: 'one', mode: 'exclusive', clientId: clientOf(0), pid: process.pid, threadId: 0, heldMs: before[0].heldMs },
  ]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [{ heldMs }] = (await locks.query()).held;
  assert.ok(heldMs >= before[0].heldMs + 15, `${before[0].heldMs} ms, then ${heldMs} ms`);
  held.release();
  await held.request;
});

test('who has held for no time at all shows as a holder', async (t) => {
  t.mock.method(binding, 'queryNames', () => ({ names: 'ab', rows: Float64Array.from([1, 0, 7, 0, 2, 1, 8, -1]) }));
  const { held, pending } = await locks.query();
  const row = { name: 'a', mode: 'exclusive', clientId: clientOf(7), pid: process.pid, threadId: 7, heldMs: 0 };
  assert.deepEqual([held, pending], [[row], [{ name: 'b', mode: 'shared', clientId: clientOf(8) }]]);
});

test('those who share a name, and those who wait, show once each, in the order in which they came', async () => {
  const holders = await Promise.all([1, 2].map(() => hold('many', { mode: 'shared' })));
  const waiting = ['exclusive', 'shared', 'shared', 'exclusive'].map((mode) =>
    locks.request('many', { mode }, () => {}),
  );
  assert.deepEqual(await modesOf('many'), {
    held: ['shared', 'shared'],
    pending: ['exclusive', 'shared', 'shared', 'exclusive'],
  });
  assert.deepEqual(rowsOf((await locks.query()).pending, 'many')[0], {
    name: 'many',
    mode: 'exclusive',
    clientId: clientOf(0),
  });
  for (const { release } of holders) release();
  await Promise.all(waiting);
  assert.deepEqual(await modesOf('many'), { held: [], pending: [] });
});

test('those who wait for several names show in the order in which they came, whatever they wait for', async () => {
  const names = ['waited a', 'waited b', 'waited c'];
  const held = await Promise.all(names.map((name) => locks.acquireAsync(name)));
  // More of the first one than of the others, so that their places in the lines differ from those in time.
  const [a, b, c] = names;
  const order = [a, a, b, a, c, b, a, c];
  const waiting = order.map((name) => locks.request(name, () => {}));
  assert.deepEqual(
    (await locks.query()).pending.map(({ name }) => name),
    order,
  );
  for (const lock of held) lock.unlock();
  await Promise.all(waiting);
});

test('of many names everybody shows, though other code runs before all of them are listed', async () => {
  const names = Array.from({ length: 5000 }, (_, index) => `${index}${'\u{1F512}'.repeat(index % 3)}`);
  const held = [];
  for (const name of names) held.push(await locks.acquireAsync(name));
  const waiting = locks.request(names[0], { signal: AbortSignal.timeout(60_000) }, () => {});
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const asked = locks.query();
  for (const lock of held) lock.unlock();
  const seen = await asked;
  isOver = true;
  assert.ok(turns >= 2, `${turns} turns`);
  assert.deepEqual(
    seen.held.map(({ name, mode, clientId }) => [name, mode, clientId]),
    names.map((name) => [name, 'exclusive', clientOf(0)]),
  );
  assert.deepEqual(seen.pending, [{ name: names[0], mode: 'exclusive', clientId: clientOf(0) }]);
  await waiting;
});

test('of each number of rows all are listed, in their order, also at the ends of the turns in which they are made', async () => {
  for (const count of [0, 1, 1999, 2000, 2001, 4000, 4001]) {
    const texts = Array.from({ length: count }, (_, index) => `n${index}`);
    let end = 0;
    const rows = texts.flatMap((text, index) => {
      end += text.length;
      return [end, index, -index, 2 * index];
    });
    const seen = [];
    await readRows({ names: texts.join(''), rows: Float64Array.from(rows) }, (...row) => seen.push(row));
    assert.deepEqual(
      seen,
      texts.map((text, index) => [text, index, -index, 2 * index]),
    );
  }
});

test('what it shows is as of the call, not of when the promise is awaited', async () => {
  const held = await hold('moment');
  const seen = locks.query();
  held.lock.unlock();
  assert.equal((await seen).held.length, 1);
  assert.equal((await locks.query()).held.length, 0);
  held.release();
});

test(
  'every thread shows, and each sees the same, also a deadlock of two of them',
  watched(async (_, threads) => {
    const actors = await startActors(threads, 2);
    const names = ['first', 'second'];
    for (const [index, actor] of actors.entries()) {
      actor.do(
        (here, name, flag) => {
          here.sablock.locks.request(name, () => {
            here.raise(flag);
            return new Promise(() => {});
          });
        },
        names[index],
        index,
      );
      await threads.raised(index);
    }
    for (const [index, actor] of actors.entries()) {
      actor.do((here, name) => void here.sablock.locks.request(name, () => {}), names[1 - index]);
      await pendingFor(threads, names[1 - index], 1);
    }
    const seen = await locks.query();
    const clients = (list) => list.map(({ name, clientId }) => [name, clientId]);
    const [first, second] = actors.map(({ threadId }) => clientOf(threadId));
    assert.deepEqual(clients(seen.held), [
      ['first', first],
      ['second', second],
    ]);
    assert.deepEqual(
      seen.held.map(({ pid, threadId }) => [pid, threadId]),
      actors.map(({ threadId }) => [process.pid, threadId]),
    );
    assert.deepEqual(clients(seen.pending), [
      ['second', first],
      ['first', second],
    ]);
    const there = await actors[0].do((here) => here.sablock.locks.query());
    assert.deepEqual([clients(there.held), clients(there.pending)], [clients(seen.held), clients(seen.pending)]);
  }),
);

test(
  'at every moment of a storm exactly one holds an exclusive name',
  watched(async (_, threads) => {
    const actors = await startActors(threads, 2);
    const STOP = 0;
    const storms = actors.map((actor) =>
      actor.do(async (here, stop) => {
        let count = 0;
        while (!here.isRaised(stop)) {
          await Promise.all([1, 2, 3].map(() => here.sablock.locks.request('storm', () => {})));
          count += 3;
        }
        return count;
      }, STOP),
    );
    const mine = [];
    for (let index = 0; index < 2_000; index++) {
      const { held } = await modesOf('storm');
      assert.ok(held.length <= 1, `${held.length} hold it`);
      if (index % 10 === 0) mine.push(locks.request('storm', () => {}));
      if (index % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    threads.raise(STOP);
    const counts = await Promise.all(storms);
    await Promise.all(mine);
    assert.ok(
      counts.every((count) => count > 0),
      `${counts}`,
    );
    assert.deepEqual(await modesOf('storm'), { held: [], pending: [] });
  }),
);

test(
  'outside of the process it asks for the names that this one holds or waits for, once each, and shows no hold that went there since',
  watched(async (t) => {
    const manager = new LockManager({ directory: createFolder(t) });
    const { outer } = thread.words.get(LockManager)(manager);
    const mine = await manager.acquireAsync(['long ago', 'since']);
    const elsewhere = deferred();
    outer.tryLock = () => null;
    outer.lockAsync = () => ({ promise: elsewhere.promise, cancel: () => {} });
    const waits = ['since', 'elsewhere'].map((name) => manager.request(name, { timeout: 60_000 }, () => {}));
    const refused = waits.map((wait) => assert.rejects(wait, { code: 'ERR_LOCK_TIMEOUT' }));
    await turns();
    // A time of -1 is of a holder that a store knows.
    const times = { 'long ago': 1e6, since: 0, elsewhere: 0, 'of others': 0 };
    const rows = Object.entries({ ...times }).map(([name, heldMs]) => ({ name, heldMs, pid: 1 }));
    rows.push({ name: 'since', heldMs: -1, pid: 1 });
    let names;
    outer.query = async (asked) => {
      names = asked;
      const begin = clock.now();
      while (clock.now() === begin);
      return rows;
    };
    const { held } = await manager.query();
    assert.deepEqual(names, ['long ago', 'since', 'elsewhere']);
    assert.deepEqual(
      held.map(({ name, heldMs, pid }) => (pid === 1 ? [name, heldMs] : name)),
      ['long ago', 'since', ['long ago', 1e6], ['elsewhere', 0], ['of others', 0], ['since', -1]],
    );
    for (const lock of mine.locks) lock.unlock();
    elsewhere.resolve(null);
    await Promise.all(refused);
  }),
);
