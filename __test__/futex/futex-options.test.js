const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { Mutex, inspectAll, notify, waitAsync } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { invalidArgType } = require('../helpers/expected.js');
const { watched } = require('../helpers/threads.js');

const createArray = () => new Int32Array(new SharedArrayBuffer(32));
const listeners = (signal) => getEventListeners(signal, 'abort').length;

test('options that are no object, a signal that is none and a ref that is no boolean are refused', () => {
  const array = createArray();
  for (const options of [null, 1, 'options', true, () => {}]) {
    assert.throws(() => waitAsync(array, 0, 0, 10, options), invalidArgType());
  }
  for (const signal of [null, {}, 'signal', new EventTarget()]) {
    assert.throws(() => waitAsync(array, 0, 0, 10, { signal }), invalidArgType());
  }
  for (const ref of [null, 0, 'false']) assert.throws(() => waitAsync(array, 0, 0, 10, { ref }), invalidArgType());
  assert.equal(notify(array, 0), 0, 'nobody was put in line');
});

test('options are looked at after all conversions, also where nothing waits', () => {
  const log = [];
  const note = (name, value) => ({ valueOf: () => log.push(name) && value });
  assert.throws(
    () => waitAsync(createArray(), note('index', 0), note('value', 1), note('timeout', 0), null),
    invalidArgType(),
  );
  assert.deepEqual(log, ['index', 'value', 'timeout']);
});

test(
  'a wait for an element is shown at its byte in the buffer, whatever the width of the elements',
  watched(async () => {
    const buffer = new SharedArrayBuffer(64);
    for (const [array, value, byteOffset] of [
      [new Int32Array(buffer, 8), 0, 20],
      [new BigInt64Array(buffer, 8), 0n, 32],
    ]) {
      const { value: wait } = waitAsync(array, 3, value);
      assert.deepEqual(
        inspectAll().map(({ byteOffset }) => byteOffset),
        [byteOffset],
      );
      assert.equal(notify(array, 3), 1);
      assert.equal(await wait, 'ok');
    }
  }),
);

test(
  "an abort rejects with the signal's reason and leaves the line",
  watched(async () => {
    const array = createArray();
    const controller = new AbortController();
    const first = waitAsync(array, 0, 0, 1e9, { signal: controller.signal }).value;
    const second = waitAsync(array, 0, 0).value;
    controller.abort('enough');
    await assert.rejects(first, (reason) => reason === 'enough');
    assert.equal(listeners(controller.signal), 0);
    assert.equal(notify(array, 0), 1);
    assert.equal(await second, 'ok');
  }),
);

test(
  'with an aborted signal nobody is put in line, whatever the element holds',
  watched(async () => {
    const array = createArray();
    const signal = AbortSignal.abort('too late');
    for (const value of [0, 1]) {
      const answer = waitAsync(array, 0, value, undefined, { signal });
      assert.equal(answer.async, true);
      await assert.rejects(answer.value, (reason) => reason === 'too late');
    }
    assert.equal(notify(array, 0), 0);
    assert.equal(listeners(signal), 0);
  }),
);

test('a wait that need not wait leaves no listener', () => {
  const { signal } = new AbortController();
  assert.deepEqual(waitAsync(createArray(), 0, 1, undefined, { signal }), { async: false, value: 'not-equal' });
  assert.deepEqual(waitAsync(createArray(), 0, 0, 0, { signal }), { async: false, value: 'timed-out' });
  assert.equal(listeners(signal), 0);
});

test('a wait whose element changes as it begins to listen does not wait, and leaves no listener', () => {
  const array = createArray();
  const heard = [];
  const signal = {
    aborted: false,
    addEventListener(_type, listener) {
      heard.push(listener);
      array[0] = 1;
    },
    removeEventListener(_type, listener) {
      heard.splice(heard.indexOf(listener), 1);
    },
  };
  assert.deepEqual(waitAsync(array, 0, 0, undefined, { signal }), { async: false, value: 'not-equal' });
  assert.deepEqual([array[0], heard.length], [1, 0]);
  assert.equal(notify(array, 0), 0);
});

