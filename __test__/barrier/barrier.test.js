const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Barrier, BarrierMember, BrokenBarrierError } = require('../..');
const { startActors } = require('../helpers/actors.js');
const expected = require('../helpers/expected.js');
const { listen } = require('../helpers/messages.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 40;
const create = (parties, options) =>
  new Barrier(new SharedArrayBuffer(256), OFFSET, parties, { allowMainThread: true, ...options });
const broken = { name: 'BrokenBarrierError', code: 'ERR_LOCK_BROKEN', message: /\b40\b/ };

test('zeroed memory is a new barrier, and the constructor changes nothing', () => {
  const barrier = create(3);
  assert.deepEqual([barrier.parties, barrier.waiting, barrier.broken], [3, 0, false]);
  assert.deepEqual(new Uint8Array(barrier.buffer), new Uint8Array(256));
  assert.deepEqual([Barrier.BYTES, Barrier.ALIGN], [8, 4]);
});

test('waitAsync() is pending until all parties have come, and returns parties - 1 to the first and 0 to the last', async () => {
  const barrier = create(3);
  const first = barrier.waitAsync();
  const second = barrier.waitAsync();
  assert.equal(barrier.waiting, 2);
  const unsettled = await Promise.race([first, second, new Promise((resolve) => setImmediate(resolve, 'pending'))]);
  assert.equal(unsettled, 'pending');
  const last = barrier.waitAsync();
  assert.equal(barrier.waiting, 0);
  assert.deepEqual(await Promise.all([first, second, last]), [2, 1, 0]);
  assert.deepEqual(new Uint8Array(barrier.buffer), new Uint8Array(256));
});

test('a barrier of one party lets it pass at once', async () => {
  const barrier = create(1);
  assert.deepEqual([barrier.wait(), barrier.wait(0), await barrier.waitAsync()], [0, 0, 0]);
});

test('the last party passes with a timeout of 0', async () => {
  const barrier = create(2);
  const first = barrier.waitAsync();
  assert.equal(barrier.wait(0), 0);
  assert.equal(await first, 1);
});

test(
  'workers that block and an event loop that awaits pass in rounds, each with an index of its own',
  watched(async (_, threads) => {
    const PARTIES = 4;
    const ROUNDS = 200;
    const barrier = create(PARTIES);
    const arrivals = new Int32Array(barrier.buffer, 64, 1);
    const actors = await startActors(threads, PARTIES - 1, barrier.buffer);
    const results = actors.map((actor) =>
      actor.do(
        (here, offset, parties, rounds) => {
          const barrier = new here.sablock.Barrier(here.buffer, offset, parties);
          const arrivals = new Int32Array(here.buffer, 64, 1);
          const indices = [];
          for (let round = 0; round < rounds; round++) {
            Atomics.add(arrivals, 0, 1);
            indices.push(barrier.wait());
            if (Atomics.load(arrivals, 0) < parties * (round + 1)) throw new Error(`too early in round ${round}`);
          }
          return indices;
        },
        OFFSET,
        PARTIES,
        ROUNDS,
      ),
    );
    const mine = [];
    for (let round = 0; round < ROUNDS; round++) {
      Atomics.add(arrivals, 0, 1);
      mine.push(await barrier.waitAsync());
      assert.ok(Atomics.load(arrivals, 0) >= PARTIES * (round + 1));
    }
    const all = [mine, ...(await Promise.all(results))];
    for (let round = 0; round < ROUNDS; round++) {
      assert.deepEqual(all.map((indices) => indices[round]).sort(), [0, 1, 2, 3], `round ${round}`);
    }
  }),
);

test('another number of parties than the first arrival’s is a RangeError and breaks nothing', async () => {
  const barrier = create(3);
  const other = new Barrier(barrier.buffer, OFFSET, 2, { allowMainThread: true, name: 'step' });
  const first = barrier.waitAsync();
  const refusal = {
    code: 'ERR_OUT_OF_RANGE',
    name: 'RangeError',
    message: /'step' at byte offset 40 as one of 2 .* 3 in/,
  };
  assert.throws(() => other.wait(), refusal);
  assert.throws(() => other.wait(0), refusal);
  await assert.rejects(other.waitAsync(), refusal);
  await assert.rejects(other.waitAsync({ signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.deepEqual([barrier.waiting, barrier.broken], [1, false]);
  assert.deepEqual(await Promise.all([first, barrier.waitAsync(), barrier.waitAsync()]), [2, 1, 0]);
  // The barrier is empty: the next to come is the first.
  assert.deepEqual(await Promise.all([other.waitAsync(), other.waitAsync()]), [1, 0]);
});

for (const [how, timeOut] of [
  ['waitAsync()', (barrier) => barrier.waitAsync({ timeout: 20 })],
  ['waitAsync(0)', (barrier) => barrier.waitAsync(0)],
  ['wait()', async (barrier) => barrier.wait(20)],
  ['wait(0)', async (barrier) => barrier.wait({ timeout: 0 })],
]) {
  test(`a party that times out in ${how} gets a TimeoutError, all others a BrokenBarrierError until reset()`, async () => {
    const barrier = create(3, { name: 'step' });
    const others = [assert.rejects(barrier.waitAsync(), broken)];
    await assert.rejects(timeOut(barrier), {
      ...expected.timeout(OFFSET),
      message: /the barrier 'step' at byte offset 40\. The barrier is broken now/,
    });
    assert.deepEqual([barrier.broken, barrier.waiting], [true, 0]);
    others.push(assert.rejects(barrier.waitAsync(), broken), assert.rejects(barrier.waitAsync(0), broken));
    await Promise.all(others);
    assert.throws(() => barrier.wait(), BrokenBarrierError);
    barrier.reset();
    assert.equal(barrier.broken, false);
    assert.deepEqual(await Promise.all([barrier.waitAsync(), barrier.waitAsync(), barrier.waitAsync()]), [2, 1, 0]);
  });
}

test('a party that is aborted gets the reason of its signal, before or during its wait, and breaks the barrier', async () => {
  const reason = new Error('Aborted on purpose');
  for (const isBefore of [false, true]) {
    const barrier = create(3);
    const other = assert.rejects(barrier.waitAsync(), broken);
    const controller = new AbortController();
    if (isBefore) controller.abort(reason);
    const aborted = barrier.waitAsync({ signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(aborted, reason);
    assert.equal(barrier.broken, true);
    await other;
    await assert.rejects(barrier.waitAsync(), broken);
  }
});

test(
  'a party whose signal aborts by itself, as time goes by, passes with the others or breaks the barrier',
  watched(async () => {
    const seen = new Set();
    for (let look = 1; look < 10; look += 1) {
      const barrier = create(2);
      const first = barrier.waitAsync();
      let looks = 0;
      class Deadline extends EventTarget {
        reason = new Error('late');

        get aborted() {
          looks += 1;
          return looks >= look;
        }
      }
      const settled = await Promise.allSettled([first, barrier.waitAsync({ signal: new Deadline() })]);
      seen.add(settled.map(({ value, reason }) => value ?? reason.code ?? reason.message).join());
    }
    assert.deepEqual([...seen].sort(), ['1,0', 'ERR_LOCK_BROKEN,late']);
  }),
);

test('an abort after all have come breaks nothing', async () => {
  const barrier = create(2);
  const controller = new AbortController();
  const first = barrier.waitAsync({ signal: controller.signal });
  const last = barrier.waitAsync();
  controller.abort();
  assert.deepEqual(await Promise.all([first, last]), [1, 0]);
  assert.equal(barrier.broken, false);
});

test('reset() breaks the barrier for those who wait, and is new for those who come', async () => {
  const barrier = create(2);
  const waiting = assert.rejects(barrier.waitAsync(), broken);
  barrier.reset();
  assert.deepEqual([barrier.broken, barrier.waiting], [false, 0]);
  const next = [barrier.waitAsync(), barrier.waitAsync()];
  await waiting;
  assert.deepEqual(await Promise.all(next), [1, 0]);
  barrier.reset();
  assert.equal(barrier.broken, false);
});

test(
  'a blocked worker gets the BrokenBarrierError of a reset, a timeout and an abort by others',
  watched(async (_, threads) => {
    const barrier = create(3);
    const [worker] = await startActors(threads, 1, barrier.buffer);
    const breaks = [
      () => barrier.reset(),
      () => assert.throws(() => barrier.wait(1), expected.timeout()),
      () => assert.rejects(barrier.waitAsync({ signal: AbortSignal.abort() })),
    ];
    for (const breakIt of breaks) {
      barrier.reset();
      const blocked = worker.do((here, offset) => new here.sablock.Barrier(here.buffer, offset, 3).wait(), OFFSET);
      await threads.queued(barrier, 1);
      await breakIt();
      await assert.rejects(blocked, { code: 'ERR_LOCK_BROKEN' });
    }
  }),
);

test('join() and leave() change neither parties nor the words, and a member leaves once', () => {
  const barrier = create(2);
  const members = [barrier.join(), barrier.join()];
  assert.ok(members[0] instanceof BarrierMember);
  assert.equal(members[0].barrier, barrier);
  assert.deepEqual(barrier.inspect().holders, [{ threadId: 0, mode: 'member', count: 2 }]);
  assert.deepEqual(new Uint8Array(barrier.buffer), new Uint8Array(256));
  assert.deepEqual([members[0].leave(), members[0].leave()], [true, false]);
  members[1][Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  assert.equal(members[1].leave(), false);
  assert.deepEqual(barrier.inspect().holders, []);
  assert.throws(() => new BarrierMember(), TypeError);
});

test('inspect() and console.log() show members and who waits', async () => {
  const barrier = create(2, { name: 'step' });
  barrier.join();
  const first = barrier.waitAsync();
  const { name, holders, waiters } = barrier.inspect();
  assert.deepEqual([name, holders], ['step', [{ threadId: 0, mode: 'member', count: 1 }]]);
  assert.deepEqual(
    waiters.map(({ threadId, kind, mode }) => ({ threadId, kind, mode })),
    [{ threadId: 0, kind: 'async', mode: 'passage' }],
  );
  assert.match(inspect(barrier), /^Barrier 'step' \{ byteOffset: 40, holders: 1, waiters: 1 \}$/);
  barrier.wait();
  await first;
});

test('wait() refuses the main thread', () => {
  const barrier = new Barrier(new SharedArrayBuffer(8), 0, 1);
  assert.throws(() => barrier.wait(), { ...expected.mainThread(), message: /waitAsync\(\).*the Barrier with/ });
  assert.deepEqual([barrier.waiting, barrier.broken], [0, false]);
});

test('bad arguments are refused before anything changes', async () => {
  const buffer = new SharedArrayBuffer(64);
  for (const parties of [undefined, null, '2', 2n, {}]) {
    assert.throws(() => new Barrier(buffer, 0, parties), expected.invalidArgType());
  }
  for (const parties of [0, -1, 1.5, NaN, Infinity, 2 ** 31]) {
    assert.throws(() => new Barrier(buffer, 0, parties), expected.outOfRange());
  }
  assert.throws(() => new Barrier(new SharedArrayBuffer(4), 0, 1), expected.outOfRange());
  assert.throws(() => new Barrier(buffer, 60, 1), expected.outOfRange());
  assert.throws(() => new Barrier(new ArrayBuffer(8), 0, 1), expected.invalidArgType());
  const barrier = create(2);
  assert.throws(() => barrier.wait('5'), expected.invalidArgType(OFFSET));
  await assert.rejects(barrier.waitAsync('5'), expected.invalidArgType(OFFSET));
  await assert.rejects(barrier.waitAsync({ signal: { aborted: true } }), expected.invalidArgType(OFFSET));
  await assert.rejects(barrier.waitAsync({ signal: AbortSignal.abort(), ref: 1 }), expected.invalidArgType(OFFSET));
  assert.deepEqual([barrier.waiting, barrier.broken], [0, false]);
});

test('overwritten memory is ERR_LOCK_CORRUPT', async () => {
  const barrier = create(2);
  const words = new Int32Array(barrier.buffer, OFFSET, 2);
  for (const value of [1, 1 << 28, -1, (1 << 30) | 1]) {
    words[0] = value;
    assert.throws(() => barrier.wait(), expected.corrupt(OFFSET));
    await assert.rejects(barrier.waitAsync(), expected.corrupt(OFFSET));
    assert.throws(() => barrier.reset(), expected.corrupt(OFFSET));
    assert.equal(words[0], value);
  }
});

test('waits at a barrier are not published as waits for a lock', async (t) => {
  const messages = listen(t, 'sablock:contended');
  const barrier = create(2);
  await Promise.all([barrier.waitAsync(), barrier.waitAsync()]);
  assert.throws(() => barrier.wait(1), expected.timeout());
  assert.deepEqual(messages, []);
});
