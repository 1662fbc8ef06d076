const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { Semaphore, stats } = require('../..');
const { startActors } = require('../helpers/actors.js');
const expected = require('../helpers/expected.js');
const { listen } = require('../helpers/messages.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const create = (permits, options) =>
  new Semaphore(new SharedArrayBuffer(64), OFFSET, permits, { allowMainThread: true, ...options });

for (const [what, args] of [
  ['a number', [1, 30]],
  ['options', [1, { timeout: 30 }]],
]) {
  test(`acquire() and acquireAsync() with a timeout in ${what} throw a TimeoutError when it is over, and hold nothing`, async () => {
    const semaphore = create(1);
    const held = semaphore.acquire();
    const startedAt = performance.now();
    assert.throws(() => semaphore.acquire(...args), expected.timeout(OFFSET));
    await assert.rejects(semaphore.acquireAsync(...args), expected.timeout(OFFSET));
    assert.ok(performance.now() - startedAt >= 58);
    held.release();
    assert.deepEqual([semaphore.available, semaphore.inspect().waiters], [1, []]);
  });
}

test('execute() and executeSync() with a timeout do not call fn when it is over', async () => {
  const semaphore = create(1);
  semaphore.acquire();
  const fn = () => assert.fail('called');
  assert.throws(() => semaphore.executeSync(fn, { timeout: 5 }), {
    code: 'ERR_LOCK_TIMEOUT',
    message: /^executeSync\(/,
  });
  await assert.rejects(semaphore.execute(fn, { timeout: 5 }), { code: 'ERR_LOCK_TIMEOUT', message: /^execute\(/ });
});

test('a TimeoutError says how many were asked for, how many there are, and the name', () => {
  const semaphore = create(3, { name: 'connections' });
  semaphore.acquire(2);
  assert.throws(() => semaphore.acquire(2, 0), {
    name: 'TimeoutError',
    message: /the semaphore 'connections' at byte offset 24\. 2 permits were asked for, and one is available now/,
  });
});

test('a signal takes a wait back with its reason, before and during it', async () => {
  const semaphore = create(1);
  const held = semaphore.acquire();
  const reason = new Error('Aborted on purpose');
  await assert.rejects(semaphore.acquireAsync(1, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const waits = [
    semaphore.acquireAsync(1, { signal: controller.signal }),
    semaphore.execute(() => assert.fail('called'), { signal: controller.signal }),
  ];
  controller.abort(reason);
  for (const wait of waits) await assert.rejects(wait, reason);
  assert.deepEqual(semaphore.inspect().waiters, []);
  held.release();
  assert.equal(semaphore.available, 1);
});

test('an abort that comes after the grant of a fair semaphore takes nothing back', async () => {
  const semaphore = create(1, { fair: true });
  const held = semaphore.acquire();
  const controller = new AbortController();
  const pending = semaphore.acquireAsync(1, { signal: controller.signal });
  held.release();
  controller.abort();
  assert.equal((await pending).count, 1);
});

test('acquire() and executeSync() refuse the main thread, also if there are permits', () => {
  const semaphore = new Semaphore(new SharedArrayBuffer(64), OFFSET, 1, { name: 'pool' });
  const refusal = { ...expected.mainThread(OFFSET), message: /'pool' at byte offset 24.*\{ allowMainThread: true \}/s };
  assert.throws(() => semaphore.acquire(), refusal);
  assert.throws(() => semaphore.executeSync(() => assert.fail('called')), refusal);
  assert.equal(semaphore.available, 1);
});

for (const [what, args, lines] of [
  ['a pending acquireAsync() keeps the process alive', ['true'], ['waiting', 'granted', 'exit']],
  ['a pending acquireAsync() with ref: false does not', ['false'], ['waiting', 'exit']],
]) {
  test(what, async () => {
    const { code, stdout, stderr } = await runProgram('keep-alive-semaphore', args);
    assert.deepEqual({ code, stderr, lines: stdout.trim().split('\n') }, { code: 0, stderr: '', lines });
  });
}

for (const [what, args] of [
  ['no permits', []],
  ['permits that are no number', ['1']],
  ['null permits', [null]],
  ['options that are none', [1, 5]],
  ['a name that is no string', [1, { name: 5 }]],
]) {
  test(`new Semaphore() with ${what} throws ERR_INVALID_ARG_TYPE`, () => {
    assert.throws(() => new Semaphore(new SharedArrayBuffer(4), 0, ...args), expected.invalidArgType());
  });
}

for (const permits of [-1, 1.5, NaN, Infinity, Semaphore.MAX_PERMITS + 1]) {
  test(`new Semaphore() with ${permits} permits throws ERR_OUT_OF_RANGE`, () => {
    assert.throws(() => new Semaphore(new SharedArrayBuffer(4), 0, permits), expected.outOfRange());
  });
}

test('new Semaphore() of what is no shared memory, or beyond its end, throws', () => {
  assert.throws(() => new Semaphore(new ArrayBuffer(4), 0, 1), expected.invalidArgType());
  assert.throws(() => new Semaphore(new SharedArrayBuffer(4), 4, 1), expected.outOfRange());
  assert.throws(() => new Semaphore(new SharedArrayBuffer(8), 2, 1), expected.outOfRange());
});

test('a bad number of permits, timeout, signal or function is refused before anything changes', async () => {
  const semaphore = create(5);
  const fn = () => assert.fail('called');
  const refused = async (expectation, ...calls) => {
    for (const call of calls) await assert.rejects(async () => call(), expectation, String(call));
  };
  const refuse = (n, expectation) =>
    refused(
      expectation,
      () => semaphore.acquire(n),
      () => semaphore.acquireAsync(n),
      () => semaphore.tryAcquire(n),
      () => semaphore.release(n),
      () => semaphore.execute(fn, { permits: n }),
      () => semaphore.executeSync(fn, { permits: n }),
    );
  for (const n of ['1', null, {}, 1n, true]) await refuse(n, expected.invalidArgType(OFFSET));
  for (const n of [0, -1, 1.5, NaN, Infinity, Semaphore.MAX_PERMITS + 1]) await refuse(n, expected.outOfRange());
  await refused(
    expected.invalidArgType(OFFSET),
    () => semaphore.acquire(1, '5'),
    () => semaphore.acquireAsync(1, { signal: {} }),
    () => semaphore.acquireAsync(1, { ref: 1 }),
    () => semaphore.execute(fn, null),
    () => semaphore.executeSync(fn, null),
    () => semaphore.execute(),
    () => semaphore.executeSync(5),
  );
  assert.equal(semaphore.available, 5);
});

test('verbs that return a promise never throw', () => {
  const semaphore = create(1);
  for (const promise of [semaphore.acquireAsync('x'), semaphore.execute(), semaphore.acquireAsync(1, 'x')]) {
    assert.ok(promise instanceof Promise);
    promise.catch(() => {});
  }
});

test('overwritten memory is ERR_LOCK_CORRUPT for every verb, and stays as it is', async () => {
  const semaphore = create(3, { name: 'pool' });
  const permits = semaphore.acquire();
  const word = new Int32Array(semaphore.buffer, OFFSET, 1);
  for (const value of [1 << 30, -1, 1 << 31]) {
    word[0] = value;
    const corrupt = { ...expected.corrupt(OFFSET), message: /the semaphore 'pool' at byte offset 24/ };
    assert.throws(() => semaphore.acquire(), corrupt);
    assert.throws(() => semaphore.tryAcquire(), corrupt);
    assert.throws(() => semaphore.release(), corrupt);
    assert.throws(() => permits.release(), corrupt);
    await assert.rejects(semaphore.acquireAsync(), corrupt);
    await assert.rejects(
      semaphore.execute(() => {}),
      corrupt,
    );
    assert.equal(word[0], value);
  }
  word[0] = 1;
  assert.equal(permits.release(), true);
});

test(
  'inspect() shows who holds how many, and who waits, in order',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const semaphore = create(4, { name: 'pool', fair: true });
    const [holder, waiter] = await startActors(threads, 2, semaphore.buffer);
    await holder.do((here, offset) => {
      here.kept = new here.sablock.Semaphore(here.buffer, offset, 4, { fair: true }).acquire(3);
    }, OFFSET);
    waiter.do((here, offset) => {
      new here.sablock.Semaphore(here.buffer, offset, 4, { fair: true }).acquire(4);
    }, OFFSET);
    await threads.queued(semaphore, 1);
    const pending = semaphore.acquireAsync(1, { timeout: 1e6 });
    const { name, holders, waiters } = semaphore.inspect();
    assert.equal(name, 'pool');
    assert.deepEqual(holders, [{ threadId: holder.threadId, mode: 'permits', count: 3 }]);
    assert.deepEqual(
      waiters.map(({ threadId, kind, mode }) => ({ threadId, kind, mode })),
      [
        { threadId: waiter.threadId, kind: 'blocking', mode: 'permits' },
        { threadId: 0, kind: 'async', mode: 'permits' },
      ],
    );
    assert.ok(waiters.every(({ waitedMs }) => waitedMs >= 0));
    assert.match(inspect(semaphore), /^Semaphore 'pool' \{ byteOffset: 24, holders: 1, waiters: 2 \}$/);
    await waiter.terminate();
    (await pending).release();
  }),
);

test('stats() counts waits for permits', async () => {
  const semaphore = create(1);
  const before = stats();
  const held = semaphore.acquire();
  const pending = semaphore.acquireAsync();
  assert.equal(stats().pending - before.pending, 1);
  assert.throws(() => semaphore.acquire(1, 5), expected.timeout());
  held.release();
  (await pending).release();
  const after = stats();
  assert.deepEqual(
    [after.contended - before.contended, after.timeouts - before.timeouts, after.pending - before.pending],
    [1, 1, 0],
  );
});

test('a wait for permits is published with the semaphore and its name', async (t) => {
  const messages = listen(t, 'sablock:contended');
  const longHolds = listen(t, 'sablock:long-hold');
  const semaphore = create(1, { name: 'pool' });
  const held = semaphore.acquire();
  const pending = semaphore.acquireAsync();
  assert.throws(() => semaphore.acquire(1, 150), expected.timeout());
  held.release();
  (await pending).release();
  assert.deepEqual(
    messages.map(({ kind, outcome, ownerThreadId }) => ({ kind, outcome, ownerThreadId })),
    [
      { kind: 'blocking', outcome: 'timed-out', ownerThreadId: null },
      { kind: 'async', outcome: 'acquired', ownerThreadId: null },
    ],
  );
  assert.deepEqual(longHolds, []);
});
