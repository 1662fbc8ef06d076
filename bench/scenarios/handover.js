'use strict';
// Handover latency: from just before unlock() in one thread to the lock in another that is asleep by then: a blocked
// worker, or an idle event loop that awaits. The limits are the barest wakes of the same kinds; see lib/relay.js.

const { AtomicsWaiter, ThreadsafeFunctionWaiter } = require('../lib/wakeups');
const { has } = require('../lib/contenders');
const { WAYS, futexWakes, loopWakes, newWord, notifications, relay } = require('../lib/relay');

/** One pending wait, so that whatever threads the contender starts for it exist before this thread is pinned. */
async function startHelpers(lock) {
  if (!has(lock, 'lockAsync', 'unlock')) return;
  await lock.lockAsync();
  const pending = lock.lockAsync();
  lock.unlock();
  await pending;
  lock.unlock();
}

async function run(contender, { way, count }) {
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  if (!has(lock, 'lock', 'unlock') || (way !== 'worker to worker' && !has(lock, 'lockAsync'))) return null;
  await startHelpers(lock);
  const data = newWord();
  const pass = { kind: 'lock', contender: contender.name, memory, data };
  const result = await relay({ way, count }, pass, { contender: contender.name });
  if (data[0] !== 2 * count) return { wrong: `${2 * count} holds counted ${data[0]}` };
  return result;
}

/** A loop's wait for Atomics is measured with a signal of its own: see AtomicsWaiter. */
const atomicsWakes = (params) =>
  params.way === 'worker to loop' ? loopWakes(AtomicsWaiter, params) : notifications('Atomics', params);

module.exports = {
  name: 'handover',
  title: 'Handover latency, to a sleeper',
  threads: true,
  /** Some of its limits are of bench/native. */
  native: true,
  rounds: 5,
  metrics: [
    { key: 'p50', label: 'median µs', better: 'lower', ratio: true, percentile: 50, nanos: 1000 },
    { key: 'p90', label: 'p90 µs', better: 'lower', percentile: 90, nanos: 1000 },
    { key: 'p99', label: 'p99 µs', better: 'lower', percentile: 99, nanos: 1000 },
    { key: 'worst', label: 'worst µs', better: 'lower', percentile: 100, nanos: 1000, chart: 'log' },
  ],
  cases: ({ short }) =>
    Object.keys(WAYS).map((way) => ({
      name: way,
      params: { way, count: short ? 100 : 1000 },
      goals: way === 'loop to worker' ? undefined : [{ metric: 'p50', versus: 'plain', atMost: 1 }],
    })),
  run,
  limits: [
    { name: 'bare futex', run: futexWakes },
    { name: 'bare threadsafe function', run: (params) => loopWakes(ThreadsafeFunctionWaiter, params) },
    { name: 'bare Atomics.wait, waitAsync', run: atomicsWakes },
  ],
};
