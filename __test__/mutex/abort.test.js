const assert = require('node:assert/strict');
const { addAbortListener, getEventListeners } = require('node:events');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { createMutex } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const MANY = 5000;

/** Returns how a promise ended: what it was fulfilled or rejected with. */
const outcome = (promise) =>
  promise.then(
    (value) => ({ value }),
    (reason) => ({ reason }),
  );
const listeners = (signal) => getEventListeners(signal, 'abort').length;

const verbs = {
  lockAsync: (mutex, options) => mutex.lockAsync(options),
  acquireAsync: (mutex, options) => mutex.acquireAsync(options),
  executeLocked: (mutex, options) => mutex.executeLocked(() => 'ran', options),
};

for (const [verb, call] of Object.entries(verbs)) {
  test(
    `${verb}() with an aborted signal rejects and takes nothing`,
    watched(async () => {
      const { mutex, word } = createMutex();
      const signal = AbortSignal.abort('too late');
      assert.deepEqual(await outcome(call(mutex, { signal })), { reason: 'too late' });
      assert.equal(word(), 0);
      assert.equal(listeners(signal), 0);
    }),
  );

  test(
    `${verb}() aborted while it waits rejects with the signal's reason`,
    watched(async () => {
      const { mutex } = createMutex();
      const controller = new AbortController();
      mutex.tryLock();
      const pending = outcome(call(mutex, { signal: controller.signal }));
      await nextTurn();
      controller.abort(new RangeError('Changed my mind'));
      assert.equal((await pending).reason, controller.signal.reason);
      assert.equal(listeners(controller.signal), 0);
      assert.deepEqual(mutex.inspect().waiters, []);
      mutex.unlock();
      assert.equal(mutex.tryLock(), true);
    }),
  );

  test(
    `${verb}() aborted in the turn of its call rejects with the signal's reason`,
    watched(async () => {
      const { mutex } = createMutex();
      const controller = new AbortController();
      mutex.tryLock();
      const pending = outcome(call(mutex, { signal: controller.signal }));
      controller.abort('at once');
      assert.deepEqual(await pending, { reason: 'at once' });
      mutex.unlock();
      assert.equal(mutex.tryLock(), true);
    }),
  );
}

for (const [kind, reason] of [
  ['null', null],
  ['a number', 0],
  ['a string', 'enough'],
  ['a symbol', Symbol('reason')],
  ['a plain object', { why: 'because' }],
  ['an error', new SyntaxError('Not a lock error')],
]) {
  test(
    `a reason that is ${kind} is passed as given`,
    watched(async () => {
      const { mutex } = createMutex();
      const controller = new AbortController();
      mutex.tryLock();
      const during = outcome(mutex.lockAsync({ signal: controller.signal }));
      controller.abort(reason);
      const before = outcome(mutex.lockAsync({ signal: controller.signal }));
      assert.equal((await during).reason, reason);
      assert.equal((await before).reason, reason);
    }),
  );
}

test(
  'without a reason of its own the abort rejects with the AbortError of the signal',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    mutex.tryLock();
    const pending = outcome(mutex.lockAsync({ signal: controller.signal }));
    controller.abort();
    const { reason } = await pending;
    assert.equal(reason, controller.signal.reason);
    assert.equal(reason.name, 'AbortError');
  }),
);

test(
  'AbortSignal.timeout() ends a wait with its TimeoutError',
  watched(async () => {
    const { mutex } = createMutex();
    mutex.tryLock();
    const signal = AbortSignal.timeout(10);
    assert.equal((await outcome(mutex.lockAsync({ signal }))).reason, signal.reason);
  }),
);

test(
  'an abort after the lock was granted changes nothing',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    assert.equal(await mutex.lockAsync({ signal: controller.signal }), true);
    controller.abort();
    await nextTurn();
    assert.equal(mutex.isHeldByThisThread, true);
    mutex.unlock();
  }),
);

test(
  'an abort between the grant and its await does not take the lock back',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    const granted = mutex.lockAsync({ signal: controller.signal });
    controller.abort();
    assert.equal(await granted, true);
    assert.equal(mutex.isHeldByThisThread, true);
    mutex.unlock();
  }),
);

test(
  'an abort while executeLocked() runs its function does not stop it',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    const run = async () => {
      controller.abort();
      await nextTurn();
      return mutex.isHeldByThisThread;
    };
    assert.equal(await mutex.executeLocked(run, { signal: controller.signal }), true);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'an abort against an unlock of the same turn either holds or rejects, never both or neither',
  watched(async () => {
    const { mutex } = createMutex();
    for (let round = 0; round < 300; round++) {
      const controller = new AbortController();
      mutex.tryLock();
      const pending = outcome(mutex.lockAsync({ signal: controller.signal }));
      const steps = [() => mutex.unlock(), () => controller.abort('aborted')];
      if (round % 2 === 1) steps.reverse();
      steps[0]();
      if (round % 3 === 0) await nextTurn();
      steps[1]();
      const { value, reason } = await pending;
      assert.ok(value === true || reason === 'aborted');
      assert.equal(mutex.isHeldByThisThread, value === true);
      if (value) mutex.unlock();
      assert.equal(mutex.tryLock(), true, 'the mutex is free for the next');
      mutex.unlock();
    }
  }),
);

