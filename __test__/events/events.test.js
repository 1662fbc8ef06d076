const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { AutoResetEvent, ManualResetEvent } = require('../..');
const { endings } = require('../helpers/endings.js');
const { corrupt, invalidArgType, mainThread, outOfRange } = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { create, users } = require('../helpers/primitives.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const SET = 1;
const WAITING = 1 << 29;
const BLOCKING = { allowMainThread: true };
const terminate = endings.find(({ name }) => name === 'terminate()');

for (const [type, Class] of Object.entries({ ManualResetEvent, AutoResetEvent })) {
  test(`${type}: zeroed memory is not set, and a new object changes nothing`, () => {
    const { buffer, object, words } = create(type);
    assert.deepEqual([Class.BYTES, Class.ALIGN], [4, 4]);
    assert.deepEqual([object.buffer, object.byteOffset, object.name], [buffer, OFFSET, null]);
    assert.equal(object.isSet, false);
    object.set();
    assert.equal(new Class(buffer, OFFSET).isSet, true);
    assert.equal(words[0], SET);
  });

  test(`${type}: set() and reset() do what they say, once and twice`, () => {
    const { object, words } = create(type);
    for (const verb of ['set', 'set', 'reset', 'reset']) {
      assert.equal(object[verb](), undefined);
      assert.equal(object.isSet, verb === 'set');
    }
    assert.equal(words[0], 0);
  });

  test(`${type}: bad arguments are refused before anything changes`, async () => {
    const buffer = new SharedArrayBuffer(8);
    assert.throws(() => new Class(), invalidArgType());
    assert.throws(() => new Class(new ArrayBuffer(8)), invalidArgType());
    assert.throws(() => new Class(buffer, '4'), invalidArgType());
    assert.throws(() => new Class(buffer, 2), outOfRange());
    assert.throws(() => new Class(buffer, 8), outOfRange());
    assert.throws(() => new Class(buffer, 0, null), invalidArgType());
    assert.throws(() => new Class(buffer, 0, { name: 5 }), invalidArgType());
    const { object, words } = create(type, BLOCKING);
    object.set();
    for (const timeout of ['5', null, true, 5n, { timeout: '5' }]) {
      assert.throws(() => object.wait(timeout), invalidArgType(OFFSET));
      await assert.rejects(object.waitAsync(timeout), invalidArgType(OFFSET));
    }
    for (const options of [{ signal: {} }, { ref: 1 }]) {
      await assert.rejects(object.waitAsync(options), invalidArgType(OFFSET));
    }
    assert.equal(words[0], SET);
  });

  test(`${type}: wait() throws on the main thread, set or not, unless it is allowed`, () => {
    const { buffer, object, words } = create(type);
    assert.throws(() => object.wait(), mainThread(OFFSET));
    object.set();
    assert.throws(() => object.wait(), mainThread(OFFSET));
    assert.throws(() => object.wait(0), mainThread(OFFSET));
    assert.throws(() => object.wait(), { message: new RegExp(`waitAsync\\(\\).*create the ${type} with`) });
    assert.equal(words[0], SET);
    assert.equal(new Class(buffer, OFFSET, BLOCKING).wait(), true);
  });

  test(
    `${type}: who comes while it is not set waits until it is, blocked or by a promise`,
    watched(async (_, threads) => {
      const { object } = create(type);
      const [worker] = await users(threads, 1, object);
      for (const wait of [() => worker.call('wait'), () => object.waitAsync(), () => worker.call('waitAsync')]) {
        let hasPassed = false;
        const waiting = wait().then((passed) => {
          hasPassed = true;
          return passed;
        });
        await threads.queued(object, 1);
        assert.equal(hasPassed, false);
        object.set();
        assert.equal(await waiting, true);
        object.reset();
      }
    }),
  );

  test(
    `${type}: a time that is over is false, and not before`,
    watched(async (_, threads) => {
      const { object, words } = create(type);
      const [worker] = await users(threads, 1, object);
      const { value, ms } = await worker.call('timed', 'wait', 20);
      assert.deepEqual([value, ms >= 20], [false, true]);
      assert.equal(await worker.call('wait', 0), false);
      assert.equal(await worker.call('wait', { timeout: -1 }), false);
      const startedAt = performance.now();
      assert.equal(await object.waitAsync(20), false);
      assert.ok(performance.now() - startedAt >= 19.9);
      assert.equal(await object.waitAsync(0), false);
      assert.equal(words[0], 0);
      object.set();
      assert.equal(await worker.call('wait', 0), true, 'one try passes');
    }),
  );

  test(
    `${type}: an aborted wait rejects with the reason, leaves the queue, and takes nothing`,
    watched(async (_, threads) => {
      const { object, words } = create(type);
      const controller = new AbortController();
      const reason = new Error('enough');
      const waiting = object.waitAsync({ signal: controller.signal });
      await threads.queued(object, 1);
      controller.abort(reason);
      await assert.rejects(waiting, reason);
      assert.deepEqual([object.inspect().waiters, words[0]], [[], 0]);
      object.set();
      await assert.rejects(object.waitAsync({ signal: controller.signal }), reason);
      assert.equal(object.isSet, true);
      assert.equal(await object.waitAsync({ signal: new AbortController().signal, timeout: 5 }), true);
    }),
  );

  test(`${type}: a pending waitAsync() keeps the process alive, with ref: false it does not`, async () => {
    for (const [ref, printed] of [
      ['true', 'waiting\npassed\n'],
      ['false', 'waiting\n'],
    ]) {
      const { code, stdout, stderr } = await runProgram('event-keep-alive', [type, ref]);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, printed);
    }
  });

  test(
    `${type}: inspect() shows who waits, with the name; console.log() how many`,
    watched(async (_, threads) => {
      const { object } = create(type, { name: 'ready' });
      const [worker] = await users(threads, 1, object);
      const blocked = worker.call('wait');
      await threads.queued(object, 1);
      const pending = object.waitAsync();
      const { name, holders, waiters } = object.inspect();
      assert.deepEqual([name, object.name, holders], ['ready', 'ready', []]);
      assert.deepEqual(
        waiters.map(({ threadId, kind, mode, waitedMs }) => [threadId, kind, mode, waitedMs >= 0]),
        [
          [worker.threadId, 'blocking', 'passage', true],
          [0, 'async', 'passage', true],
        ],
      );
      assert.equal(inspect(object), `${type} 'ready' { byteOffset: ${OFFSET}, holders: 0, waiters: 2 }`);
      object.set();
      object.set();
      assert.deepEqual(await Promise.all([blocked, pending]), [true, true]);
    }),
  );

  test(`${type}: a word that no event has is refused, whatever bits it has, and left alone`, async () => {
    for (const value of [2, 3, WAITING | 2, WAITING, WAITING | SET, -1, 1 << 31, (1 << 31) | SET]) {
      const { object, words } = create(type, { ...BLOCKING, name: 'ready' });
      words[0] = value;
      assert.throws(() => object.wait(), { ...corrupt(OFFSET), message: /the event 'ready' at byte offset/ });
      assert.throws(() => object.wait(5), corrupt(OFFSET));
      await assert.rejects(object.waitAsync(), corrupt(OFFSET));
      // A value that cannot be distinguished from an event that somebody waits for need not be changed.
      if (value !== WAITING) assert.throws(() => object.reset(), corrupt(OFFSET));
      assert.throws(() => object.set(), corrupt(OFFSET));
      assert.equal(words[0], value);
    }
  });

  test(
    `${type}: a wait is no contention: nothing is published`,
    watched(async (t, threads) => {
      const { object } = create(type, BLOCKING);
      const messages = [listen(t, 'sablock:contended'), listen(t, 'sablock:long-hold')];
      assert.equal(object.wait(5), false);
      const waiting = object.waitAsync();
      await threads.queued(object, 1);
      object.set();
      assert.equal(await waiting, true);
      assert.deepEqual(messages, [[], []]);
    }),
  );

  test(
    `${type}: waiters whose threads end anywhere are in nobody's way`,
    needs('termination when busy'),
    watched(async (_, threads) => {
      const { object, words } = create(type);
      const doomed = await users(threads, 2, object);
      const [survivor] = await users(threads, 1, object);
      doomed[0].call('wait');
      await threads.queued(object, 1);
      doomed[1].call('waitAsync');
      await threads.queued(object, 2);
      const waiting = survivor.call('wait');
      await threads.queued(object, 3);
      await Promise.all(doomed.map((user) => terminate.end(user)));
      await threads.until('they have left', () => object.inspect().waiters.length === 1);
      object.set();
      assert.equal(await waiting, true);
      object.reset();
      assert.equal(words[0], 0);
    }),
  );
}

