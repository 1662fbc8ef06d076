const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { BYTES, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');
const { ways } = require('../helpers/ways.js');
const { Witness } = require('../helpers/witness.js');

const WITNESS_OFFSET = 64;
const HOLDS = { blocking: 2000, awaiting: 200 };
/** On the main thread a lock() that never returns would silence the watchdog. */
const MAIN_TIMEOUT = { timeout: 20_000 };

/** Has two workers and the main thread take the mutex at once and returns what the witness saw. */
const contend = async (threads, way, { buffer, mutexOffset = OFFSET, holds, acrossTurns = false }) => {
  const mutex = new Mutex(buffer, mutexOffset, { allowMainThread: true });
  const witness = new Witness(buffer, WITNESS_OFFSET);
  const data = { buffer, mutexOffset, witnessOffset: WITNESS_OFFSET, ways: [way.name], holds, acrossTurns };
  const workers = [threads.start('holds', data), threads.start('holds', data)];
  await Promise.all(workers.map((worker) => worker.started));
  for (let hold = 0; hold < holds; hold++) {
    const visit = acrossTurns ? () => witness.visitAcrossTurns() : () => witness.visit();
    const held = way.hold(mutex, visit, MAIN_TIMEOUT);
    if (!way.blocks) await held;
  }
  await Promise.all(workers.map((worker) => worker.result));
  return { overlaps: witness.overlaps, count: witness.count, isLocked: mutex.isLocked };
};

const exact = (holds) => ({ overlaps: 0, count: 3 * holds, isLocked: false });

const memories = [
  ['a SharedArrayBuffer', () => new SharedArrayBuffer(BYTES)],
  ['a growable SharedArrayBuffer', () => new SharedArrayBuffer(BYTES, { maxByteLength: 4 * BYTES })],
  ['shared WebAssembly memory', () => new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true }).buffer],
];

for (const way of ways) {
  test(
    `${way.name}: holds of two workers and the main thread do not overlap`,
    watched(async (_, threads) => {
      const holds = way.blocks ? HOLDS.blocking : HOLDS.awaiting;
      const seen = await contend(threads, way, { buffer: new SharedArrayBuffer(BYTES), holds });
      assert.deepEqual(seen, exact(holds));
    }),
  );
}

for (const way of ways.filter(({ blocks }) => !blocks)) {
  test(
    `${way.name}: holds across turns of three event loops do not overlap`,
    watched(async (_, threads) => {
      const holds = 100;
      const seen = await contend(threads, way, { buffer: new SharedArrayBuffer(BYTES), holds, acrossTurns: true });
      assert.deepEqual(seen, exact(holds));
    }),
  );
}

for (const [memory, create] of memories.slice(1)) {
  for (const way of ways.filter(({ name }) => name === 'lock' || name === 'lockAsync')) {
    test(
      `${way.name}: holds of a mutex in ${memory} do not overlap`,
      watched(async (_, threads) => {
        const holds = 200;
        assert.deepEqual(await contend(threads, way, { buffer: create(), holds }), exact(holds));
      }),
    );
  }
}

for (const mutexOffset of [0, BYTES - 4]) {
  for (const way of ways.filter(({ name }) => name === 'lock' || name === 'lockAsync')) {
    test(
      `${way.name}: holds of a mutex at byte ${mutexOffset} of ${BYTES} do not overlap`,
      watched(async (_, threads) => {
        const holds = 200;
        const seen = await contend(threads, way, { buffer: new SharedArrayBuffer(BYTES), mutexOffset, holds });
        assert.deepEqual(seen, exact(holds));
      }),
    );
  }
}

test(
  'all ways at once, from five threads: holds do not overlap',
  watched(async (_, threads) => {
    const holds = 100;
    const buffer = new SharedArrayBuffer(BYTES);
    const mutex = new Mutex(buffer, OFFSET);
    const witness = new Witness(buffer, WITNESS_OFFSET);
    const blocking = ways.filter((way) => way.blocks);
    const awaiting = ways.filter((way) => !way.blocks);
    const start = (group) => {
      const names = group.map((way) => way.name);
      return threads.start('holds', { buffer, mutexOffset: OFFSET, witnessOffset: WITNESS_OFFSET, ways: names, holds });
    };
    const workers = [...blocking.map((way) => start([way])), start(awaiting)];
    const takeTurns = async (way) => {
      for (let hold = 0; hold < holds; hold++) await way.hold(mutex, () => witness.visit());
    };
    await Promise.all([...awaiting.map(takeTurns), ...workers.map((worker) => worker.result)]);
    assert.equal(witness.overlaps, 0);
    assert.equal(witness.count, holds * (blocking.length + 2 * awaiting.length));
  }),
);

