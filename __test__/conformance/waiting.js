// DoWait, Atomics.notify and the waiter lists (ECMA-262, "The Atomics Object" and "WaiterList Objects"), from where a
// thread waits. `line` is how a step sees its threads: see `createLine`.

const assert = require('node:assert/strict');
const { setImmediate: nextTurn } = require('node:timers/promises');

const steps = [];
const step = (name, run, workers = 0) => steps.push({ name, run, workers });
const stepWithWorker = (name, run) => step(name, run, 1);
const stepWithWorkers = (name, run) => step(name, run, 3);

const arrays = (length = 8) => {
  const buffer = new SharedArrayBuffer(8 * length);
  return {
    array: new Int32Array(buffer),
    big: new BigInt64Array(buffer),
    log: new Int32Array(new SharedArrayBuffer(64)),
  };
};

/** Puts waiters in line one behind the other, each once the one before it is there; returns in which order they were woken. */
const createLine = (face, threads, { array, log }, index = 0) => {
  const woken = [];
  let count = 0;
  const inLine = () => threads.until(`${count} wait`, () => face.waiting(array, index) === count);
  return {
    woken,
    /** The order in which the blocked threads went on. */
    noted: () => Array.from(log.subarray(1, 1 + Atomics.load(log, 0))),
    async block(worker, number) {
      const outcome = worker.call('waitAndNote', array, index, log, number);
      count += 1;
      await inLine();
      return { outcome };
    },
    await(number) {
      const { async: isPending, value } = face.waitAsync(array, index, 0);
      assert.equal(isPending, true);
      count += 1;
      return value.then((outcome) => {
        woken.push(number);
        return outcome;
      });
    },
    notify(most) {
      const told = face.notify(array, index, most);
      count -= told;
      return told;
    },
  };
};

stepWithWorker("wait: returns 'ok' when it is notified", async ({ face, threads, workers: [worker] }) => {
  const { array, big } = arrays();
  for (const [typed, value] of [
    [array, 0],
    [big, 0n],
  ]) {
    const outcome = worker.call('wait', typed, 3, value);
    await threads.until('it waits', () => face.waiting(typed, 3) === 1);
    assert.equal(face.notify(typed, 3), 1);
    assert.equal(await outcome, 'ok');
    assert.equal(face.notify(typed, 3), 0);
  }
});

stepWithWorker("wait: returns 'timed-out' after its time, and not before", async ({ workers: [worker] }) => {
  const { outcome, ms } = await worker.call('timedWait', arrays().array, 0, 0, 40.5);
  assert.equal(outcome, 'timed-out');
  assert.ok(ms >= 40.5 && ms < 10_000, `${ms} ms`);
});

stepWithWorker("wait: returns 'not-equal' at once", async ({ workers: [worker] }) => {
  const { array, big } = arrays();
  assert.equal(await worker.call('wait', array, 0, 1), 'not-equal');
  assert.equal(await worker.call('wait', big, 0, 1n), 'not-equal');
});

stepWithWorkers('wait: a timeout that is undefined, NaN or Infinity never ends', async ({ face, threads, workers }) => {
  const { array } = arrays();
  const outcomes = [undefined, NaN, Infinity].map((timeout, index) =>
    workers[index].call('wait', array, 0, 0, timeout),
  );
  await threads.until('all wait', () => face.waiting(array, 0) === 3);
  assert.equal(face.notify(array, 0), 3);
  assert.deepEqual(await Promise.all(outcomes), ['ok', 'ok', 'ok']);
});

step("waitAsync: its promise is fulfilled with 'ok' when it is notified", async ({ face }) => {
  const { array, big } = arrays();
  const waits = [face.waitAsync(array, 2, 0), face.waitAsync(big, 3, 0n, 1e9)];
  assert.deepEqual([face.notify(array, 2), face.notify(big, 3)], [1, 1]);
  assert.deepEqual(await Promise.all(waits.map(({ value }) => value)), ['ok', 'ok']);
});