test(
  'ManualResetEvent: all pass while it is set, and who waited when it was set passes though it is reset at once',
  watched(async (_, threads) => {
    const { object } = create('ManualResetEvent');
    const workers = await users(threads, 2, object);
    const waiting = [...workers.map((worker) => worker.call('wait')), object.waitAsync(), object.waitAsync(1e9)];
    await threads.queued(object, 4);
    object.set();
    object.reset();
    assert.equal(object.isSet, false);
    assert.deepEqual(await Promise.all(waiting), [true, true, true, true]);
    assert.equal(await workers[0].call('wait', 0), false, 'who comes later waits');
    object.set();
    assert.deepEqual(await Promise.all([object.waitAsync(), object.waitAsync(), workers[0].call('wait')]), [
      true,
      true,
      true,
    ]);
    assert.equal(object.isSet, true);
  }),
);

test('AutoResetEvent: a set lets one pass, now or later, and two without a waiter are one', () => {
  const { object } = create('AutoResetEvent', BLOCKING);
  object.set();
  object.set();
  assert.deepEqual([object.wait(), object.isSet, object.wait(0)], [true, false, false]);
  object.set();
  object.reset();
  assert.equal(object.wait(0), false);
});

test('AutoResetEvent: waitAsync() takes the set at once', async () => {
  const { object } = create('AutoResetEvent', BLOCKING);
  for (const options of [undefined, 5, { ref: false }]) {
    object.set();
    const waiting = object.waitAsync(options);
    assert.equal(object.isSet, false);
    assert.equal(await waiting, true);
  }
});

