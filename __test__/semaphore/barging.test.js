// A newcomer may take what is free, but for what is gathered for one that has waited for long; nobody starves.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { startRunning } = require('../helpers/running.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const PERMITS = 3;
const STOP = 0;
const BUSY = 1;
const create = () => new Semaphore(new SharedArrayBuffer(1024), OFFSET, PERMITS, { allowMainThread: true });

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The flag that each stream of single permits raises once it has had one. */
const streams = (index) => 2 + index;

/** Takes one permit after the other, so that nearly always all are taken, until it is told to stop; says how many it had. */
function takeSingles(here, offset, stop, holdMs, begun) {
  const semaphore = new here.sablock.Semaphore(here.buffer, offset, 3);
  let holds = 0;
  while (!here.isRaised(stop)) {
    const permits = semaphore.acquire();
    const until = performance.now() + holdMs;
    while (performance.now() < until);
    permits.release();
    holds++;
    here.raise(begun);
  }
  return holds;
}

test('tryAcquire() takes what is free though somebody waits for more', async () => {
  const semaphore = create();
  const held = semaphore.acquire(2);
  const large = semaphore.acquireAsync(2);
  const taken = semaphore.tryAcquire();
  assert.equal(taken?.count, 1);
  taken.release();
  held.release();
  (await large).release();
  assert.equal(semaphore.available, PERMITS);
});

test('a request for more permits than there are is served once others are added', async () => {
  const semaphore = create();
  const large = semaphore.acquireAsync(PERMITS + 2);
  semaphore.release(2);
  assert.equal((await large).count, PERMITS + 2);
});

for (const holdMs of [0.001, 3, 40]) {
  test(
    `acquire() and acquireAsync() of all permits are served beside a stream of single ones, each held for ${holdMs} ms`,
    watched(async (_, threads) => {
      const semaphore = create();
      const actors = await startActors(threads, 5, semaphore.buffer);
      const { cell } = await startRunning(threads);
      const [large, ...others] = actors;
      const singles = others.map((actor, index) => actor.do(takeSingles, OFFSET, STOP, holdMs, streams(index)));
      // On a busy machine the large requests may be over before one of these has begun.
      for (const index of others.keys()) await threads.raised(streams(index));
      for (const verb of ['acquire', 'acquireAsync']) {
        await threads.until('all are taken', () => semaphore.available === 0 || semaphore.inspect().waiters.length > 0);
        const waits = await large.do(
          async (here, offset, verb, cell) => {
            const ran = () => Atomics.load(cell, 0);
            const semaphore = new here.sablock.Semaphore(here.buffer, offset, 3);
            const waits = [];
            for (let turn = 0; turn < 5; turn++) {
              const startedAt = ran();
              const permits = verb === 'acquire' ? semaphore.acquire(3) : await semaphore.acquireAsync(3);
              waits.push(ran() - startedAt);
              permits.release();
            }
            return waits;
          },
          OFFSET,
          verb,
          cell,
        );
        const longest = Math.max(...waits);
        assert.ok(longest < 3000, `${verb}() waited for ${longest} ms`);
      }
      threads.raise(STOP);
      for (const holds of await Promise.all(singles)) assert.ok(holds > 0);
      assert.equal(semaphore.available, PERMITS);
    }),
  );
}

test(
  'acquireAsync() of all permits by a loop that is busy afterwards delays nobody',
  watched(async (_, threads) => {
    const semaphore = create();
    const [busy, other] = await startActors(threads, 2, semaphore.buffer);
    const held = semaphore.acquire(2);
    const stalled = busy.do(
      async (here, offset, isBusy, stop) => {
        const semaphore = new here.sablock.Semaphore(here.buffer, offset, 3);
        const pending = semaphore.acquireAsync(3);
        here.raise(isBusy);
        while (!here.isRaised(stop));
        (await pending).release();
      },
      OFFSET,
      BUSY,
      STOP,
    );
    await threads.raised(BUSY);
    // It ages.
    await sleep(20);
    const hadOne = other.do((here, offset) => {
      const semaphore = new here.sablock.Semaphore(here.buffer, offset, 3);
      for (let turn = 0; turn < 100; turn++) semaphore.acquire().release();
      return semaphore.available;
    }, OFFSET);
    assert.equal(await hadOne, 1, 'and the loop has not come');
    held.release(1);
    assert.equal(semaphore.tryAcquire(2)?.release(), true, 'released ones too');
    held.release();
    threads.raise(STOP);
    await stalled;
    assert.equal(semaphore.available, PERMITS);
  }),
);

test(
  'while a thread that has aged gathers permits, nobody passes it',
  watched(async (_, threads) => {
    const semaphore = create();
    const [large] = await startActors(threads, 1, semaphore.buffer);
    const held = semaphore.acquire(1);
    const got = large.do((here, offset) => {
      new here.sablock.Semaphore(here.buffer, offset, 3).acquire(3).release();
    }, OFFSET);
    await threads.queued(semaphore, 1);
    await threads.until('it has aged', () => semaphore.inspect().waiters[0].waitedMs > 2);
    // Between two slices of its sleep nobody counts on it, for a moment.
    const passed = Array.from({ length: 50 }, () => semaphore.tryAcquire()).filter((permits) => permits !== null);
    assert.ok(passed.length <= 1, `${passed.length} of 50 got in`);
    for (const permits of passed) permits.release();
    held.release();
    await got;
    assert.equal(semaphore.available, PERMITS);
  }),
);
