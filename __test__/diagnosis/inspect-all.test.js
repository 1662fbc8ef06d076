const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const sablock = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { create } = require('../helpers/primitives.js');
const { watched } = require('../helpers/threads.js');

const { Condition, LockTable, Mutex, inspectAll, waitAsync } = sablock;

const byOffset = (all) => all.sort((a, b) => a.byteOffset - b.byteOffset);
const withoutTimes = ({ waiters, ...rest }) => ({ ...rest, waiters: waiters.map(({ waitedMs, ...waiter }) => waiter) });
const inspectionOf = (kind, object) => withoutTimes({ kind, ...object.inspect(), byteOffset: object.byteOffset });

/** Each kind of primitive, held so that somebody has to wait: how to make it, hold it, wait for it, and what is seen then. */
const kinds = {
  Mutex: {
    hold: (mutex) => mutex.tryAcquire(),
    wait: (mutex, options) => mutex.lockAsync(options),
    holders: [{ mode: 'exclusive', count: 1 }],
    mode: 'exclusive',
  },
  RwLock: {
    hold: (rw) => [rw.read.tryAcquire(), rw.read.tryLock()],
    wait: (rw, options) => rw.write.lockAsync(options),
    holders: [{ mode: 'shared', count: 2 }],
    mode: 'exclusive',
  },
  Semaphore: {
    args: [3],
    hold: (semaphore) => semaphore.tryAcquire(2),
    wait: (semaphore, options) => semaphore.acquireAsync(2, options),
    holders: [{ mode: 'permits', count: 2 }],
    mode: 'permits',
  },
  Latch: {
    hold: (latch) => latch.enter(),
    wait: (latch, options) => latch.waitAsync(options),
    holders: [{ mode: 'entry', count: 1 }],
    mode: 'passage',
  },
  Barrier: {
    args: [2],
    hold: (barrier) => barrier.join(),
    wait: (barrier, options) => barrier.waitAsync(options),
    holders: [{ mode: 'member', count: 1 }],
    mode: 'passage',
  },
  Exchanger: { wait: (exchanger, options) => exchanger.exchangeAsync(1, options), holders: [], mode: 'passage' },
  ManualResetEvent: { wait: (event, options) => event.waitAsync(options), holders: [], mode: 'passage' },
  AutoResetEvent: { wait: (event, options) => event.waitAsync(options), holders: [], mode: 'passage' },
  Once: {
    hold: (once) => once.run(() => new Promise(() => {})),
    wait: (once, options) => once.run(() => {}, options),
    holders: [{ mode: 'exclusive', count: 1 }],
    mode: 'exclusive',
  },
};

for (const [kind, { args = [], hold = () => {}, wait, holders, mode }] of Object.entries(kinds)) {
  test(`inspectAll() shows a ${kind} that somebody waits for as its inspect() does, with its kind and name`, async () => {
    const { object } = create(kind, { name: `a ${kind}` }, ...args);
    const held = hold(object);
    assert.deepEqual(inspectAll(), [], 'nobody waits');
    const controller = new AbortController();
    const waiting = assert.rejects(wait(object, { signal: controller.signal }), { name: 'AbortError' });

    const [seen, ...others] = inspectAll();
    assert.deepEqual(others, []);
    assert.deepEqual(withoutTimes(seen), inspectionOf(kind, object));
    assert.deepEqual(
      [seen.kind, seen.name, seen.byteOffset, seen.holders],
      [kind, `a ${kind}`, OFFSET, holders.map((holder) => ({ threadId, ...holder }))],
    );
    const [{ waitedMs, ...waiter }] = seen.waiters;
    assert.deepEqual(waiter, { threadId, kind: 'async', mode });
    assert.ok(waitedMs >= 0 && waitedMs < 10_000);

    controller.abort();
    await waiting;
    assert.deepEqual(inspectAll(), []);
    assert.ok(held !== null);
  });
}

/** Has somebody wait for each of these mutexes; returns their names by their offsets, as inspectAll() shows them. */
const namesOf = async (mutexes) => {
  const controller = new AbortController();
  const waits = mutexes.map((mutex) => {
    mutex.tryLock();
    return mutex.lockAsync({ signal: controller.signal });
  });
  const names = byOffset(inspectAll()).map(({ byteOffset, name }) => [byteOffset, name]);
  controller.abort();
  for (const wait of waits) await assert.rejects(wait, { name: 'AbortError' });
  for (const mutex of mutexes) mutex.unlock();
  return names;
};