test(
  'AutoResetEvent: n sets let n waiters pass, the first in line first, threads and loops alike',
  watched(async (_, threads) => {
    const { object } = create('AutoResetEvent');
    const workers = await users(threads, 2, object);
    const passed = [];
    const wait = async (start, name) => {
      const count = object.inspect().waiters.length;
      start().then(() => passed.push(name));
      await threads.queued(object, count + 1);
    };
    await wait(() => workers[0].call('wait'), 'a');
    await wait(() => object.waitAsync(), 'b');
    await wait(() => workers[1].call('wait'), 'c');
    await wait(() => object.waitAsync(), 'd');
    for (const count of [1, 2, 3]) {
      object.set();
      await threads.until(`${count} have passed`, () => passed.length === count);
      assert.equal(object.inspect().waiters.length, 4 - count);
    }
    assert.equal(passed.join(''), 'abc');
    object.set();
    object.set();
    await threads.until('all have passed', () => passed.length === 4);
    assert.equal(object.isSet, true, 'nobody waited for the last one');
  }),
);

test(
  'AutoResetEvent: sets without a pause let as many pass as there are waiters',
  watched(async (_, threads) => {
    const { object } = create('AutoResetEvent');
    const waiting = Array.from({ length: 100 }, () => object.waitAsync());
    for (let count = 0; count < 99; count++) object.set();
    assert.deepEqual(await Promise.all(waiting.slice(0, 99)), new Array(99).fill(true));
    assert.equal(object.inspect().waiters.length, 1);
    const [worker] = await users(threads, 1, object);
    await worker.call('set');
    assert.equal(await waiting[99], true);
    assert.equal(object.isSet, false);
  }),
);

test(
  'AutoResetEvent: a passage that a thread ended without knowing of goes to the next, or back',
  needs('termination when busy'),
  watched(async (_, threads) => {
    for (const isAwaited of [true, false]) {
      const { object } = create('AutoResetEvent');
      const [doomed] = await users(threads, 1, object);
      doomed.run([
        ['begin', 'waitAsync'],
        ['spinUntil', 9],
      ]);
      await threads.queued(object, 1);
      const next = isAwaited ? object.waitAsync() : undefined;
      object.set();
      // The loop that it was granted to is busy for good.
      assert.deepEqual([object.isSet, object.inspect().waiters.length], [false, isAwaited ? 1 : 0]);
      await terminate.end(doomed);
      if (isAwaited) assert.equal(await next, true);
      await threads.until('it is as it should be', () => object.isSet === !isAwaited);
    }
  }),
);

test(
  'AutoResetEvent: no set is lost between waiters with timeouts and one that is patient',
  watched(async (_, threads) => {
    const { object } = create('AutoResetEvent');
    const [hasty, patient] = await users(threads, 2, object);
    for (let round = 0; round < 50; round++) {
      const left = hasty.call('wait', round % 3);
      const waiting = patient.call('wait');
      await threads.queued(object, 1);
      object.set();
      // If the hasty one has got it, this one is for the other.
      if (await left) object.set();
      assert.equal(await waiting, true, `round ${round}`);
      object.reset();
    }
  }),
);
