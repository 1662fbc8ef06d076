const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { threadId } = require('node:worker_threads');
const { inspect } = require('node:util');
const { Once } = require('../..');
const { endings } = require('../helpers/endings.js');
const { corrupt, deadlock, invalidArgType, mainThread, outOfRange, timeout } = require('../helpers/expected.js');
const { OFFSET } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { create, users } = require('../helpers/primitives.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { SHORT_STACK } = require('../helpers/stack.js');
const { watched } = require('../helpers/threads.js');

const BLOCKING = { allowMainThread: true };
const FRESH = { abandoned: false };
const terminate = endings.find(({ name }) => name === 'terminate()');
const nothing = () => {};

const createOnce = (options) => create('Once', options);
const fail = () => {
  throw new Error('Failed on purpose');
};

test('zeroed memory is not done, and a new object changes nothing', () => {
  const { object, words } = createOnce({ name: 'tables' });
  assert.deepEqual([Once.BYTES, Once.ALIGN, object.name], [4, 4, 'tables']);
  assert.deepEqual([object.isDone, words[0]], [false, 0]);
});

for (const verb of ['run', 'runSync']) {
  test(`${verb}() calls fn the first time, and returns whether it did`, async () => {
    const { buffer, object } = createOnce(BLOCKING);
    const calls = [];
    const fn = (notes) => {
      calls.push([notes, object.isDone, object.inspect().holders]);
    };
    assert.equal(await object[verb](fn), true);
    assert.equal(object.isDone, true);
    const other = new Once(buffer, OFFSET, BLOCKING);
    for (const options of [undefined, 5, { timeout: 5 }, 0]) {
      assert.equal(await object[verb](fn, options), false);
      assert.equal(await other[verb](fn, options), false);
    }
    assert.deepEqual(calls, [[FRESH, false, [{ threadId, mode: 'exclusive', count: 1 }]]]);
    assert.deepEqual(object.inspect(), { name: null, holders: [], waiters: [] });
  });

  test(`what fn throws comes out of ${verb}(), and the next one runs its own`, async () => {
    const { object, words } = createOnce(BLOCKING);
    for (let count = 0; count < 2; count++) {
      await assert.rejects(async () => object[verb](fail), { message: 'Failed on purpose' });
      assert.deepEqual([object.isDone, words[0]], [false, 0]);
    }
    assert.equal(await object[verb](nothing), true);
  });

  test(`bad arguments of ${verb}() are refused, also when it is done, and fn is not called`, async () => {
    const { object, words } = createOnce(BLOCKING);
    for (const isDone of [false, true]) {
      if (isDone) object.runSync(nothing);
      const before = words[0];
      for (const fn of [undefined, null, 'fn', {}]) {
        await assert.rejects(async () => object[verb](fn), invalidArgType(OFFSET));
      }
      for (const options of [null, '5', { timeout: '5' }]) {
        await assert.rejects(async () => object[verb](fail, options), invalidArgType(OFFSET));
      }
      assert.equal(words[0], before);
    }
  });

  test(`${verb}() refuses a word that no once has, and leaves it alone`, async () => {
    for (const value of [1, 5, (2 ** 30) | 1, 1 << 31, -1, 2 ** 29]) {
      const { object, words } = createOnce({ ...BLOCKING, name: 'tables' });
      words[0] = value;
      const expected = { ...corrupt(OFFSET), message: /the once 'tables' at byte offset/ };
      await assert.rejects(async () => object[verb](nothing), expected);
      assert.deepEqual([words[0], object.isDone], [value, false]);
    }
  });

  test(`${verb}() says so if the word was overwritten while fn ran`, async () => {
    const { object, words } = createOnce(BLOCKING);
    const overwrite = () => {
      words[0] = 77;
    };
    await assert.rejects(async () => object[verb](overwrite), corrupt(OFFSET));
    assert.equal(words[0], 77);
  });

  test(
    `of all threads one runs, the others wait in ${verb}() until it is done, and none of them runs`,
    watched(async (_, threads) => {
      const { object } = createOnce({ name: 'tables' });
      const [runner, blocked, pending] = await users(threads, 3, object);
      const running = runner.call('callOnce', verb, verb === 'run' ? 'awaitUntil' : 'blockUntil', undefined, 0, 1);
      await threads.raised(0);
      const waiting = [
        blocked.call('callOnce', 'runSync', 'fail'),
        pending.call('callOnce', 'run', 'fail'),
        object.run(fail),
        object.run(fail, { timeout: 1e9, signal: new AbortController().signal }),
      ];
      await threads.queued(object, 4);
      const { holders, waiters } = object.inspect();
      assert.deepEqual(holders, [{ threadId: runner.threadId, mode: 'exclusive', count: 1 }]);
      assert.deepEqual(
        waiters.map(({ mode }) => mode),
        new Array(4).fill('exclusive'),
      );
      assert.equal(inspect(object), `Once 'tables' { byteOffset: ${OFFSET}, holders: 1, waiters: 4 }`);
      threads.raise(1);
      assert.deepEqual(await running, { value: true, told: FRESH });
      const seen = { value: false, told: null };
      assert.deepEqual(await Promise.all(waiting), [seen, seen, false, false]);
    }),
  );

  test(
    `isDone is true as soon as another thread's ${verb}() is done, while waits of this thread have not come for that`,
    watched(async (_, threads) => {
      const { object } = createOnce();
      const [runner] = await users(threads, 1, object);
      const running = runner.call('callOnce', verb, verb === 'run' ? 'awaitUntil' : 'blockUntil', undefined, 0, 1);
      await threads.raised(0);
      const waiting = [object.run(fail), object.run(fail, { timeout: 1e9 })];
      await threads.queued(object, 2);
      assert.equal(object.isDone, false);
      threads.raise(1);
      // This loop does not turn meanwhile.
      const until = performance.now() + 60_000;
      while (object.inspect().holders.length > 0 && performance.now() < until);
      assert.equal(object.isDone, true);
      assert.deepEqual(await Promise.all(waiting), [false, false]);
      assert.equal((await running).value, true);
    }),
  );

  for (const { name, end, options, needs: needed } of endings) {
    // Nothing but terminate() ends a thread that is blocked inside its own function.
    if (verb === 'runSync' && name !== 'terminate()') continue;
    test(
      `if the thread of ${verb}() ends by ${name}, the next in line runs, and knows`,
      needs(...needed, 'prompt ends', ...(verb === 'runSync' ? ['termination when busy'] : [])),
      watched(async (t, threads) => {
        const messages = listen(t, 'sablock:abandoned');
        const { object } = createOnce();
        const [doomed] = await users(threads, 1, object, options);
        const [blocked, last] = await users(threads, 2, object);
        await blocked.call('listen', 'sablock:abandoned');
        doomed.call('callOnce', verb, verb === 'run' ? 'hang' : 'blockUntil', undefined, 0, 1);
        await threads.raised(0);
        const next = blocked.call('callOnce', 'runSync', 'succeed');
        await threads.queued(object, 1);
        const others = [object.run(fail), last.call('callOnce', 'runSync', 'fail')];
        await threads.queued(object, 3);
        await end(doomed);
        assert.deepEqual(await next, { value: true, told: { abandoned: true } });
        assert.deepEqual(await Promise.all(others), [false, { value: false, told: null }]);
        const message = { byteOffset: OFFSET, ownerThreadId: doomed.threadId, mode: 'exclusive' };
        assert.deepEqual(await blocked.call('heard'), [message]);
        assert.deepEqual([messages, await blocked.call('warnings')], [[], []], 'no warning: the flag says so');
      }),
    );
  }
}

test(
  'if nobody waits when the thread ends, the next to come knows, and all after it until one is done',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, 'sablock:abandoned');
    const { object } = createOnce(BLOCKING);
    const [doomed] = await users(threads, 1, object);
    doomed.call('callOnce', 'run', 'hang', undefined, 0);
    await threads.raised(0);
    await terminate.end(doomed);
    const told = [];
    const failAgain = (notes) => {
      told.push(notes.abandoned);
      fail();
    };
    await assert.rejects(object.run(failAgain), { message: 'Failed on purpose' });
    assert.throws(() => object.runSync(failAgain), { message: 'Failed on purpose' });
    assert.equal(await object.run(({ abandoned }) => void told.push(abandoned)), true);
    assert.deepEqual(told, [true, true, true]);
    assert.equal(object.isDone, true);
    assert.deepEqual(messages, [{ byteOffset: OFFSET, ownerThreadId: doomed.threadId, mode: 'exclusive' }]);
  }),
);