test('inspectAll() gives the name of a table to each of its locks, the first and the last too, and to no neighbour', async () => {
  const buffer = new SharedArrayBuffer(48);
  const before = new Mutex(buffer, 0);
  const rows = new LockTable(buffer, 4, 3, { name: 'rows' });
  const behind = new Mutex(buffer, 16);
  const more = new LockTable(buffer, 20, 2, { name: 'more' });
  // Directly behind it.
  const single = new LockTable(buffer, 28, 1, { name: 'single' });
  const unnamed = new LockTable(buffer, 32, 2);
  const named = new Mutex(buffer, 40, { name: 'named' });
  const last = new Mutex(buffer, 44);
  const all = [before, behind, named, last];
  for (const table of [rows, more, single, unnamed]) {
    for (let index = 0; index < table.length; index++) all.push(table.at(index));
  }
  const expected = [
    [0, null],
    [4, 'rows'],
    [8, 'rows'],
    [12, 'rows'],
    [16, null],
    [20, 'more'],
    [24, 'more'],
    [28, 'single'],
    [32, null],
    [36, null],
    [40, 'named'],
    [44, null],
  ];
  assert.deepEqual(await namesOf(all), expected);
  // The same offsets elsewhere.
  const other = new SharedArrayBuffer(48);
  const others = expected.map(([byteOffset]) => new Mutex(other, byteOffset));
  assert.deepEqual(
    await namesOf(others),
    expected.map(([byteOffset]) => [byteOffset, null]),
  );
  // Their names are known as long as they are used.
  assert.equal([rows, more, single, unnamed].length, 4);
});

test('inspectAll() knows the names of very many locks, the first and the last', async () => {
  const COUNT = 300;
  const buffer = new SharedArrayBuffer(4 * COUNT);
  const mutexes = Array.from(
    { length: COUNT },
    (_, index) => new Mutex(buffer, 4 * index, { name: `number ${index}` }),
  );
  const expected = mutexes.map(({ byteOffset, name }) => [byteOffset, name]);
  assert.deepEqual(await namesOf(mutexes), expected);
});

/** The names that `inspectAll()` gives to an object of this kind in the buffer, at 16, while somebody waits for it. */
async function namesWhileAwaited(kind, buffer) {
  const { args = [], hold = () => {}, wait } = kinds[kind];
  const object = new sablock[kind](buffer, 16, ...args);
  const held = hold(object);
  const controller = new AbortController();
  const waiting = assert.rejects(wait(object, { signal: controller.signal }), { name: 'AbortError' });
  const names = inspectAll().map(({ byteOffset, name }) => [byteOffset, name]);
  controller.abort();
  await waiting;
  // Else the hold might be collected.
  assert.notEqual(held, null);
  return names;
}

for (const kind of Object.keys(kinds)) {
  test(`inspectAll() gives a ${kind} without a name none of the tables directly before and behind it`, async () => {
    const { BYTES } = sablock[kind];
    const buffer = new SharedArrayBuffer(16 + BYTES + 16);
    const tables = [0, 16 + BYTES].map((offset) => new LockTable(buffer, offset, 4, { name: `rows at ${offset}` }));
    const names = await namesWhileAwaited(kind, buffer);
    assert.deepEqual(names, [[16, null]]);
    assert.equal(tables.length, 2);
  });
}

for (const kind of Object.keys(kinds)) {
  const isOfTable = kind === 'Mutex';
  test(`inspectAll() shows a ${kind} in the memory of a table with ${isOfTable ? 'its' : 'no'} name`, async () => {
    const buffer = new SharedArrayBuffer(64);
    const table = new LockTable(buffer, 0, 16, { name: 'rows' });
    const names = await namesWhileAwaited(kind, buffer);
    assert.deepEqual(names, [[16, isOfTable ? 'rows' : null]]);
    assert.equal(table.length, 16);
  });
}

