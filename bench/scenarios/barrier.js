'use strict';
// Workers that do nothing but meet at a barrier: how long does a round take? The limit is two threads that sleep and wake each
// other in turn, there and back: two handovers.

const { WorkerGroup } = require('../lib/workers');
const { waitingFunctions } = require('../lib/wakeups');
const { max, sum } = require('../lib/stats');

/** `data`: what each worker gets of a barrier or of handovers. */
async function rounds(contender, { parties, isPinned, count }, data) {
  const arrivals = new Int32Array(new SharedArrayBuffer(64 * parties));
  const group = await WorkerGroup.start(parties, 'barrier-loop.js', contender, (index) => ({
    ...data,
    ...{ arrivals, parties, rounds: count, index, core: isPinned ? index : undefined },
  }));
  group.go();
  const results = await group.results();
  await group.end();
  const early = sum(results.map((result) => result.early));
  const lasts = sum(results.map((result) => result.lasts));
  if (early) return { wrong: `${early} times a party was let through before all had come` };
  if (lasts !== count) return { wrong: `of ${count} rounds, ${lasts} had a last party` };
  const ns = max(results.map((result) => result.end)) - Math.min(...results.map((result) => result.start));
  return { round: ns / count / 1000 };
}

const run = (contender, params) => rounds(contender.name, params, { memory: contender.barrier.share(params.parties) });

function handovers(functions, params) {
  if (params.parties !== 2) return null;
  waitingFunctions(functions); // If there is none, this is the place to say so, not a worker.
  return rounds(null, params, { functions, word: new Int32Array(new SharedArrayBuffer(4)) });
}

module.exports = {
  name: 'barrier',
  title: 'Barrier: workers that meet again and again',
  kind: 'barrier',
  threads: true,
  /** Some of its limits are of bench/native. */
  native: true,
  rounds: 9,
  limitIs: 'for one round of two threads',
  metrics: [{ key: 'round', label: 'µs a round', better: 'lower', ratio: true }],
  cases({ short }) {
    const count = short ? 200 : 20_000;
    const goals = [{ metric: 'round', versus: 'multithreading', atMost: 1 }];
    const beside = [{ metric: 'round', versus: 'limit', atMost: 1.2 }, ...goals];
    return [
      { name: '2 workers, each on its core', params: { parties: 2, isPinned: true, count }, goals: beside },
      { name: '2 workers', params: { parties: 2, isPinned: false, count }, goals: beside },
      { name: '4 workers', params: { parties: 4, isPinned: false, count }, goals },
    ];
  },
  run,
  limits: [
    { name: 'two bare futex handovers', run: (params) => handovers('futex', params) },
    { name: 'two Atomics.wait handovers', run: (params) => handovers('Atomics', params) },
  ],
};
