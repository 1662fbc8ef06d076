// Threads end while they wait at an exchanger, or once they have met somebody there.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Exchanger } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const OFFSET = 40;
const create = () => new Exchanger(new SharedArrayBuffer(256), OFFSET, { allowMainThread: true });

for (const { name, end, options, needs: needed } of endings) {
  test(
    `a thread that ends by ${name} while its promise waits leaves with its value`,
    needs(...needed),
    watched(async (_, threads) => {
      const exchanger = create();
      const [doomed] = await startActors(threads, 1, exchanger.buffer, options);
      await doomed.do((here, offset) => {
        // Not to be awaited: the thread has other things to do.
        new here.sablock.Exchanger(here.buffer, offset).exchangeAsync(666, { ref: false }).catch(() => {});
      }, OFFSET);
      assert.equal(exchanger.inspect().waiters.length, 1);
      await end(doomed);
      await threads.until('it has left', () => exchanger.inspect().waiters.length === 0);
      const mine = exchanger.exchangeAsync(1);
      assert.equal(await exchanger.exchangeAsync(2), 1);
      assert.equal(await mine, 2);
    }),
  );
}

for (const isTerminated of [true, false]) {
  test(
    `whoever met a thread that ${isTerminated ? 'is terminated' : 'exits'} before its code knows has its value, and nobody else gets any`,
    needs('termination when busy'),
    watched(async (_, threads) => {
      const exchanger = create();
      const [doomed] = await startActors(threads, 1, exchanger.buffer);
      doomed.do(
        (here, offset, exits) => {
          new here.sablock.Exchanger(here.buffer, offset).exchangeAsync(5).catch(() => {});
          // Its loop does not turn any more.
          while (Atomics.load(new Int32Array(here.buffer), 0) === 0);
          if (exits) process.exit();
        },
        OFFSET,
        !isTerminated,
      );
      await threads.queued(exchanger, 1);
      assert.equal(exchanger.exchange(6, 0), 5);
      if (isTerminated) await doomed.terminate();
      else Atomics.store(new Int32Array(exchanger.buffer), 0, 1);
      await doomed.exited;
      assert.deepEqual(exchanger.inspect().waiters, []);
      assert.throws(() => exchanger.exchange(7, 0), { code: 'ERR_LOCK_TIMEOUT' });
    }),
  );
}

test(
  'a blocked worker that is terminated leaves with its value',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const exchanger = create();
    const [doomed] = await startActors(threads, 1, exchanger.buffer);
    doomed.do((here, offset) => new here.sablock.Exchanger(here.buffer, offset).exchange(666), OFFSET);
    await threads.queued(exchanger, 1);
    await doomed.terminate();
    assert.deepEqual(exchanger.inspect().waiters, []);
    const mine = exchanger.exchangeAsync(1);
    assert.equal(exchanger.exchange(2), 1);
    assert.equal(await mine, 2);
  }),
);

test(
  'workers that are terminated at any moment take no value from those that stay, and give none twice',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const exchanger = create();
    const log = new Int32Array(exchanger.buffer, 64, 1);
    const trade = (actor, number) =>
      actor.do(
        async (here, offset, worker) => {
          const exchanger = new here.sablock.Exchanger(here.buffer, offset);
          const stop = new Int32Array(here.buffer, 64, 1);
          const met = [];
          for (let round = 0; Atomics.load(stop, 0) === 0; round++) {
            const mine = worker * 1_000_000 + round;
            try {
              const isAsync = round % 2 === 0;
              const theirs = isAsync ? await exchanger.exchangeAsync(mine, 20) : exchanger.exchange(mine, 20);
              met.push([mine, theirs]);
            } catch (error) {
              if (error.code !== 'ERR_LOCK_TIMEOUT') throw error;
            }
          }
          return met;
        },
        OFFSET,
        number,
      );
    const staying = await startActors(threads, 2, exchanger.buffer);
    const results = staying.map(trade);
    for (let number = 2; number < 8; number++) {
      const [doomed] = await startActors(threads, 1, exchanger.buffer);
      trade(doomed, number);
      await new Promise((resolve) => setTimeout(resolve, 5 * number));
      await doomed.terminate();
    }
    Atomics.store(log, 0, 1);
    const met = (await Promise.all(results)).flat();
    const pairs = new Map(met);
    assert.equal(new Set(met.map(([, theirs]) => theirs)).size, met.length, 'no value twice');
    for (const [mine, theirs] of met) {
      const isOfOneThatStays = theirs < 2_000_000;
      if (isOfOneThatStays) assert.equal(pairs.get(theirs), mine, `${mine} got ${theirs}`);
    }
    assert.deepEqual(exchanger.inspect().waiters, []);
  }),
);