for (const kind of Object.keys(kinds)) {
  test(`inspectAll() gives a ${kind} the name of no other kind that its memory was, and a lock of a table its own`, async () => {
    const [was, rows] = [new SharedArrayBuffer(64), new SharedArrayBuffer(64)];
    const make = (other, buffer, name) => new sablock[other](buffer, 16, ...(kinds[other].args ?? []), { name });
    const others = Object.keys(kinds).filter((other) => other !== kind);
    const made = others.map((other) => make(other, was, `of a ${other}`));
    assert.deepEqual(await namesWhileAwaited(kind, was), [[16, null]]);
    made.push(make(kind, rows, 'own'), new LockTable(rows, 0, 16, { name: 'rows' }));
    assert.deepEqual(await namesWhileAwaited(kind, rows), [[16, 'own']]);
    assert.equal(made.length, others.length + 2);
  });
}

test('inspectAll() shows waits for conditions, and those of wait() and waitAsync(), with the names of conditions', async () => {
  const { buffer, mutex } = createMutex({ name: 'the mutex' });
  const condition = new Condition(buffer, OFFSET, { name: 'the condition' });
  const controller = new AbortController();
  const { signal } = controller;
  await mutex.lockAsync();
  const waits = [condition.waitAsync(mutex, { signal })];
  waits.push(waitAsync(new Int32Array(buffer), 0, 0, undefined, { signal }).value);
  for (const wait of waits) wait.catch(() => {});
  const shown = byOffset(inspectAll()).map(withoutTimes);
  const one = { holders: [], waiters: [{ threadId, kind: 'async', mode: 'passage' }] };
  assert.deepEqual(shown, [
    { name: null, kind: 'Condition', byteOffset: 0, ...one },
    // At the mutex's own address, which is another name's.
    { name: 'the condition', kind: 'Condition', byteOffset: OFFSET, ...one },
  ]);
  controller.abort();
  for (const wait of waits) await assert.rejects(wait, { name: 'AbortError' });
  mutex.unlock();
});

test('inspectAll() shows nothing where nobody waits, held or not', () => {
  const { mutex } = createMutex();
  mutex.tryLock();
  assert.deepEqual(inspectAll(), []);
  mutex.unlock();
});

test(
  'inspectAll() shows each mutex that somebody waits for, in whatever thread, as inspect() does',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const other = new Mutex(buffer, OFFSET + 4, { name: 'the other' });
    const elsewhere = new Mutex(new SharedArrayBuffer(OFFSET + 12), OFFSET + 8);
    const [blocking, awaiting] = await threads.puppets(2, buffer);
    for (const held of [mutex, other, elsewhere]) held.tryLock();
    const waits = [
      elsewhere.lockAsync(),
      blocking.run([['lock'], ['unlock']]),
      awaiting.run([
        [OFFSET + 4, 'lockAsync'],
        [OFFSET + 4, 'unlock'],
      ]),
    ];
    for (const held of [mutex, other, elsewhere]) await threads.queued(held, 1);

    const all = byOffset(inspectAll());
    const expected = [mutex, other, elsewhere].map((held) => inspectionOf('Mutex', held));
    assert.deepEqual(all.map(withoutTimes), expected);
    assert.deepEqual(
      all.map(({ name, waiters }) => [name, waiters[0].threadId, waiters[0].kind]),
      [
        [null, blocking.threadId, 'blocking'],
        ['the other', awaiting.threadId, 'async'],
        [null, threadId, 'async'],
      ],
    );
    assert.deepEqual(all[0].holders, [{ threadId, mode: 'exclusive', count: 1 }]);

    for (const held of [mutex, other, elsewhere]) held.unlock();
    await Promise.all(waits);
    elsewhere.unlock();
    assert.deepEqual(inspectAll(), []);
  }),
);

test(
  'inspectAll() gives whole snapshots while locks change hands',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const workers = await threads.puppets(2, buffer);
    const running = workers.map((worker) => worker.call('holdAgainAndAgain', 0));
    const ids = workers.map((worker) => worker.threadId);
    let seen = 0;
    for (let count = 0; count < 2000 || seen === 0; count++) {
      for (const { byteOffset, holders, waiters } of inspectAll()) {
        seen += 1;
        assert.equal(byteOffset, OFFSET);
        assert.ok(holders.every((holder) => ids.includes(holder.threadId)));
        assert.ok(waiters.length > 0 && waiters.every((waiter) => ids.includes(waiter.threadId)));
      }
      if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    threads.raise(0);
    await Promise.all(running);
  }),
);
