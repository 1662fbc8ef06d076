'use strict';
// Main asks for something every 3 ms, while workers keep both cores busy: how long each of its waits takes; and what the
// barest wake of main's loop takes under the same load.

const { WorkerGroup } = require('./workers');
const { sleep, threadNs } = require('./clock');

const PAUSE_MS = 3;
/** If main does not get what it asks for at all, the workers stop this long after the end, so that it gets it once. */
const PATIENCE_MS = 5000;

/** Calls `once` every 3 ms for `ms`, or so many `times`; returns how long each call says that it took. */
async function everyThreeMs({ ms, times = Infinity }, once) {
  const samples = [];
  const end = threadNs() + ms * 1e6;
  while (threadNs() < end && samples.length < times) {
    await sleep(PAUSE_MS);
    samples.push(await once());
  }
  return samples;
}

/**
 * The waits of a loop that a `Waiter` of wakeups.js wakes: workers spin through holds without a lock, and the first to end
 * one after main asks wakes main's loop.
 */
async function bareWakes(Waiter, { workers, hold, ms, times }) {
  const waiter = new Waiter();
  const request = new Int32Array(new SharedArrayBuffer(4));
  const group = await WorkerGroup.start(workers, 'busy-loop.js', null, () => ({ request, waker: waiter.words, hold }));
  group.go();
  const samples = await everyThreeMs({ ms, times }, async () => {
    const woken = waiter.next();
    const asked = threadNs();
    Atomics.store(request, 0, 1);
    await woken;
    return threadNs() - asked;
  });
  group.stop();
  await group.results();
  await group.end();
  waiter.close();
  return samples;
}

/**
 * Asks for `lock` every 3 ms beside the workers of `group`, and calls `inside` in each hold. All of them end afterwards. Returns the
 * waits, the rate of the workers meanwhile, and their results.
 */
async function askBeside(group, lock, { ms, times }, inside) {
  const rescue = setTimeout(() => group.stop(), ms + PATIENCE_MS);
  group.go();
  const start = threadNs();
  const samples = await everyThreeMs({ ms, times }, async () => {
    const asked = threadNs();
    await lock.lockAsync();
    const waited = threadNs() - asked;
    inside();
    lock.unlock();
    return waited;
  });
  const rate = (group.total() / (threadNs() - start)) * 1e6;
  clearTimeout(rescue);
  group.stop();
  const results = await group.results();
  await group.end();
  return { samples, rate, results };
}

module.exports = { askBeside, bareWakes };
