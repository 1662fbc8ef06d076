const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore, SemaphorePermits } = require('../..');
const { startActors } = require('../helpers/actors.js');
const expected = require('../helpers/expected.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const create = (permits, options) =>
  new Semaphore(new SharedArrayBuffer(64), OFFSET, permits, { allowMainThread: true, ...options });

test('zeroed memory has all permits, and the constructor changes nothing', () => {
  const semaphore = create(3);
  assert.equal(semaphore.available, 3);
  assert.deepEqual(new Uint8Array(semaphore.buffer), new Uint8Array(64));
  assert.equal(semaphore.byteOffset, OFFSET);
  assert.equal(new Semaphore(new SharedArrayBuffer(4), undefined, 3).byteOffset, 0);
});

test('Semaphore.BYTES and ALIGN are 4, and MAX_PERMITS is 2 ** 24 or more', () => {
  assert.equal(Semaphore.BYTES, 4);
  assert.equal(Semaphore.ALIGN, 4);
  assert.ok(Semaphore.MAX_PERMITS >= 2 ** 24);
  assert.equal(create(Semaphore.MAX_PERMITS).available, Semaphore.MAX_PERMITS);
});

for (const verb of ['acquire', 'acquireAsync', 'tryAcquire']) {
  test(`${verb}() takes one permit, and as many as it is asked for`, async () => {
    const semaphore = create(5);
    const one = await semaphore[verb]();
    const more = await semaphore[verb](3);
    assert.ok(one instanceof SemaphorePermits);
    assert.deepEqual([one.count, more.count, semaphore.available], [1, 3, 1]);
    assert.equal(one.semaphore, semaphore);
    assert.equal(more.release(), true);
    assert.equal(one.release(), true);
    assert.equal(semaphore.available, 5);
  });
}

test('undefined is one permit in every place of their number, with a timeout behind it too', async () => {
  const semaphore = create(1);
  const inside = () => semaphore.available;
  for (const take of [
    () => semaphore.acquire(undefined, 0),
    () => semaphore.acquireAsync(undefined, { timeout: 0 }),
    () => semaphore.tryAcquire(undefined),
  ]) {
    const permits = await take();
    assert.deepEqual([permits.count, semaphore.available, permits.release(undefined)], [1, 0, true]);
  }
  assert.equal(semaphore.executeSync(inside, { permits: undefined, timeout: 0 }), 0);
  assert.equal(await semaphore.execute(inside, { permits: undefined, timeout: 0 }), 0);
  semaphore.release(undefined);
  assert.equal(semaphore.available, 2);
});

test('tryAcquire() is null if there are not enough, and takes none', () => {
  const semaphore = create(2);
  assert.equal(semaphore.tryAcquire(3), null);
  assert.equal(semaphore.available, 2);
  semaphore.tryAcquire(2);
  assert.equal(semaphore.tryAcquire(), null);
});

test('permits are released in parts, and the object is spent when none is left', () => {
  const semaphore = create(3);
  const permits = semaphore.acquire(3);
  assert.equal(permits.release(2), true);
  assert.deepEqual([permits.count, semaphore.available], [1, 2]);
  assert.throws(() => permits.release(2), expected.outOfRange());
  assert.throws(() => permits.release(0), expected.outOfRange());
  assert.throws(() => permits.release('1'), expected.invalidArgType(OFFSET));
  assert.deepEqual([permits.count, semaphore.available], [1, 2]);
  assert.equal(permits.release(), true);
  for (const n of [undefined, 0, 1, 5, 'x']) assert.equal(permits.release(n), false);
  assert.equal(semaphore.available, 3);
});

test('forgotten permits are nobody’s: they do not come back', () => {
  const semaphore = create(3);
  const permits = semaphore.acquire(2);
  permits.release(1);
  assert.equal(permits.forget(), undefined);
  assert.deepEqual([permits.count, permits.release(), semaphore.available], [0, false, 2]);
  permits.forget();
  assert.deepEqual(semaphore.inspect().holders, []);
  assert.equal(semaphore.available, 2);
});

test('dispose releases what is left, once', () => {
  const semaphore = create(3);
  const permits = semaphore.acquire(3);
  permits.release(1);
  const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');
  permits[dispose]();
  permits[dispose]();
  assert.equal(semaphore.available, 3);
});

test('release() adds permits beyond those of the constructor, and they can be had in one request', async () => {
  const semaphore = create(2);
  semaphore.release(3);
  assert.equal(semaphore.available, 5);
  const permits = semaphore.acquire(5);
  assert.equal(semaphore.available, 0);
  const pending = semaphore.acquireAsync(7);
  permits.release();
  semaphore.release();
  assert.equal(semaphore.inspect().waiters.length, 1);
  semaphore.release();
  assert.equal((await pending).count, 7);
});

test('release() beyond MAX_PERMITS is a RangeError and changes nothing, waiters or not', async () => {
  const most = Semaphore.MAX_PERMITS;
  const semaphore = create(10);
  assert.throws(() => semaphore.release(most - 9), expected.outOfRange());
  assert.throws(() => semaphore.release(most + 1), expected.outOfRange());
  assert.equal(semaphore.available, 10);
  semaphore.release(most - 10);
  assert.equal(semaphore.available, most);
  assert.throws(() => semaphore.release(), expected.outOfRange());
  const some = semaphore.acquire(5);
  const pending = semaphore.acquireAsync(most);
  assert.throws(() => semaphore.release(6), expected.outOfRange());
  assert.equal(semaphore.available, most - 5);
  some.release();
  assert.equal((await pending).count, most);
});

test('the error of permits beyond MAX_PERMITS says how many were added, how many there are, and how many may be', () => {
  const most = Semaphore.MAX_PERMITS;
  const semaphore = create(10, { name: 'pool' });
  const error = (n, available) => ({
    message: `Cannot add ${n} to the semaphore 'pool' at byte offset ${OFFSET}: its count is ${available}, and must stay between 0 and ${most}. Nothing was changed.`,
  });
  const permits = semaphore.acquire(3);
  assert.throws(() => semaphore.release(most - 6), error(most - 6, 7));
  semaphore.release(most - 7);
  assert.throws(() => permits.release(2), error(2, most));
  assert.equal(permits.count, 3);
});

test('permits for which others were added meanwhile cannot go back beyond MAX_PERMITS, and stay', () => {
  const semaphore = create(0);
  semaphore.release(5);
  const permits = semaphore.acquire(5);
  semaphore.release(Semaphore.MAX_PERMITS);
  assert.throws(() => permits.release(), expected.outOfRange());
  assert.deepEqual([permits.count, semaphore.available], [5, Semaphore.MAX_PERMITS]);
  semaphore.acquire(5).forget();
  assert.equal(permits.release(), true);
  assert.equal(semaphore.available, Semaphore.MAX_PERMITS);
});

for (const fair of [false, true]) {
  for (const isAwaited of [false, true]) {
    const how = `${fair ? 'fair' : 'barging'}${isAwaited ? ', with somebody waiting' : ''}`;
    test(`permits that are out count: of those that go back beyond MAX_PERMITS none does (${how})`, async () => {
      const most = Semaphore.MAX_PERMITS;
      const semaphore = new Semaphore(new SharedArrayBuffer(4), 0, most, { fair });
      const permits = semaphore.tryAcquire(most);
      semaphore.release(1);
      const waits = isAwaited ? semaphore.acquireAsync(2) : null;
      assert.throws(() => permits.release(), expected.outOfRange());
      assert.deepEqual([permits.count, semaphore.available], [most, 1]);
      assert.equal(permits.release(most - 1), true);
      if (isAwaited) assert.equal((await waits).release(), true);
      assert.equal(semaphore.available, most);
      assert.throws(() => permits.release(), expected.outOfRange());
      semaphore.tryAcquire(1).forget();
      assert.equal(permits.release(), true);
      assert.equal(semaphore.available, most);
    });
  }
}

test('two objects at one place are one semaphore, of which each knows the permits itself', () => {
  const semaphore = create(3);
  const other = new Semaphore(semaphore.buffer, OFFSET, 4);
  const permits = semaphore.acquire(2);
  assert.equal(other.available, 2);
  assert.equal(new Semaphore(semaphore.buffer, OFFSET, 1).available, 0, 'none, where more are out than it has');
  permits.release();
  assert.equal(other.available, 4);
});

test(
  'a semaphore of 0 permits is for signalling: acquire() blocks until another thread releases',
  watched(async (_, threads) => {
    const semaphore = create(0);
    const [consumer] = await startActors(threads, 1, semaphore.buffer);
    const consumed = consumer.do((here, offset) => {
      const signals = new here.sablock.Semaphore(here.buffer, offset, 0);
      for (let count = 0; count < 100; count++) signals.acquire().forget();
      return signals.available;
    }, OFFSET);
    for (let count = 0; count < 101; count++) semaphore.release();
    assert.equal(await consumed, 1);
  }),
);

for (const verb of ['acquire', 'acquireAsync', 'tryAcquire', 'execute', 'executeSync']) {
  test(
    `${verb}(): never more are inside than there are permits`,
    watched(async (_, threads) => {
      const PERMITS = 3;
      const semaphore = create(PERMITS);
      const actors = await startActors(threads, 5, semaphore.buffer);
      const peaks = actors.map((actor) =>
        actor.do(
          async (here, offset, verb, permits) => {
            const semaphore = new here.sablock.Semaphore(here.buffer, offset, permits);
            const inside = new Int32Array(here.buffer, 0, 1);
            let peak = 0;
            const work = (n) => {
              peak = Math.max(peak, Atomics.add(inside, 0, n) + n);
              for (let spin = 0; spin < 200; spin++) Atomics.load(inside, 0);
              Atomics.sub(inside, 0, n);
            };
            for (let round = 0; round < 300; round++) {
              const n = 1 + (round % 2);
              if (verb === 'execute') await semaphore.execute(() => work(n), { permits: n });
              else if (verb === 'executeSync') semaphore.executeSync(() => work(n), { permits: n });
              else {
                let held = await semaphore[verb](n);
                while (held === null) held = semaphore.tryAcquire(n);
                work(n);
                held.release();
              }
            }
            return peak;
          },
          OFFSET,
          verb,
          PERMITS,
        ),
      );
      for (const peak of await Promise.all(peaks)) assert.ok(peak <= PERMITS, `${peak} inside`);
      assert.equal(semaphore.available, PERMITS);
      assert.equal(new Int32Array(semaphore.buffer, OFFSET, 1)[0], 0);
    }),
  );
}

test('execute() holds its permits until what fn returns settles, and returns that', async () => {
  const semaphore = create(3);
  let resolve;
  const text = semaphore.execute(
    () =>
      new Promise((done) => {
        resolve = done;
      }),
    { permits: 2 },
  );
  await new Promise(setImmediate);
  assert.equal(semaphore.available, 1);
  resolve('text');
  assert.equal(await text, 'text');
  assert.equal(semaphore.available, 3);
  assert.equal(await semaphore.execute(() => semaphore.available), 2);
});

test('execute() and executeSync() give the permits back if fn throws, and throw that', async () => {
  const semaphore = create(1);
  const thrown = new Error('Thrown on purpose');
  const fail = () => {
    throw thrown;
  };
  await assert.rejects(semaphore.execute(fail), thrown);
  await assert.rejects(
    semaphore.execute(() => Promise.reject(thrown)),
    thrown,
  );
  assert.throws(() => semaphore.executeSync(fail), thrown);
  assert.equal(semaphore.available, 1);
});

test('executeSync() returns what fn returns, and refuses a promise after giving the permits back', () => {
  const semaphore = create(2);
  assert.equal(
    semaphore.executeSync(() => semaphore.available, { permits: 2 }),
    0,
  );
  assert.throws(() => semaphore.executeSync(async () => {}), {
    ...expected.invalidArgType(OFFSET),
    message: /executeSync.*Use execute\(\)/,
  });
  assert.equal(semaphore.available, 2);
});

test('permits are made by the package only', () => {
  assert.throws(() => new SemaphorePermits(), TypeError);
});
