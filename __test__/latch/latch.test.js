const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { inspect } = require('node:util');
const { Latch, LatchEntry } = require('../..');
const { endings } = require('../helpers/endings.js');
const { corrupt, invalidArgType, mainThread, outOfRange } = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { create, users } = require('../helpers/primitives.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const MOST = 2 ** 29 - 1;
const BLOCKING = { allowMainThread: true };
const terminate = endings.find(({ name }) => name === 'terminate()');

const createLatch = (options) => create('Latch', options);

test('zeroed memory is an open latch, and a new object changes nothing', () => {
  const { buffer, object, words } = createLatch({ ...BLOCKING, name: 'all done' });
  assert.deepEqual([Latch.BYTES, Latch.ALIGN, object.name], [4, 4, 'all done']);
  assert.deepEqual([object.count, object.wait(), words[0]], [0, true, 0]);
  object.add(3);
  assert.equal(new Latch(buffer, OFFSET).count, 3);
});

test('add() and countDown() change the count by any number, and countDown() returns what is left', () => {
  const { object } = createLatch();
  assert.equal(object.add(), undefined);
  object.add(4);
  assert.equal(object.count, 5);
  assert.equal(object.countDown(), 4);
  assert.equal(object.countDown(4), 0);
  object.add(MOST);
  assert.equal(object.countDown(MOST), 0);
});

test('a count that would leave its range is refused, and nothing changes', () => {
  const { object } = createLatch({ name: 'all done' });
  object.add(2);
  assert.throws(() => object.countDown(3), { ...outOfRange(), message: /'all done' at byte offset 1048.*count is 2/ });
  assert.throws(() => object.add(MOST - 1), outOfRange());
  assert.throws(() => object.add(2 ** 31), outOfRange());
  assert.equal(object.count, 2);
  object.add(MOST - 2);
  assert.throws(() => object.enter(), outOfRange());
  assert.deepEqual([object.count, object.inspect().holders], [MOST, []]);
});

test('the error of a count that would leave its range says by how much, what it is, and what it may be', async () => {
  const { object } = createLatch({ name: 'all done' });
  const place = `the latch 'all done' at byte offset ${OFFSET}`;
  const range = `its count is 2, and must stay between 0 and ${MOST}. Nothing was changed.`;
  object.add(2);
  for (const waiting of [undefined, object.waitAsync()]) {
    assert.throws(() => object.countDown(3), { message: `Cannot count down ${place} by 3: ${range}` });
    assert.throws(() => object.add(MOST), { message: `Cannot add ${MOST} to ${place}: ${range}` });
    if (waiting === undefined) continue;
    assert.equal(object.countDown(2), 0);
    assert.equal(await waiting, true);
  }
  object.add(MOST);
  assert.throws(() => object.enter(), { message: new RegExp(`^Cannot add 1 to ${place}: its count is ${MOST}, and `) });
});

test('an entry that could not leave, since the memory was overwritten, leaves once that is as it was', () => {
  const { object, words } = createLatch();
  const entry = object.enter();
  words[0] = -1;
  assert.throws(() => entry.leave(), corrupt(OFFSET));
  words[0] = 1;
  assert.deepEqual([entry.leave(), entry.leave(), object.count], [true, false, 0]);
});

test('bad arguments are refused before anything changes', async () => {
  const buffer = new SharedArrayBuffer(8);
  assert.throws(() => new Latch(), invalidArgType());
  assert.throws(() => new Latch(buffer, 6), outOfRange());
  assert.throws(() => new Latch(buffer, 0, 5), invalidArgType());
  const { object, words } = createLatch(BLOCKING);
  object.add(5);
  for (const verb of ['add', 'countDown']) {
    for (const n of ['1', null, 1n, {}]) assert.throws(() => object[verb](n), invalidArgType(OFFSET));
    for (const n of [0, -1, 1.5, Number.NaN, Infinity]) assert.throws(() => object[verb](n), outOfRange());
  }
  assert.throws(() => object.wait('5'), invalidArgType(OFFSET));
  await assert.rejects(object.waitAsync({ signal: 5 }), invalidArgType(OFFSET));
  assert.equal(words[0], 5);
  assert.throws(() => new LatchEntry(), TypeError);
});

test('wait() throws on the main thread, open or not, unless it is allowed', () => {
  const { buffer, object } = createLatch();
  assert.throws(() => object.wait(), mainThread(OFFSET));
  object.add();
  assert.throws(() => object.wait(0), mainThread(OFFSET));
  assert.equal(new Latch(buffer, OFFSET, BLOCKING).wait(5), false);
});

test(
  'who waits passes when the count is zero, blocked and by promises, whoever counts down, again and again',
  watched(async (_, threads) => {
    const { object } = createLatch();
    const [waiter, worker] = await users(threads, 2, object);
    for (let round = 0; round < 3; round++) {
      object.add(3);
      const waiting = [waiter.call('wait'), object.waitAsync(), object.waitAsync({ timeout: 1e9 })];
      await threads.queued(object, 3);
      assert.equal(object.countDown(), 2);
      assert.equal(await worker.call('countDown'), 1);
      assert.equal(object.inspect().waiters.length, 3, 'not yet');
      assert.equal(await worker.call('countDown'), 0);
      assert.deepEqual(await Promise.all(waiting), [true, true, true]);
      assert.equal(await object.waitAsync(), true);
    }
  }),
);

test(
  'who waited when it opened passes, though it closes again at once',
  watched(async (_, threads) => {
    const { object } = createLatch();
    const [waiter] = await users(threads, 1, object);
    object.add();
    const waiting = [waiter.call('wait'), object.waitAsync()];
    await threads.queued(object, 2);
    object.countDown();
    object.add();
    assert.deepEqual(await Promise.all(waiting), [true, true]);
    assert.equal(await waiter.call('wait', 0), false);
  }),
);

test(
  'a time that is over is false, an abort its reason, and neither counts anything',
  watched(async (_, threads) => {
    const { object, words } = createLatch();
    const [worker] = await users(threads, 1, object);
    object.add(2);
    const { value, ms } = await worker.call('timed', 'wait', 20);
    assert.deepEqual([value, ms >= 20], [false, true]);
    assert.equal(await object.waitAsync(5), false);
    const controller = new AbortController();
    const waiting = object.waitAsync({ signal: controller.signal });
    await threads.queued(object, 1);
    controller.abort('enough');
    await assert.rejects(waiting, (reason) => reason === 'enough');
    assert.deepEqual([object.inspect().waiters, words[0]], [[], 2]);
  }),
);

test('an entry is counted down once, by leave() or at the end of its block', () => {
  const { object } = createLatch();
  const entry = object.enter();
  const disposed = object.enter();
  assert.ok(entry instanceof LatchEntry);
  assert.deepEqual([entry.latch, object.count], [object, 2]);
  assert.deepEqual([entry.leave(), entry.leave(), object.count], [true, false, 1]);
  disposed[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  assert.deepEqual([disposed.leave(), object.count], [false, 0]);
});

test('an entry that others have counted down counts nothing down', () => {
  const { object } = createLatch();
  const [first, second] = [object.enter(), object.enter()];
  assert.equal(object.countDown(2), 0);
  assert.deepEqual([first.leave(), object.count], [false, 0]);
  assert.deepEqual(object.inspect().holders, [{ threadId: 0, mode: 'entry', count: 1 }], 'the second');
  object.add();
  assert.deepEqual([second.leave(), object.count], [true, 0], 'it has no identity');
  assert.deepEqual(object.inspect().holders, []);
});

test(
  'one enters and leaves a latch that somebody waits for, and the last one opens it',
  watched(async (_, threads) => {
    const { object } = createLatch();
    const [waiter] = await users(threads, 1, object);
    const first = object.enter();
    const waiting = [waiter.call('wait'), object.waitAsync()];
    await threads.queued(object, 2);
    const second = object.enter();
    assert.deepEqual([object.count, object.inspect().holders], [2, [{ threadId: 0, mode: 'entry', count: 2 }]]);
    assert.deepEqual([first.leave(), object.inspect().waiters.length], [true, 2]);
    assert.deepEqual([second.leave(), object.count], [true, 0]);
    assert.deepEqual(await Promise.all(waiting), [true, true]);
    assert.deepEqual(object.inspect().holders, []);
  }),
);

test(
  'inspect() shows who has entered and who waits, console.log() how many',
  watched(async (_, threads) => {
    const { object } = createLatch({ name: 'all done' });
    const [worker] = await users(threads, 1, object);
    await worker.call('enter');
    const waiting = object.waitAsync();
    const { name, holders, waiters } = object.inspect();
    assert.deepEqual([name, holders], ['all done', [{ threadId: worker.threadId, mode: 'entry', count: 1 }]]);
    assert.deepEqual(
      waiters.map(({ threadId, kind, mode }) => ({ threadId, kind, mode })),
      [{ threadId: 0, kind: 'async', mode: 'passage' }],
    );
    assert.equal(inspect(object), `Latch 'all done' { byteOffset: ${OFFSET}, holders: 1, waiters: 1 }`);
    assert.equal(await worker.call('leave'), true);
    assert.equal(await waiting, true);
  }),
);

for (const { name, end, options, needs: needed } of endings) {
  test(
    `the entries of a thread that ends by ${name} are counted down, and who waits passes`,
    needs(...needed, 'prompt ends'),
    watched(async (_, threads) => {
      const { object } = createLatch();
      const [doomed] = await users(threads, 1, object, options);
      const [waiter] = await users(threads, 1, object);
      const mine = object.enter();
      await doomed.run([['enter'], ['enter'], ['leave'], ['enter']]);
      assert.equal(object.count, 3);
      const waiting = [waiter.call('wait'), object.waitAsync()];
      await threads.queued(object, 2);
      await end(doomed);
      await threads.until('its entries are counted down', () => object.count === 1);
      assert.equal(object.inspect().waiters.length, 2);
      mine.leave();
      assert.deepEqual(await Promise.all(waiting), [true, true]);
    }),
  );
}

test(
  'a thread that ends while others have counted its entries down takes the count to zero at most',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { object, words } = createLatch();
    const [doomed] = await users(threads, 1, object);
    await doomed.run([['enter'], ['enter'], ['enter']]);
    object.countDown(2);
    await terminate.end(doomed);
    assert.equal(words[0], 0);
  }),
);