test(
  'a mutex is free while both its neighbours are held',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const neighbours = [new Mutex(buffer, OFFSET - 4), new Mutex(buffer, OFFSET + 4)];
    assert.ok(neighbours.every((mutex) => mutex.tryLock()));
    const [worker] = await threads.puppets(1, buffer);
    assert.equal(await worker.call('lock'), true);
    assert.equal(await worker.call(OFFSET + 4, 'lock', 0), false);
    await worker.call('unlock');
    assert.ok(neighbours.every((mutex) => mutex.isHeldByThisThread));
  }),
);

test(
  'neighbouring mutexes, each contended by two threads, guard their own data only',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const holds = 1000;
    const start = (index) => {
      const offsets = { mutexOffset: OFFSET + 4 * index, witnessOffset: WITNESS_OFFSET + Witness.BYTES * index };
      return threads.start('holds', { buffer, ...offsets, ways: ['lock'], holds });
    };
    await Promise.all([0, 1, 0, 1].map((index) => start(index).result));
    for (const index of [0, 1]) {
      const witness = new Witness(buffer, WITNESS_OFFSET + Witness.BYTES * index);
      assert.deepEqual({ overlaps: witness.overlaps, count: witness.count }, { overlaps: 0, count: 2 * holds });
    }
  }),
);

test(
  'a mutex touches no byte beside its own four',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const bytes = new Uint8Array(buffer).fill(0xa5);
    bytes.fill(0, OFFSET, OFFSET + Mutex.BYTES);
    const mutex = new Mutex(buffer, OFFSET);
    const [worker] = await threads.puppets(1, buffer);
    assert.equal(mutex.tryLock(), true);
    const blocked = worker.run([['lock'], ['unlock']]);
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 2);
    mutex.unlock();
    await Promise.all([blocked, pending.then(() => mutex.unlock())]);
    bytes.fill(0xa5, OFFSET, OFFSET + Mutex.BYTES);
    assert.ok(bytes.every((byte) => byte === 0xa5));
  }),
);

test(
  'Mutex objects on the same word are the same lock',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const [first, second] = [new Mutex(buffer, OFFSET), new Mutex(structuredClone(buffer), OFFSET)];
    assert.equal(first.tryLock(), true);
    assert.equal(second.tryLock(), false);
    const pending = second.lockAsync();
    await threads.queued(first, 1);
    first.unlock();
    assert.equal(await pending, true);
    assert.equal(first.isHeldByThisThread, true);
    first.unlock();
    assert.equal(second.isLocked, false);
  }),
);

test('a mutex stays the same lock when its WebAssembly memory grows', async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true });
  const before = new Mutex(memory.buffer, OFFSET);
  assert.equal(before.tryLock(), true);
  memory.grow(1);
  const after = new Mutex(memory.buffer, OFFSET);
  assert.equal(after.tryLock(), false);
  const pending = after.lockAsync();
  before.unlock();
  assert.equal(await pending, true);
  after.unlock();
});

test('a mutex stays the same lock when its growable buffer grows', async () => {
  const buffer = new SharedArrayBuffer(BYTES, { maxByteLength: 4 * BYTES });
  const before = new Mutex(buffer, OFFSET);
  assert.equal(before.tryLock(), true);
  buffer.grow(2 * BYTES);
  const after = new Mutex(buffer, OFFSET);
  assert.equal(after.tryLock(), false);
  const pending = after.lockAsync();
  before.unlock();
  assert.equal(await pending, true);
  after.unlock();
  assert.equal(new Mutex(buffer, 2 * BYTES - 4).tryLock(), true, 'memory that grew on is memory for a mutex');
});

test('zeroed memory is a free mutex, and a freed mutex is zeroed memory', () => {
  const buffer = new SharedArrayBuffer(4);
  const word = new Int32Array(buffer);
  const mutex = new Mutex(buffer);
  assert.equal(mutex.isLocked, false);
  assert.equal(mutex.tryLock(), true);
  assert.ok(word[0] > 0 && word[0] < 2 ** 30);
  mutex.unlock();
  assert.equal(word[0], 0);
});

test(
  'the word stays below 2 ** 30 while a guard holds and others wait',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const mutex = new Mutex(buffer, OFFSET);
    const word = new Int32Array(buffer, OFFSET, 1);
    const [worker] = await threads.puppets(1, buffer);
    const isSmall = () => word[0] > 0 && word[0] < 2 ** 30;
    const guard = mutex.tryAcquire();
    const blocked = worker.run([['lock'], ['unlock']]);
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 2);
    assert.ok(isSmall());
    guard.unlock();
    await pending;
    assert.ok(isSmall());
    mutex.unlock();
    await blocked;
  }),
);
