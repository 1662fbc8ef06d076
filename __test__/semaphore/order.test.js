// A fair semaphore is strictly first come, first served.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const create = (permits) =>
  new Semaphore(new SharedArrayBuffer(1024), OFFSET, permits, { allowMainThread: true, fair: true });

test('a semaphore says whether it is fair; what is no boolean, or nearly the name, is refused', () => {
  const buffer = new SharedArrayBuffer(64);
  assert.deepEqual(
    [undefined, {}, { fair: false }, { fair: true }].map((options) => new Semaphore(buffer, 0, 1, options).fair),
    [false, false, false, true],
  );
  const codes = { code: 'ERR_INVALID_ARG_TYPE' };
  for (const fair of [1, 'true', null]) assert.throws(() => new Semaphore(buffer, 0, 1, { fair }), codes);
  assert.throws(() => new Semaphore(buffer, 0, 1, { fairness: true }), { ...codes, message: /Did you mean 'fair'/ });
  assert.throws(() => new Semaphore(buffer, 0, 1, { allowMainThread: true }).executeSync(() => {}, { permit: 2 }), {
    ...codes,
    message: /Did you mean 'permits'/,
  });
});

test('a large request at the head is never overtaken by small ones', async () => {
  const semaphore = create(3);
  const held = semaphore.acquire(2);
  const order = [];
  const large = semaphore.acquireAsync(3).then((permits) => {
    order.push('large');
    permits.release();
  });
  const small = semaphore.acquireAsync(1).then((permits) => {
    order.push('small');
    permits.release();
  });
  assert.equal(semaphore.available, 1);
  await new Promise(setImmediate);
  assert.deepEqual(order, []);
  held.release();
  await Promise.all([large, small]);
  assert.deepEqual(order, ['large', 'small']);
});

test('tryAcquire() and acquire() with timeout 0 take nothing while somebody waits, though there is enough', async () => {
  const semaphore = create(2);
  const held = semaphore.acquire();
  const controller = new AbortController();
  const pending = semaphore.acquireAsync(2, { signal: controller.signal });
  assert.equal(semaphore.available, 1);
  assert.equal(semaphore.tryAcquire(), null);
  assert.throws(() => semaphore.acquire(1, 0), { code: 'ERR_LOCK_TIMEOUT' });
  controller.abort();
  await assert.rejects(pending);
  assert.notEqual(semaphore.tryAcquire(), null);
  held.release();
});

test('small ones behind a large request get in when it gives up', async () => {
  const semaphore = create(2);
  const held = semaphore.acquire();
  const large = semaphore.acquireAsync(2, { timeout: 20 });
  const small = semaphore.acquireAsync(1);
  await assert.rejects(large, { code: 'ERR_LOCK_TIMEOUT' });
  assert.equal((await small).count, 1);
  held.release();
});

test(
  'threads and promises get permits in the order in which they came',
  watched(async (_, threads) => {
    const semaphore = create(1);
    const held = semaphore.acquire();
    const log = new Int32Array(semaphore.buffer, 512, 16);
    const actors = await startActors(threads, 6, semaphore.buffer);
    const ends = [];
    for (const [index, actor] of actors.entries()) {
      ends.push(
        actor.do(
          async (here, offset, number) => {
            const semaphore = new here.sablock.Semaphore(here.buffer, offset, 1, { fair: true });
            const permits = number % 2 === 0 ? semaphore.acquire() : await semaphore.acquireAsync();
            const log = new Int32Array(here.buffer, 512, 16);
            log[Atomics.add(log, 0, 1) + 1] = number;
            permits.release();
          },
          OFFSET,
          index + 1,
        ),
      );
      await threads.queued(semaphore, index + 1);
    }
    held.release();
    await Promise.all(ends);
    assert.deepEqual(Array.from(log.subarray(0, 7)), [6, 1, 2, 3, 4, 5, 6]);
  }),
);

test(
  'a grant to a busy event loop is final: those behind it wait until it comes',
  watched(async (_, threads) => {
    const semaphore = create(1);
    const held = semaphore.acquire();
    const [busy, next] = await startActors(threads, 2, semaphore.buffer);
    const BUSY = 0;
    const FREE = 1;
    const first = busy.do(
      async (here, offset, isBusy, isFree) => {
        const semaphore = new here.sablock.Semaphore(here.buffer, offset, 1, { fair: true });
        const pending = semaphore.acquireAsync();
        here.raise(isBusy);
        while (!here.isRaised(isFree));
        (await pending).release();
      },
      OFFSET,
      BUSY,
      FREE,
    );
    await threads.raised(BUSY);
    const second = next.do((here, offset) => {
      new here.sablock.Semaphore(here.buffer, offset, 1, { fair: true }).acquire().release();
    }, OFFSET);
    await threads.queued(semaphore, 2);
    held.release();
    assert.equal(semaphore.available, 0);
    assert.equal(semaphore.inspect().waiters.length, 1);
    threads.raise(FREE);
    await Promise.all([first, second]);
    assert.equal(semaphore.available, 1);
  }),
);
