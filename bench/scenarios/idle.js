'use strict';
// The processor's time that waiting takes, of the whole process, in percent of one core: of workers blocked in lock(),
// and of an event loop with pending lockAsync. The limits: workers in a bare Atomics.wait, and a loop that awaits nothing.

const { WorkerGroup } = require('../lib/workers');
const { sleep, threadNs } = require('../lib/clock');
const { has } = require('../lib/contenders');

const SETTLE_MS = 100;

/** The percentage of a core that this process uses in the next `ms`, while main sleeps. */
async function usage(ms) {
  await sleep(SETTLE_MS);
  const before = process.cpuUsage();
  const start = threadNs();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) / ((threadNs() - start) / 1e3)) * 100;
}

async function withWorkers(contender, { workers, ms }, shared, release) {
  const group = await WorkerGroup.start(workers, 'blocked.js', contender, () => shared);
  group.go();
  while (group.total() < workers) await sleep(1);
  const percent = await usage(ms);
  release();
  await group.results();
  await group.end();
  return { percent };
}

async function blocked(contender, params) {
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  if (!has(lock, 'lock', 'lockAsync', 'unlock')) return null;
  const data = new Int32Array(new SharedArrayBuffer(4));
  await lock.lockAsync();
  let early;
  const result = await withWorkers(contender.name, params, { memory, data }, () => {
    early = data[0];
    lock.unlock();
  });
  if (early) return { wrong: `${early} workers were not blocked while the lock was held` };
  return data[0] === params.workers ? result : { wrong: `${params.workers} holds counted ${data[0]}` };
}

async function pending(contender, { waits, ms }) {
  const lock = contender.open(contender.share(1), 0);
  if (!has(lock, 'lockAsync', 'unlock')) return null;
  await lock.lockAsync();
  let got = 0;
  const all = Array.from({ length: waits }, () =>
    lock.lockAsync().then(() => {
      got++;
      lock.unlock();
    }),
  );
  const percent = await usage(ms);
  if (got) return { wrong: `${got} waits ended while the lock was held` };
  lock.unlock();
  await Promise.all(all);
  return { percent };
}

function bare(params) {
  if (!params.workers) return usage(params.ms).then((percent) => ({ percent }));
  const word = new Int32Array(new SharedArrayBuffer(4));
  return withWorkers(null, params, { word }, () => {
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
  });
}

module.exports = {
  name: 'idle',
  title: 'Processor used while waiting',
  rounds: 3,
  metrics: [{ key: 'percent', label: '% of a core', better: 'lower', ratio: true, minus: true, digits: 2 }],
  cases({ short }) {
    const ms = short ? 100 : 2000;
    const blockedWorkers = (workers) => ({
      name: `${workers} blocked ${workers === 1 ? 'worker' : 'workers'}`,
      params: { workers, ms },
      goals: [{ metric: 'percent', versus: 'beside', atMost: 0.3 * workers }],
    });
    const pendingWaits = (waits) => ({
      name: `${waits} pending`,
      params: { waits, ms },
      goals: [{ metric: 'percent', versus: 'beside', atMost: 0.05 }],
    });
    return short
      ? [blockedWorkers(1), pendingWaits(1)]
      : [blockedWorkers(1), blockedWorkers(16), pendingWaits(1), pendingWaits(1000)];
  },
  run: (contender, params) =>
    params.workers ? (contender.oneThread ? null : blocked(contender, params)) : pending(contender, params),
  limits: [{ name: 'bare', run: bare }],
};
