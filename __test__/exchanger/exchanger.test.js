// Two calls meet and swap a value each: blocking, awaited, mixed, with limits, and under load.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Exchanger, inspectAll } = require('../..');
const { startActors } = require('../helpers/actors.js');
const expected = require('../helpers/expected.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 40;
const create = (options) => new Exchanger(new SharedArrayBuffer(256), OFFSET, { allowMainThread: true, ...options });
const isNew = (exchanger) => new Uint8Array(exchanger.buffer, OFFSET, 8).every((byte) => byte === 0);

test('zeroed memory is a new exchanger, and the constructor changes nothing', () => {
  const exchanger = create({ name: 'trade' });
  assert.deepEqual([exchanger.byteOffset, exchanger.name, create().name], [OFFSET, 'trade', null]);
  assert.deepEqual(new Uint8Array(exchanger.buffer), new Uint8Array(256));
  assert.deepEqual([Exchanger.BYTES, Exchanger.ALIGN], [8, 4]);
});

test('each of two that meet gets what the other brought, whatever number of 32 bits that is', async () => {
  const exchanger = create();
  for (const [mine, theirs] of [
    [1, 2],
    [0, 0],
    [-1, 2 ** 31 - 1],
    [-(2 ** 31), 0],
  ]) {
    const first = exchanger.exchangeAsync(mine);
    assert.equal(await exchanger.exchangeAsync(theirs), mine);
    assert.equal(await first, theirs);
    assert.ok(isNew(exchanger));
  }
});

test('the third waits for a fourth, though the first has not taken its value yet', async () => {
  const exchanger = create();
  const waits = [1, 2, 3].map((value) => exchanger.exchangeAsync(value));
  assert.equal(exchanger.inspect().waiters.length, 1);
  waits.push(exchanger.exchangeAsync(4));
  assert.deepEqual(await Promise.all(waits), [2, 1, 4, 3]);
});

test('exchange() meets a promise of its own thread', async () => {
  const exchanger = create();
  const first = exchanger.exchangeAsync(7);
  assert.equal(exchanger.exchange(8), 7);
  assert.equal(await first, 8);
});

test('exchange() blocks on workers only', () => {
  const exchanger = new Exchanger(new SharedArrayBuffer(48), OFFSET);
  assert.throws(() => exchanger.exchange(1), expected.mainThread(OFFSET));
  assert.ok(isNew(exchanger));
});

test('a value that is no integer of 32 bits is refused before anything changes', async () => {
  const exchanger = create();
  for (const value of [undefined, null, '1', 1n, {}]) {
    assert.throws(() => exchanger.exchange(value), expected.invalidArgType(OFFSET));
    await assert.rejects(exchanger.exchangeAsync(value), expected.invalidArgType(OFFSET));
  }
  for (const value of [0.5, Number.NaN, 2 ** 31, -(2 ** 31) - 1, Infinity]) {
    assert.throws(() => exchanger.exchange(value), expected.outOfRange());
    await assert.rejects(exchanger.exchangeAsync(value), expected.outOfRange());
  }
  assert.throws(() => exchanger.exchange(1, '5'), expected.invalidArgType(OFFSET));
  await assert.rejects(exchanger.exchangeAsync(1, { ref: 1 }), expected.invalidArgType(OFFSET));
  assert.ok(isNew(exchanger));
});

test('without a partner a wait ends with a TimeoutError, and nobody gets its value', async () => {
  const exchanger = create({ name: 'trade' });
  assert.throws(() => exchanger.exchange(1, 0), expected.timeout(OFFSET));
  assert.throws(() => exchanger.exchange(1, { timeout: 5 }), /exchange\(\) timed out after 5 ms .* 'trade' at byte/);
  await assert.rejects(exchanger.exchangeAsync(2, 0), expected.timeout(OFFSET));
  await assert.rejects(exchanger.exchangeAsync(2, 5), expected.timeout(OFFSET));
  assert.ok(isNew(exchanger));
  const first = exchanger.exchangeAsync(3);
  assert.equal(exchanger.exchange(4, 0), 3);
  assert.equal(await first, 4);
});

test('an abort takes the value back, and comes too late once two have met', async () => {
  const exchanger = create();
  const reason = new Error('enough');
  await assert.rejects(exchanger.exchangeAsync(1, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const first = exchanger.exchangeAsync(1, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(first, reason);
  assert.ok(isNew(exchanger));
  const late = new AbortController();
  const second = exchanger.exchangeAsync(2, { signal: late.signal });
  assert.equal(exchanger.exchange(3), 2);
  late.abort(reason);
  assert.equal(await second, 3);
  // A signal stays out of it where nobody has to be awaited.
  const third = exchanger.exchangeAsync(4);
  assert.equal(await exchanger.exchangeAsync(5, { signal: new AbortController().signal }), 4);
  assert.equal(await third, 5);
});

test('inspect(), inspectAll() and console.log() show who waits', async () => {
  const exchanger = create({ name: 'shown' });
  const first = exchanger.exchangeAsync(1);
  const { holders, waiters, name } = exchanger.inspect();
  assert.deepEqual([name, holders, waiters.length], ['shown', [], 1]);
  assert.partialDeepEqual?.(waiters[0], { threadId: 0, kind: 'async', mode: 'passage' });
  const shown = inspectAll().find(({ kind }) => kind === 'Exchanger');
  assert.deepEqual([shown.name, shown.byteOffset, shown.waiters.length], ['shown', OFFSET, 1]);
  assert.match(inspect(exchanger), /^Exchanger 'shown' \{ byteOffset: 40, holders: 0, waiters: 1 \}$/);
  assert.equal(exchanger.exchange(2), 1);
  assert.equal(await first, 2);
});

test('memory that no sablock wrote is refused and left alone', async () => {
  const exchanger = create();
  const words = new Int32Array(exchanger.buffer, OFFSET, 2);
  words[0] = 5;
  assert.throws(() => exchanger.exchange(1), expected.corrupt(OFFSET));
  await assert.rejects(exchanger.exchangeAsync(1), expected.corrupt(OFFSET));
  assert.deepEqual([...words], [5, 0]);
});

test(
  'a worker that blocks meets a loop that awaits, whoever comes first',
  watched(async (_, threads) => {
    const exchanger = create();
    const [actor] = await startActors(threads, 1, exchanger.buffer);
    const exchange = (value) =>
      actor.do((here, offset, mine) => new here.sablock.Exchanger(here.buffer, offset).exchange(mine), OFFSET, value);
    const blocked = exchange(1);
    await threads.queued(exchanger, 1);
    assert.equal(await exchanger.exchangeAsync(2), 1);
    assert.equal(await blocked, 2);
    const awaited = exchanger.exchangeAsync(3);
    assert.equal(await exchange(4), 3);
    assert.equal(await awaited, 4);
  }),
);

test(
  'under load each value that is given is given once, and pairs are symmetric; a value is given or its wait is over, never both',
  watched(async (_, threads) => {
    const WORKERS = 4;
    const ROUNDS = 400;
    const exchanger = create();
    const actors = await startActors(threads, WORKERS, exchanger.buffer);
    const results = await Promise.all(
      actors.map((actor, number) =>
        actor.do(
          async (here, offset, worker, rounds) => {
            const exchanger = new here.sablock.Exchanger(here.buffer, offset);
            const met = [];
            const left = [];
            for (let round = 0; round < rounds; round++) {
              const mine = worker * 1_000_000 + round;
              // Some wait for about as long as it takes to meet.
              const timeout = round % 3 === 0 ? 0.05 : 20;
              const controller = new AbortController();
              try {
                if (round % 2 === 0) met.push([mine, exchanger.exchange(mine, timeout)]);
                else {
                  const wait = exchanger.exchangeAsync(mine, { timeout, signal: controller.signal });
                  if (round % 5 === 0) setImmediate(() => controller.abort());
                  met.push([mine, await wait]);
                }
              } catch (error) {
                if (error.code !== 'ERR_LOCK_TIMEOUT' && error.name !== 'AbortError') throw error;
                left.push(mine);
              }
            }
            return { met, left };
          },
          OFFSET,
          number,
          ROUNDS,
        ),
      ),
    );
    const pairs = new Map(results.flatMap(({ met }) => met));
    assert.ok(pairs.size > ROUNDS / 4, `${pairs.size} met`);
    for (const [mine, theirs] of pairs) assert.equal(pairs.get(theirs), mine, `${mine} got ${theirs}`);
    for (const value of results.flatMap(({ left }) => left)) assert.equal(pairs.has(value), false);
    assert.ok(isNew(exchanger));
  }),
);
