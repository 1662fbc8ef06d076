'use strict';
// A convoy: does a waiter that cannot come hold the others up? Two workers take the lock for 2 µs at a time; main asks
// for it and then keeps its loop busy, so that it could not take it. Windows with main waiting alternate with windows
// in which main is just as busy and does not wait; the workers' rate in the one is shown in percent of the other.
// The limit is 100 %.

const { WorkerGroup, miscount } = require('../lib/workers');
const { busyFor, sleep, threadNs } = require('../lib/clock');
const { has } = require('../lib/contenders');
const { sum } = require('../lib/stats');

const WORKERS = 2;
const HOLD_µS = 2;

/** Two ways to be busy: computing (takes one core from the workers), or stuck in a call that sleeps (takes none). */
const BUSY = {
  computing: (ms) => busyFor(ms * 1000),
  stuck: (ms) => {
    const never = new Int32Array(new SharedArrayBuffer(4));
    return () => Atomics.wait(never, 0, 0, ms);
  },
};

async function run(contender, { busy, windowMs, windows }) {
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  if (!has(lock, 'lockAsync', 'unlock')) return null;
  const data = new Int32Array(new SharedArrayBuffer(64));
  const group = await WorkerGroup.start(WORKERS, 'hold-loop.js', contender.name, () => ({
    memory,
    data,
    hold: HOLD_µS,
  }));
  const beBusy = BUSY[busy](windowMs);

  /** The workers' holds for each ms while main is busy. */
  function window() {
    const before = group.total();
    const start = threadNs();
    beBusy();
    return ((group.total() - before) / (threadNs() - start)) * 1e6;
  }

  group.go();
  await sleep(20);
  const idle = [];
  const waiting = [];
  let mains = 0;
  for (let i = 0; i < windows; i++) {
    idle.push(window());
    await sleep(1);
    const got = lock.lockAsync();
    waiting.push(window());
    await got;
    data[0]++;
    mains++;
    lock.unlock();
    await sleep(1);
  }
  group.stop();
  const results = await group.results();
  await group.end();
  const holds = sum(results.map((result) => result.holds)) + mains;
  const wrong = miscount(holds, data);
  if (wrong) return { wrong };
  return { percent: (100 * sum(waiting)) / sum(idle), without: sum(idle) / windows, waiting: sum(waiting) / windows };
}

module.exports = {
  name: 'convoy',
  title: "Convoy: the workers' rate while a busy loop waits",
  threads: true,
  metrics: [
    { key: 'percent', label: '% of the rate without', better: 'higher', chart: 'linear' },
    { key: 'waiting', label: 'holds/ms, main waits', better: 'higher', ratio: true },
    { key: 'without', label: 'holds/ms, main does not', better: 'higher' },
  ],
  cases: ({ short }) =>
    Object.keys(BUSY).map((busy) => ({
      name: `main is ${busy}`,
      params: { busy, windowMs: short ? 20 : 50, windows: short ? 4 : 10 },
      goals: [{ metric: 'percent', atLeast: 90 }],
    })),
  run,
};
