// Threads end while they hold permits, wait for them, or have been granted some that their code does not know of.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Semaphore, SemaphorePermits } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');
const { SHORT_STACK } = require('../helpers/stack.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 24;
const PERMITS = 5;
const create = (options) =>
  new Semaphore(new SharedArrayBuffer(1024), OFFSET, PERMITS, { allowMainThread: true, ...options });

for (const { name, end, options, needs: needed } of endings) {
  test(
    `permits that a thread holds when it ends by ${name} go back, and to those who wait`,
    needs(...needed),
    watched(async (_, threads) => {
      const semaphore = create();
      const [doomed] = await startActors(threads, 1, semaphore.buffer, options);
      const count = await doomed.do(
        async (here, offset, permits) => {
          here.semaphore = new here.sablock.Semaphore(here.buffer, offset, permits);
          const partly = here.semaphore.acquire(2);
          partly.release(1);
          const forgotten = here.semaphore.tryAcquire(1);
          forgotten.forget();
          const released = await here.semaphore.acquireAsync(1);
          released.release();
          here.kept = [partly, here.semaphore.tryAcquire(1), await here.semaphore.acquireAsync(1)];
          // By the core, not by a fast path.
          here.kept.push(await here.semaphore.acquireAsync(1, {}));
          return here.semaphore.available;
        },
        OFFSET,
        PERMITS,
      );
      assert.equal(count, 0);
      assert.deepEqual(semaphore.inspect().holders, [{ threadId: doomed.threadId, mode: 'permits', count: 4 }]);
      const pending = semaphore.acquireAsync(3);
      await end(doomed);
      assert.equal((await pending).count, 3);
      assert.equal(semaphore.available, 1, 'all but the forgotten one');
      assert.deepEqual(semaphore.inspect().holders, [{ threadId: 0, mode: 'permits', count: 3 }]);
    }),
  );
}

test(
  'a thread that ends while it waits, blocked or by a promise, leaves the queue to those behind it',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const semaphore = create();
    const held = semaphore.acquire(1);
    const [blocked, awaits] = await startActors(threads, 2, semaphore.buffer);
    blocked.do(
      (here, offset, permits) => new here.sablock.Semaphore(here.buffer, offset, permits).acquire(5),
      OFFSET,
      5,
    );
    await threads.queued(semaphore, 1);
    awaits.do((here, offset) => new here.sablock.Semaphore(here.buffer, offset, 5).acquireAsync(5), OFFSET);
    await threads.queued(semaphore, 2);
    const pending = semaphore.acquireAsync(4);
    await Promise.all([blocked.terminate(), awaits.terminate()]);
    assert.equal((await pending).count, 4);
    assert.equal(held.release(), true);
  }),
);

test(
  'permits of a fair semaphore that were granted to a thread that ends before its code learns of them pass on',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const semaphore = create({ fair: true });
    const held = semaphore.acquire(5);
    const [busy] = await startActors(threads, 1, semaphore.buffer);
    const BUSY = 0;
    busy.do(
      (here, offset, flag) => {
        new here.sablock.Semaphore(here.buffer, offset, 5, { fair: true })
          .acquireAsync(4)
          .then(() => process._rawDebug('never'));
        here.raise(flag);
        for (;;);
      },
      OFFSET,
      BUSY,
    );
    await threads.raised(BUSY);
    const pending = semaphore.acquireAsync(3);
    held.release();
    assert.equal(semaphore.available, 1, 'granted to the busy thread');
    assert.equal(semaphore.inspect().waiters.length, 1);
    await busy.terminate();
    assert.equal((await pending).count, 3);
    assert.equal(semaphore.available, 2);
  }),
);

test(
  'permits inside execute() and executeSync() go back when their thread is terminated there',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const semaphore = create();
    const actors = await startActors(threads, 2, semaphore.buffer);
    for (const [index, actor] of actors.entries()) {
      actor.do(
        (here, offset, index) => {
          const semaphore = new here.sablock.Semaphore(here.buffer, offset, 5);
          const stay = () => {
            here.raise(index);
            for (;;);
          };
          if (index === 0) return semaphore.execute(stay, { permits: 2 });
          return semaphore.executeSync(stay, { permits: 3 });
        },
        OFFSET,
        index,
      );
      await threads.raised(index);
    }
    assert.equal(semaphore.available, 0);
    await Promise.all(actors.map((actor) => actor.terminate()));
    assert.equal(semaphore.available, 5);
  }),
);

for (const verb of [
  'tryAcquire',
  'tryAcquire with a waiter',
  'acquire',
  'acquireAsync',
  'acquireAsync with options',
  'executeSync',
  'executeSync for which somebody waits',
  'execute',
]) {
  test(`${verb} holds nothing when the stack ends inside it`, async (t) => {
    const { code, signal, stdout, stderr } = await runProgram('permits-stack-ends', [verb], { nodeArgs: SHORT_STACK });
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr.slice(-2000));
    const { called, failed, leaked } = JSON.parse(stdout);
    assert.ok(failed > 0 && failed < called, `${failed} of ${called} failed`);
    assert.equal(leaked, 0);
    t.diagnostic(`${failed} of ${called} calls failed`);
  });
}

test('executeSync() gives its permits back though no function of JS can begin any more, as at the end of the stack', (t) => {
  const semaphore = create();
  t.mock.method(SemaphorePermits.prototype, 'release', () => {
    throw new RangeError('Maximum call stack size exceeded');
  });
  assert.equal(
    semaphore.executeSync(() => semaphore.available, { permits: 3 }),
    2,
  );
  assert.deepEqual([semaphore.available, semaphore.inspect().holders], [PERMITS, []]);
});
