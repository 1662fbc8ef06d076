// Workers are ended at random times while they take permits in every way, hold them, release parts of them and wait for
// them. Afterwards exactly the right number is available, and in the register of those who live.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const PERMITS = 7;
const GENERATIONS = 12;
const WORKERS = 4;
const LONGEST_MS = 25;

/** Takes and releases until it is ended; counts its rounds, and who is inside. */
const storm = async (here, offset, permits, seed) => {
  const semaphore = new here.sablock.Semaphore(here.buffer, offset, permits);
  const rounds = new Int32Array(here.buffer, 0, 1);
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  let kept = [];
  for (;;) {
    const n = 1 + random(3);
    // Never more than two at a time, of two permits each, so that nobody waits for what it has itself.
    if (kept.length === 2 || random(3) === 0) {
      for (const held of kept) {
        held.release(1);
        held.release();
      }
      kept = [];
    }
    switch (random(6)) {
      case 0:
        for (const held of kept.splice(0)) held.release();
        semaphore.acquire(n).release();
        break;
      case 1:
        for (const held of kept.splice(0)) held.release();
        (await semaphore.acquireAsync(n)).release();
        break;
      case 2:
        for (const held of kept.splice(0)) held.release();
        semaphore.executeSync(() => semaphore.available, { permits: n });
        break;
      case 3:
        await semaphore.acquireAsync(n, random(3)).then(
          (held) => held.release(),
          () => {},
        );
        break;
      default: {
        // The fast path, again and again.
        for (let count = 0; count < 2000; count++) semaphore.tryAcquire(1)?.release();
        const held = semaphore.tryAcquire(Math.min(n, 2));
        if (held !== null) kept.push(held);
        for (let spin = random(5_000); spin > 0; spin--) Atomics.load(rounds, 0);
      }
    }
    Atomics.add(rounds, 0, 1);
  }
};

test(
  'workers that are ended at random leave exactly the permits that nobody holds',
  needs('termination when busy', 'prompt ends'),
  watched(async (t, threads) => {
    let ended = 0;
    let heldAtTheEnd = 0;
    let rounds = 0;
    for (let generation = 0; generation < GENERATIONS; generation++) {
      const semaphore = new Semaphore(new SharedArrayBuffer(64), OFFSET, PERMITS, { allowMainThread: true });
      const actors = await startActors(threads, WORKERS, semaphore.buffer);
      const own = semaphore.acquire(1 + (generation % 3));
      for (const [index, actor] of actors.entries()) {
        actor.do(storm, OFFSET, PERMITS, generation * WORKERS + index + 1);
      }
      const started = new Int32Array(semaphore.buffer, 0, 1);
      await threads.until('the storm blows', () => Atomics.load(started, 0) > 0);
      await Promise.all(
        actors.map(async (actor) => {
          await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_MS));
          if (semaphore.inspect().holders.some(({ threadId }) => threadId === actor.threadId)) heldAtTheEnd += 1;
          await actor.terminate();
          ended += 1;
        }),
      );
      assert.equal(semaphore.available, PERMITS - own.count);
      assert.deepEqual(semaphore.inspect(), {
        name: null,
        holders: [{ threadId: 0, mode: 'permits', count: own.count }],
        waiters: [],
      });
      own.release();
      assert.equal(semaphore.acquire(PERMITS, 0).release(), true, 'all can be had at once');
      rounds += new Int32Array(semaphore.buffer, 0, 1)[0];
    }
    t.diagnostic(`${ended} workers ended, ${heldAtTheEnd} seen holding just before, ${rounds} rounds`);
    assert.ok(heldAtTheEnd > 0 && rounds > 0, 'the storm blew');
  }, 90_000),
);