step('waitAsync: its promise is not settled inside notify, nor in the microtasks behind it', async ({ face }) => {
  const { array } = arrays();
  let isSettled = false;
  const { value } = face.waitAsync(array, 0, 0);
  value.then(() => {
    isSettled = true;
  });
  face.notify(array, 0);
  for (let microtask = 0; microtask < 10; microtask++) await undefined;
  assert.equal(isSettled, false);
  assert.equal(await value, 'ok');
});

step("waitAsync: its promise is fulfilled with 'timed-out' after its time, and not before", async ({ face }) => {
  const startedAt = performance.now();
  assert.equal(await face.waitAsync(arrays().array, 0, 0, 40.5).value, 'timed-out');
  const ms = performance.now() - startedAt;
  assert.ok(ms >= 40.5 && ms < 10_000, `${ms} ms`);
});

step('waitAsync: a wait that timed out is not in the list any more', async ({ face }) => {
  const { array } = arrays();
  const patient = face.waitAsync(array, 0, 0);
  assert.equal(await face.waitAsync(array, 0, 0, 5).value, 'timed-out');
  assert.equal(face.notify(array, 0), 1);
  assert.equal(await patient.value, 'ok');
});

stepWithWorker('wait: a wait that timed out is not in the list any more', async ({ face, workers: [worker] }) => {
  const { array } = arrays();
  const patient = face.waitAsync(array, 0, 0);
  assert.equal(await worker.call('wait', array, 0, 0, 5), 'timed-out');
  assert.equal(face.notify(array, 0), 1);
  assert.equal(await patient.value, 'ok');
});

stepWithWorkers('notify: wakes blocked threads in the order in which they came', async ({ face, threads, workers }) => {
  const line = createLine(face, threads, arrays());
  const waits = [];
  for (const [number, worker] of workers.entries()) waits.push(await line.block(worker, number));
  for (const { outcome } of waits) {
    assert.equal(line.notify(1), 1);
    assert.equal(await outcome, 'ok');
  }
  assert.deepEqual(line.noted(), [0, 1, 2]);
});

step('notify: fulfils promises in the order in which they came', async ({ face, threads }) => {
  const line = createLine(face, threads, arrays());
  const waits = Array.from({ length: 50 }, (_, number) => line.await(number));
  assert.deepEqual([line.notify(10), line.notify(1), line.notify()], [10, 1, 39]);
  await Promise.all(waits);
  assert.deepEqual(
    line.woken,
    waits.map((_, number) => number),
  );
});

stepWithWorkers('notify: wakes blocked threads and promises in one order', async ({ face, threads, workers }) => {
  const line = createLine(face, threads, arrays());
  const turns = [];
  for (const [number, worker] of workers.entries()) {
    turns.push((await line.block(worker, 2 * number)).outcome);
    turns.push(line.await(2 * number + 1));
  }
  for (const [turn, outcome] of turns.entries()) {
    assert.equal(line.notify(1), 1);
    assert.equal(await outcome, 'ok');
    assert.equal(line.woken.length + line.noted().length, turn + 1, 'nobody else was woken');
  }
  assert.deepEqual(
    [line.noted(), line.woken],
    [
      [0, 2, 4],
      [1, 3, 5],
    ],
  );
});

stepWithWorkers(
  'notify: a count that ends between two kinds wakes those before it only',
  async ({ face, threads, workers }) => {
    const line = createLine(face, threads, arrays());
    const first = line.await(0);
    const { outcome: second } = await line.block(workers[0], 1);
    const third = line.await(2);
    const { outcome: fourth } = await line.block(workers[1], 3);
    assert.equal(line.notify(2), 2);
    assert.deepEqual(await Promise.all([first, second]), ['ok', 'ok']);
    await nextTurn();
    assert.deepEqual([line.woken, line.noted()], [[0], [1]]);
    assert.equal(line.notify(7), 2);
    assert.deepEqual(await Promise.all([third, fourth]), ['ok', 'ok']);
  },
);

