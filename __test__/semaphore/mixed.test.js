// Small and large requests, timeouts, aborts and event loops that are busy, all at one semaphore: never more permits than there are,
// none is lost, and each thread gets all of them at once again and again.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const PERMITS = 4;
const LARGE = 5;
/** The cells from byte 512: what is taken, and how often that was more than there is. */
const [TAKEN, BEYOND] = [0, 1];

async function useMany(here, { offset, permits, large, fair, way, TAKEN, BEYOND }) {
  const semaphore = new here.sablock.Semaphore(here.buffer, offset, permits, { fair });
  const cells = new Int32Array(here.buffer, 512, 2);
  const below = (n) => Math.floor(Math.random() * n);
  const linger = (ms) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
  };
  let hadAll = 0;
  const use = (held) => {
    const { count } = held;
    if (Atomics.add(cells, TAKEN, count) + count > permits) Atomics.add(cells, BEYOND, 1);
    linger(Math.random() * 0.1);
    Atomics.sub(cells, TAKEN, count);
    if (count === permits) hadAll++;
    if (count > 1 && below(2) === 0) held.release(1);
    held.release();
  };
  const fails = (error) => {
    if (error.code !== 'ERR_LOCK_TIMEOUT' && error.name !== 'AbortError') throw error;
  };
  const asks = () => (below(4) === 0 ? permits : 1 + below(2));
  const awaits = async () => {
    const controller = new AbortController();
    if (below(3) === 0) setTimeout(() => controller.abort(), below(3));
    try {
      use(await semaphore.acquireAsync(asks(), { signal: controller.signal }));
    } catch (error) {
      fails(error);
    }
  };
  while (hadAll < large) {
    if (way === 'blocks') {
      try {
        use(below(3) === 0 ? semaphore.acquire(asks(), below(3)) : semaphore.acquire(asks()));
      } catch (error) {
        fails(error);
      }
      continue;
    }
    const tasks = Array.from({ length: 1 + below(4) }, awaits);
    if (way === 'is busy' && below(3) === 0) linger(below(20));
    await Promise.all(tasks);
  }
}

for (const fair of [false, true]) {
  test(
    `small and large requests at once: permits add up, and all are served (${fair ? 'fair' : 'not fair'})`,
    watched(async (_, threads) => {
      const semaphore = new Semaphore(new SharedArrayBuffer(1024), OFFSET, PERMITS, { fair });
      const ways = ['blocks', 'blocks', 'awaits', 'awaits', 'is busy'];
      const actors = await startActors(threads, ways.length, semaphore.buffer);
      const shared = { offset: OFFSET, permits: PERMITS, large: LARGE, fair, TAKEN, BEYOND };
      await Promise.all(ways.map((way, index) => actors[index].do(useMany, { ...shared, way })));
      const cells = new Int32Array(semaphore.buffer, 512, 2);
      assert.deepEqual([cells[TAKEN], cells[BEYOND]], [0, 0]);
      assert.equal(semaphore.available, PERMITS);
      assert.deepEqual(semaphore.inspect().waiters, []);
    }),
  );
}
