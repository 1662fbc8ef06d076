// Threads end while they wait at a barrier, are members of it, or have passed it without their code's knowledge.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Barrier } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { needs } = require('../helpers/runtime.js');
const { runProgram } = require('../helpers/processes.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 40;
const create = (parties) => new Barrier(new SharedArrayBuffer(256), OFFSET, parties, { allowMainThread: true });
const broken = { code: 'ERR_LOCK_BROKEN' };

for (const { name, end, options, needs: needed } of endings) {
  test(
    `a thread that ends by ${name} while its promise waits breaks the barrier for the others`,
    needs(...needed),
    watched(async (_, threads) => {
      const barrier = create(3);
      const [doomed] = await startActors(threads, 1, barrier.buffer, options);
      await doomed.do((here, offset) => {
        // Not to be awaited: the thread has other things to do.
        new here.sablock.Barrier(here.buffer, offset, 3).waitAsync({ ref: false }).catch(() => {});
      }, OFFSET);
      const other = assert.rejects(barrier.waitAsync(), broken);
      await end(doomed);
      await other;
      assert.equal(barrier.broken, true);
    }),
  );

  test(
    `a member whose thread ends by ${name} on its way breaks the barrier, also if nobody waits`,
    needs(...needed),
    watched(async (_, threads) => {
      const barrier = create(2);
      for (const isAwaited of [true, false]) {
        const [doomed] = await startActors(threads, 1, barrier.buffer, options);
        await doomed.do((here, offset) => {
          here.barrier = new here.sablock.Barrier(here.buffer, offset, 2);
          here.member = here.barrier.join();
        }, OFFSET);
        const other = isAwaited ? assert.rejects(barrier.waitAsync(), broken) : undefined;
        await end(doomed);
        await other;
        await threads.until('the barrier is broken', () => barrier.broken);
        await assert.rejects(barrier.waitAsync(), broken);
        barrier.reset();
        assert.deepEqual(barrier.inspect(), { name: null, holders: [], waiters: [] });
      }
    }),
  );
}

test(
  'a blocked worker that is terminated breaks the barrier',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const barrier = create(3);
    const actors = await startActors(threads, 2, barrier.buffer);
    const waits = actors.map((actor) =>
      actor.do((here, offset) => new here.sablock.Barrier(here.buffer, offset, 3).wait(), OFFSET),
    );
    await threads.queued(barrier, 2);
    await actors[0].terminate();
    await assert.rejects(waits[1], broken);
  }),
);

test(
  'a thread that ends and is no member, or has left, breaks nothing',
  watched(async (_, threads) => {
    const barrier = create(2);
    const [doomed] = await startActors(threads, 1, barrier.buffer);
    const passed = doomed.do(async (here, offset) => {
      const barrier = new here.sablock.Barrier(here.buffer, offset, 2);
      const member = barrier.join();
      const index = await barrier.waitAsync();
      return [index, member.leave()];
    }, OFFSET);
    await threads.queued(barrier, 1);
    assert.equal(await barrier.waitAsync(), 0);
    assert.deepEqual(await passed, [1, true]);
    await doomed.terminate();
    assert.equal(barrier.broken, false);
  }),
);

test(
  'a party that ends after all have come, and before its code knows, has passed',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const barrier = create(2);
    const [busy] = await startActors(threads, 1, barrier.buffer);
    busy.do((here, offset) => {
      new here.sablock.Barrier(here.buffer, offset, 2).waitAsync();
      for (;;);
    }, OFFSET);
    await threads.queued(barrier, 1);
    assert.equal(await barrier.waitAsync(), 0);
    await busy.terminate();
    assert.deepEqual([barrier.broken, barrier.waiting], [false, 0]);
  }),
);

test(
  'workers that are ended at random on their way never leave the others waiting',
  needs('termination when busy', 'prompt ends'),
  watched(async (_, threads) => {
    const PARTIES = 3;
    const actors = await startActors(threads, PARTIES);
    for (let generation = 0; generation < 12; generation++) {
      const barrier = create(PARTIES);
      const results = actors.map((actor) =>
        actor.do(
          (here, buffer, offset, parties) => {
            const barrier = new here.sablock.Barrier(buffer, offset, parties);
            const member = barrier.join();
            Atomics.add(new Int32Array(buffer, 0, 1), 0, 1);
            try {
              for (;;) barrier.wait();
            } catch (error) {
              member.leave();
              return error.code;
            }
          },
          barrier.buffer,
          OFFSET,
          PARTIES,
        ),
      );
      const joined = new Int32Array(barrier.buffer, 0, 1);
      await threads.until('all have joined', () => Atomics.load(joined, 0) === PARTIES);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
      const doomed = generation % PARTIES;
      await actors[doomed].terminate();
      const others = results.filter((_, index) => index !== doomed);
      assert.deepEqual(await Promise.all(others), ['ERR_LOCK_BROKEN', 'ERR_LOCK_BROKEN']);
      assert.deepEqual([barrier.broken, barrier.waiting], [true, 0]);
      [actors[doomed]] = await startActors(threads, 1);
    }
  }),
);

for (const [ref, lines] of [
  ['true', ['waiting', 'passed 1', 'exit']],
  ['false', ['waiting', 'exit']],
]) {
  test(`a pending waitAsync() with ref: ${ref} ${ref === 'true' ? 'keeps' : 'does not keep'} the process alive`, async () => {
    const { code, stdout, stderr } = await runProgram('keep-alive-barrier', [ref]);
    assert.deepEqual({ code, stderr, lines: stdout.trim().split('\n') }, { code: 0, stderr: '', lines });
  });
}