test('a word that no latch has is refused, and left alone', async () => {
  for (const value of [(2 ** 29) | 5, 2 ** 30, -1, -5, 1 << 31]) {
    const { object, words } = createLatch({ ...BLOCKING, name: 'all done' });
    const entry = object.enter();
    words[0] = value;
    const message = /the latch 'all done' at byte offset/;
    for (const act of ['add', 'countDown', 'enter', 'wait']) {
      assert.throws(() => object[act](), { ...corrupt(OFFSET), message }, `${act} ${value}`);
    }
    await assert.rejects(object.waitAsync(), corrupt(OFFSET));
    assert.throws(() => entry.leave(), corrupt(OFFSET));
    assert.equal(words[0], value);
    assert.deepEqual(object.inspect().holders, [{ threadId: 0, mode: 'entry', count: 1 }], 'the entry is still in');
  }
});

test(
  'counts of all threads at once add up, and nobody who waits is forgotten',
  watched(async (_, threads) => {
    const { object, words } = createLatch();
    const workers = await users(threads, 3, object);
    let isOver = false;
    const done = Promise.all(workers.map((worker) => worker.call('churn', 20_000))).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      object.add();
      const waiting = object.waitAsync();
      const entry = object.enter();
      object.countDown();
      entry.leave();
      await waiting;
      // A latch that its own thread opens settles in a microtask, and only a turn brings the workers' answers.
      await nextTurn();
    }
    await done;
    assert.equal(await object.waitAsync(), true);
    assert.equal(words[0], 0);
    assert.deepEqual(object.inspect(), { name: null, holders: [], waiters: [] });
  }),
);