test(
  'an abort against the unlock of a worker either holds or rejects, and the next waiter is served',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    for (let round = 0; round < 100; round++) {
      await worker.call('lock');
      const controller = new AbortController();
      const pending = outcome(mutex.lockAsync({ signal: controller.signal }));
      const next = mutex.lockAsync();
      const unlocked = worker.call('unlock');
      for (let turn = 0; turn < round % 5; turn++) await nextTurn();
      controller.abort('aborted');
      const { value, reason } = await pending;
      assert.ok(value === true || reason === 'aborted');
      if (value) mutex.unlock();
      assert.equal(await next, true);
      mutex.unlock();
      await unlocked;
    }
  }),
);

test(
  'the next waiter is served when the first one aborts',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    mutex.tryLock();
    const first = outcome(mutex.lockAsync({ signal: controller.signal }));
    const second = mutex.lockAsync();
    controller.abort('gone');
    mutex.unlock();
    assert.deepEqual(await first, { reason: 'gone' });
    assert.equal(await second, true);
    mutex.unlock();
  }),
);

test(
  `one signal ends ${MANY} waits, with one reason and no warning`,
  watched(async (t) => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    const warned = t.mock.fn();
    process.on('warning', warned);
    t.after(() => process.off('warning', warned));
    mutex.tryLock();
    const waits = Array.from({ length: MANY }, () => outcome(mutex.lockAsync({ signal: controller.signal })));
    const reason = new Error('All of you');
    controller.abort(reason);
    assert.ok((await Promise.all(waits)).every((ended) => ended.reason === reason));
    assert.equal(listeners(controller.signal), 0);
    assert.deepEqual(mutex.inspect().waiters, []);
    await nextTurn();
    assert.equal(warned.mock.callCount(), 0);
    mutex.unlock();
  }),
);

test(
  `one signal for ${MANY} waits keeps no listener once they are granted`,
  watched(async (t) => {
    const { mutex } = createMutex();
    const { signal } = new AbortController();
    const warned = t.mock.fn();
    process.on('warning', warned);
    t.after(() => process.off('warning', warned));
    mutex.tryLock();
    const waits = Array.from({ length: MANY }, async () => {
      const isHeld = await mutex.lockAsync({ signal });
      mutex.unlock();
      return isHeld;
    });
    mutex.unlock();
    assert.ok((await Promise.all(waits)).every((isHeld) => isHeld === true));
    assert.equal(listeners(signal), 0);
    assert.equal(warned.mock.callCount(), 0);
  }),
);

test(
  'a timed-out wait keeps no listener on its signal',
  watched(async () => {
    const { mutex } = createMutex();
    const { signal } = new AbortController();
    mutex.tryLock();
    assert.equal(await mutex.lockAsync({ signal, timeout: 5 }), false);
    assert.equal(listeners(signal), 0);
  }),
);

test(
  'a signal ends only the waits that were given it',
  watched(async () => {
    const { mutex } = createMutex();
    const controllers = [new AbortController(), new AbortController()];
    mutex.tryLock();
    const waits = controllers.map(({ signal }) => outcome(mutex.lockAsync({ signal })));
    controllers[0].abort('first');
    assert.deepEqual(await waits[0], { reason: 'first' });
    assert.equal(mutex.inspect().waiters.length, 1);
    mutex.unlock();
    assert.deepEqual(await waits[1], { value: true });
    mutex.unlock();
  }),
);

test(
  'a signal of several waits still ends those that are left when one of them is over',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    const { signal } = controller;
    mutex.tryLock();
    const granted = mutex.lockAsync({ signal });
    const waits = [mutex.lockAsync({ signal, timeout: 5 }), mutex.lockAsync({ signal })].map(outcome);
    assert.deepEqual(await waits[0], { value: false });
    mutex.unlock();
    assert.equal(await granted, true);
    controller.abort('the rest');
    assert.deepEqual(await waits[1], { reason: 'the rest' });
    assert.equal(listeners(signal), 0);
    mutex.unlock();
  }),
);

test(
  'a wait is aborted although another listener of the signal stops the event',
  { skip: (process.versions.bun ?? process.versions.deno) !== undefined || addAbortListener === undefined },
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    mutex.tryLock();
    controller.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
    const pending = outcome(mutex.lockAsync({ signal: controller.signal }));
    controller.abort('heard');
    assert.deepEqual(await pending, { reason: 'heard' });
    mutex.unlock();
  }),
);

test(
  'a listener of the signal may use the mutex while the abort is going on',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    mutex.tryLock();
    let fresh;
    controller.signal.addEventListener('abort', () => {
      fresh = mutex.lockAsync();
      mutex.unlock();
    });
    const pending = outcome(mutex.lockAsync({ signal: controller.signal }));
    controller.abort('aborted');
    const { value } = await pending;
    if (value) mutex.unlock();
    assert.equal(await fresh, true);
    mutex.unlock();
  }),
);

test(
  'a signal that has served one wait to its end aborts the next',
  watched(async () => {
    const { mutex } = createMutex();
    const controller = new AbortController();
    for (const isAborted of [false, false, true]) {
      mutex.tryLock();
      const waiting = mutex.lockAsync({ signal: controller.signal });
      if (isAborted) {
        controller.abort();
        await assert.rejects(waiting, { name: 'AbortError' });
      } else {
        mutex.unlock();
        assert.equal(await waiting, true);
      }
      mutex.unlock();
    }
  }),
);