test(
  'those in line run in its order, blocked and by promises, each after the one before has failed',
  watched(async (_, threads) => {
    const { object } = createOnce();
    const workers = await users(threads, 2, object);
    let fallOver;
    const first = object.run(() => new Promise((_, reject) => (fallOver = reject)));
    const order = [];
    const waits = [];
    const wait = async (start) => {
      waits.push(start());
      await threads.queued(object, waits.length);
    };
    const failing = (name) => () => {
      order.push(name);
      fail();
    };
    await nextTurn();
    await wait(() => object.run(failing('a')).catch(({ message }) => message));
    await wait(() => workers[0].call('callOnce', 'runSync', 'fail'));
    await wait(() => object.run(failing('b')).catch(({ message }) => message));
    await wait(() => workers[1].call('callOnce', 'run', 'fail'));
    await wait(() => object.run(() => order.push('c')));
    fallOver(new Error('the first'));
    await assert.rejects(first, { message: 'the first' });
    const failed = { error: 'Failed on purpose', told: FRESH };
    assert.deepEqual(await Promise.all(waits), [failed.error, failed, failed.error, failed, true]);
    assert.deepEqual(order, ['a', 'b', 'c']);
  }),
);

test(
  'a time that is over is a TimeoutError, which says who runs, and fn is not called',
  watched(async (_, threads) => {
    const { object } = createOnce();
    const [runner, worker] = await users(threads, 2, object);
    const running = runner.call('callOnce', 'runSync', 'blockUntil', undefined, 0, 1);
    await threads.raised(0);
    const message = new RegExp(
      `^run\\(\\) timed out after 5 ms.* ${OFFSET}\\. Thread ${runner.threadId} runs it now\\. Wait longer\\.$`,
    );
    await assert.rejects(object.run(fail, 5), { ...timeout(OFFSET), message });
    await assert.rejects(object.run(fail, { timeout: 0 }), timeout(OFFSET));
    for (const limit of [20, { timeout: 20 }, 0]) {
      assert.deepEqual(await worker.call('callOnce', 'runSync', 'fail', limit), {
        error: 'ERR_LOCK_TIMEOUT',
        told: null,
      });
    }
    threads.raise(1);
    assert.deepEqual(await running, { value: true, told: FRESH });
  }),
);

