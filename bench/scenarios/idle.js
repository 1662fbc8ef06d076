'use strict';
// The processor's time that waiting takes, of the whole process, in percent of one core: of workers blocked in lock(),
// of an event loop with pending lockAsync, and of a worker behind a long queue in strict order, each look of which must cost the
// same. The limits: workers in a bare Atomics.wait, and a loop that awaits nothing.

const { once } = require('node:events');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
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

/** A worker that is blocked behind so many requests of main for a name, which are served in order; and how long its end takes. */
async function behind(contender, { requests, ms }) {
  if (contender.name !== 'sablock') return null;
  const { locks } = require(contender.root);
  const held = await locks.acquireAsync('behind');
  const all = Array.from({ length: requests }, () => locks.request('behind', () => {}));
  const worker = new Worker(path.join(__dirname, '..', 'programs', 'behind-name.js'), {
    workerData: { root: contender.root },
  });
  await once(worker, 'message');
  const percent = await usage(ms);
  const start = threadNs();
  await worker.terminate();
  const ended = (threadNs() - start) / 1e6;
  held.unlock();
  await Promise.all(all);
  return { percent, ended };
}

function bare(params) {
  if (params.requests) return null;
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
  metrics: [
    { key: 'percent', label: '% of a core', better: 'lower', ratio: true, minus: true, digits: 2 },
    {
      key: 'ended',
      label: 'ms to end',
      better: 'lower',
      digits: 1,
      note: 'ms to end: until terminate() of the blocked worker is done',
    },
  ],
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
    const behindRequests = (requests) => ({
      name: `1 blocked worker behind ${requests.toLocaleString('en')} requests for a name`,
      params: { requests, ms },
      goals: [
        { metric: 'percent', atMost: 1 },
        { metric: 'ended', atMost: 100 },
      ],
    });
    return short
      ? [blockedWorkers(1), pendingWaits(1), behindRequests(100)]
      : [...[1, 16].map(blockedWorkers), ...[1, 1000].map(pendingWaits), ...[1, 1000, 100_000].map(behindRequests)];
  },
  run: (contender, params) => {
    if (params.requests) return behind(contender, params);
    if (!params.workers) return pending(contender, params);
    return contender.oneThread ? null : blocked(contender, params);
  },
  limits: [{ name: 'bare', run: bare }],
};