test(
  'a wait that was notified or timed out leaves no listener',
  watched(async () => {
    const array = createArray();
    const { signal } = new AbortController();
    const waits = [waitAsync(array, 0, 0, 1e9, { signal }), waitAsync(array, 1, 0, 1, { signal })];
    notify(array, 0);
    assert.deepEqual(await Promise.all(waits.map(({ value }) => value)), ['ok', 'timed-out']);
    assert.equal(listeners(signal), 0);
  }),
);

test(
  'an abort after the notification comes too late, so that the notification is not lost',
  watched(async () => {
    const array = createArray();
    const controller = new AbortController();
    const { value } = waitAsync(array, 0, 0, undefined, { signal: controller.signal });
    assert.equal(notify(array, 0, 1), 1);
    controller.abort();
    assert.equal(await value, 'ok');
    assert.equal(listeners(controller.signal), 0);
  }),
);

test(
  'aborts against notifications of another thread: each notification that was counted is heard of',
  watched(async (_, threads) => {
    const array = createArray();
    const worker = threads.start('waiter', { face: 'sablock' });
    for (let round = 0; round < 100; round++) {
      const controllers = Array.from({ length: 4 }, () => new AbortController());
      const waits = controllers.map(({ signal }) => waitAsync(array, 0, 0, undefined, { signal }).value);
      const settled = Promise.allSettled(waits);
      const told = worker.call('notify', array, 0, 2);
      for (let turn = 0; turn < round % 4; turn++) await nextTurn();
      controllers[round % 4].abort();
      controllers[(round + 1) % 4].abort();
      const rest = (await told) + notify(array, 0);
      const heard = (await settled).filter(({ value }) => value === 'ok').length;
      assert.equal(heard, rest);
    }
  }),
);

test(
  'await keeps its AsyncLocalStorage, though another context notifies',
  watched(async () => {
    const array = createArray();
    const storage = new AsyncLocalStorage();
    const stores = ['first', 'second'].map((store) =>
      storage.run(store, async () => {
        await waitAsync(array, 0, 0).value;
        return storage.getStore();
      }),
    );
    storage.run('the notifying one', () => notify(array, 0));
    assert.deepEqual(await Promise.all(stores), ['first', 'second']);
  }),
);

test(
  'a notification never wakes those who wait for a lock, nor an unlock those who wait for a notification',
  watched(async () => {
    const buffer = new SharedArrayBuffer(4);
    const mutex = new Mutex(buffer);
    const word = new Int32Array(buffer);
    mutex.tryLock();
    const locked = mutex.lockAsync();
    const { value } = waitAsync(word, 0, word[0]);
    assert.equal(binding.waiting(word, 0), 1);
    mutex.unlock();
    assert.equal(await locked, true);
    assert.equal(notify(word, 0), 1);
    assert.equal(await value, 'ok');
    mutex.unlock();
  }),
);

test(
  'Atomics.notify never wakes those who wait here, nor notify those who wait there',
  watched(async () => {
    const array = createArray();
    const ours = waitAsync(array, 0, 0).value;
    const theirs = Atomics.waitAsync(array, 0, 0).value;
    assert.equal(Atomics.notify(array, 0), 1);
    assert.equal(await theirs, 'ok');
    assert.equal(notify(array, 0), 1);
    assert.equal(await ours, 'ok');
  }),
);

test('pending waits for notifications leave lockAsync its fast path', () => {
  const array = createArray();
  const mutex = new Mutex(array.buffer, 16);
  const { thread } = require('../../lib/engine/thread.js');
  waitAsync(array, 0, 0);
  assert.equal(thread.pending, 0);
  mutex.lockAsync();
  mutex.unlock();
  assert.equal(notify(array, 0), 1);
});