test(
  'an aborted run() rejects with the reason, and fn is not called; what runs is not ended by it',
  watched(async (_, threads) => {
    const { object } = createOnce();
    const controller = new AbortController();
    const { signal } = controller;
    let succeed;
    const running = object.run(() => new Promise((resolve) => (succeed = resolve)), { signal });
    await nextTurn();
    const waiting = object.run(fail, { signal });
    await threads.queued(object, 1);
    controller.abort('enough');
    await assert.rejects(waiting, (reason) => reason === 'enough');
    await assert.rejects(object.run(fail, { signal }), (reason) => reason === 'enough');
    assert.deepEqual([object.isDone, object.inspect().waiters], [false, []]);
    succeed();
    assert.equal(await running, true);
  }),
);

test('runSync() throws on the main thread, done or not, unless it is allowed', async () => {
  const { object } = createOnce();
  const expected = { ...mainThread(OFFSET), message: /Use run\(\) here, or create the Once with/ };
  assert.throws(() => object.runSync(fail), expected);
  await object.run(nothing);
  assert.throws(() => object.runSync(fail), expected);
  assert.throws(() => new Once(new SharedArrayBuffer(4), 2), outOfRange());
  assert.throws(() => new Once(new ArrayBuffer(4)), invalidArgType());
});

test('runSync() refuses a promise, and is not done then', async () => {
  const { object } = createOnce(BLOCKING);
  assert.throws(() => object.runSync(async () => {}), invalidArgType(OFFSET));
  // biome-ignore lint/suspicious/noThenProperty: a thenable is the subject.
  assert.throws(() => object.runSync(() => ({ then: nothing })), invalidArgType(OFFSET));
  assert.equal(object.isDone, false);
  assert.equal(await object.run(async () => {}), true);
});

test('runSync() in the thread whose runSync() is at work is a deadlock, with a timeout it times out', () => {
  const { object } = createOnce(BLOCKING);
  const inner = () => object.runSync(fail);
  assert.throws(() => object.runSync(inner), { ...deadlock(OFFSET), message: /which it runs itself/ });
  assert.throws(() => object.runSync(() => object.runSync(fail, 5)), timeout(OFFSET));
  assert.equal(object.isDone, false);
  assert.equal(object.runSync(nothing), true);
});