step('notify: one that nobody waits for is not kept for later', async ({ face }) => {
  const { array } = arrays();
  assert.equal(face.notify(array, 0), 0);
  assert.equal(await face.waitAsync(array, 0, 0, 1).value, 'timed-out');
});

stepWithWorker(
  'notify: in the order of the list a wait of a worker and of this thread are alike',
  async ({ face, workers: [worker] }) => {
    const { array } = arrays();
    const mine = face.waitAsync(array, 0, 0).value;
    assert.equal(await worker.call('beginToWait', array, 0, 0), true);
    assert.equal(await worker.call('notify', array, 0, 1), 1);
    assert.equal(await mine, 'ok');
    assert.equal(face.waiting(array, 0), 1);
    assert.equal(face.notify(array, 0), 1);
  },
);

stepWithWorker('a change of the value wakes nobody', async ({ face, threads, workers: [worker] }) => {
  const { array } = arrays();
  const blocked = worker.call('wait', array, 0, 0);
  await threads.until('it waits', () => face.waiting(array, 0) === 1);
  const awaiting = face.waitAsync(array, 0, 0, 150).value;
  for (let value = 1; value < 1000; value++) {
    Atomics.store(array, 0, value);
    Atomics.add(array, 0, 1);
    Atomics.exchange(array, 0, value);
    array[0] = value;
  }
  assert.equal(await awaiting, 'timed-out');
  assert.equal(face.notify(array, 0), 1, 'it still waits');
  assert.equal(await blocked, 'ok');
});

step('a notification for one element wakes nobody at another', async ({ face }) => {
  const { array, big } = arrays();
  const waits = [face.waitAsync(array, 4, 0, 20), face.waitAsync(big, 4, 0n, 20)];
  for (const other of [3, 5, 7, 9]) assert.equal(face.notify(array, other), 0);
  for (const other of [3, 5]) assert.equal(face.notify(big, other), 0);
  for (const { value } of waits) assert.equal(await value, 'timed-out');
});

step('two buffers have two lists at the same offset', async ({ face }) => {
  const [one, other] = [arrays().array, arrays().array];
  const { value } = face.waitAsync(one, 0, 0, 20);
  assert.equal(face.notify(other, 0), 0);
  assert.equal(await value, 'timed-out');
});

step('the list belongs to the byte of the buffer, whatever array it is seen through', async ({ face }) => {
  const { array, big } = arrays();
  const later = new Int32Array(array.buffer, 8);
  const waits = [face.waitAsync(array, 4, 0), face.waitAsync(later, 2, 0), face.waitAsync(big, 2, 0n)];
  assert.equal(face.notify(later, 2, 1), 1);
  assert.equal(face.notify(big, 2, 1), 1);
  assert.equal(face.notify(array, 4), 1);
  assert.deepEqual(await Promise.all(waits.map(({ value }) => value)), ['ok', 'ok', 'ok']);
});

stepWithWorker(
  'what was written before notify is seen after the wait',
  async ({ face, threads, workers: [worker] }) => {
    const { array } = arrays();
    const reads = worker.run([
      ['wait', array, 0, 0],
      ['wait', array, 1, 41],
    ]);
    await threads.until('it waits', () => face.waiting(array, 0) === 1);
    array[1] = 42;
    face.notify(array, 0);
    assert.deepEqual(await reads, ['ok', 'not-equal']);
  },
);

stepWithWorker('two threads that wake each other never miss a wake-up', async ({ face, workers: [worker] }) => {
  const { array } = arrays();
  const rounds = 300;
  const theirs = worker.call('playPingPong', array, rounds);
  for (let round = 0; round < rounds; round++) {
    Atomics.store(array, 0, round + 1);
    face.notify(array, 0);
    while (Atomics.load(array, 1) === round) await face.waitAsync(array, 1, round).value;
  }
  assert.equal(await theirs, rounds);
});

exports.steps = steps;