test('runSync() in the thread whose run() is at work is a deadlock, and that goes on', async () => {
  const { object } = createOnce(BLOCKING);
  let succeed;
  const running = object.run(() => new Promise((resolve) => (succeed = resolve)));
  await nextTurn();
  assert.throws(() => object.runSync(fail), deadlock(OFFSET));
  succeed();
  assert.equal(await running, true);
  assert.equal(object.runSync(fail), false);
});

test(
  'runSync() behind a run() of its thread is a deadlock that does not say that it is at work, while another thread runs',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { object } = createOnce(BLOCKING);
    const [runner] = await users(threads, 1, object);
    runner.call('callOnce', 'run', 'hang', undefined, 0);
    await threads.raised(0);
    const waiting = object.run(nothing);
    await threads.queued(object, 1);
    assert.throws(() => object.runSync(fail), {
      ...deadlock(OFFSET),
      message: /runs itself, or waits to run already,/,
    });
    await terminate.end(runner);
    assert.equal(await waiting, true);
  }),
);

test(
  'run() inside run() waits for the outer one',
  watched(async () => {
    const { object } = createOnce();
    let inner;
    const outer = object.run(async () => {
      inner = object.run(fail);
      await assert.rejects(object.run(fail, 5), timeout(OFFSET));
    });
    assert.equal(await outer, true);
    assert.equal(await inner, false);
  }),
);

for (const [verb, outcome, fn] of [
  ['run', 'is done', nothing],
  ['run', 'fails', fail],
  ['runSync', 'is done', nothing],
  ['runSync', 'fails', fail],
]) {
  test(`when ${verb}() ${outcome}, a run() that waits in its thread learns of it in the same turn`, async () => {
    const { object } = createOnce(BLOCKING);
    let told = false;
    let waiting;
    const outer = (async () =>
      object[verb](() => {
        waiting = object.run(nothing).then((ranIt) => {
          told = true;
          return ranIt;
        });
        return fn();
      }))();
    await outer.catch(nothing);
    // Some microtasks; a turn of the loop would take a task.
    for (let microtask = 0; microtask < 30; microtask++) await undefined;
    assert.equal(told, true);
    assert.equal(await waiting, fn === fail);
  });
}

test(
  'a circle of a mutex and a once is a deadlock of one of the two threads',
  watched(async (_, threads) => {
    const { object } = createOnce();
    const [runner, locker] = await users(threads, 2, object);
    const running = runner.call('lockInside', 0, 0, 1);
    await threads.raised(0);
    const locking = locker.call('runInside', 0, 2);
    await threads.queued(object, 1);
    threads.raise(1);
    const results = await Promise.allSettled([running, locking]);
    const failed = results.filter(({ status }) => status === 'rejected');
    assert.deepEqual(
      failed.map(({ reason }) => reason.code),
      ['ERR_LOCK_DEADLOCK'],
    );
  }),
);

test(
  'a turn that was granted to a thread that ended before it knew goes to the next in line, who need know nothing',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const { object } = createOnce();
    const [doomed, next] = await users(threads, 2, object);
    let fallOver;
    const first = object.run(() => new Promise((_, reject) => (fallOver = reject)));
    await nextTurn();
    doomed.run([
      ['begin', 'callNothing'],
      ['spinUntil', 9],
    ]);
    await threads.queued(object, 1);
    const waiting = next.call('callOnce', 'runSync', 'succeed');
    await threads.queued(object, 2);
    fallOver(new Error('the first'));
    await assert.rejects(first);
    assert.deepEqual(object.inspect().holders, [{ threadId: doomed.threadId, mode: 'exclusive', count: 1 }]);
    await terminate.end(doomed);
    assert.deepEqual(await waiting, { value: true, told: FRESH });
  }),
);

test(
  'at the end of the stack runSync() and what else passes or counts leave nothing held',
  needs('stack ends'),
  async () => {
    const { code, stdout, stderr } = await runProgram('primitives-stack-ends', [], { nodeArgs: SHORT_STACK });
    assert.equal(code, 0, stderr);
    for (const [verb, { called, failed, leaked }] of Object.entries(JSON.parse(stdout))) {
      assert.ok(failed > 0 && failed < called, `${verb} failed at ${failed} of ${called}`);
      assert.equal(leaked, 0, verb);
    }
  },
);
