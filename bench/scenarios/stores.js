'use strict';
// Locks among machines, on real servers which the run starts itself: what one costs that nobody else wants; from the unlock in one
// process to the lock in another; the first lock of a process. Beside them the same client's bare round trips, and other locks of
// the same server.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { threadNs } = require('../lib/clock');
const { handover, killed } = require('../lib/peers');
const { median } = require('../lib/stats');
const { OTHERS, connect, managerOf, open } = require('../lib/store-locks');
const { startServers } = require('../lib/store-servers');

const BARE = 'bare round trips';
/** The least lease of an etcd. */
const LEASE_MS = 2000;
/** The time after which a new process that asked waits in the server. */
const QUEUED_MS = 1500;
/** The time that the next one may take beyond the lease, in microseconds. */
const AFTER_KILL = { postgres: 50_000, redis: 51_000, etcd: 1_000_000 };
/** The connections that this process has open, by face and URL: each round uses it again. */
const opened = new Map();

/** Made once. */
function keep(key, make) {
  if (!opened.has(key)) opened.set(key, make());
  return opened.get(key);
}

/** `act` once, in microseconds. */
async function time(act) {
  const start = threadNs();
  await act();
  return (threadNs() - start) / 1000;
}

const tripOf = (store, root) => keep(`bare ${store.url}`, () => connect(store, root));

/** Returns how one hold is taken, as each is used: this package's by a callback. */
function holdOf({ face, store, root }) {
  if (face === 'sablock') {
    const locks = keep(`sablock ${store.url}`, () => managerOf(store, root));
    return () => locks.request('alone', () => 1);
  }
  const take = keep(`${face} ${store.url}`, () => open(face, { ...store, name: face }, root));
  return async () => {
    const lock = await take();
    await lock.unlock();
  };
}

/** Pairs, and pairs of round trips in turn with them: what else the machine does touches both. */
async function uncontended({ face, store, root }, { count }) {
  const { trip } = await tripOf(store, root);
  const twice = async () => {
    await trip();
    await trip();
  };
  const hold = face === BARE ? twice : holdOf({ face, store, root });
  for (let i = 0; i < 10; i++) {
    await hold();
    await twice();
  }
  const samples = [];
  const bare = [];
  for (let i = 0; i < count; i++) {
    samples.push((await time(hold)) * 1000);
    bare.push(await time(twice));
  }
  return { samples, over: median(samples) / 1000 - 1.2 * median(bare) };
}

async function handedOver({ face, store, root }, { count }) {
  const { trip } = await tripOf(store, root);
  const bare = [];
  for (let i = 0; i < 200; i++) bare.push((await time(trip)) * 1000);
  if (face === BARE) return { samples: bare.map((ns) => 3 * ns) };
  // Remains of killed processes of a round before are of another name.
  const own = { ...store, name: `${process.pid} ${threadNs()}` };
  const result = await handover({ face, root, store: own }, { count });
  if (result.wrong) return result;
  return { ...result, over: (median(result.samples) - 3 * median(bare)) / 1000 };
}

/** The holder is killed while another waits in the server: it has it, or what is left of its lease. */
async function afterKill({ face, store, root }, { kills }) {
  const { lease = 0 } = store.options;
  const own = { ...store, name: `${process.pid} ${threadNs()}` };
  const result = await killed({ face, root, store: own }, { kills, settle: QUEUED_MS });
  return result.wrong ? result : { ...result, over: (Math.max(...result.samples) / 1e6 - lease) * 1000 };
}

/** From hold to hold of one name, while so many of this process wait for it. */
async function crowd({ store, root }, { waiters }) {
  const locks = keep(`sablock ${store.url}`, () => managerOf(store, root));
  const samples = [];
  let last;
  const all = [];
  await locks.request('hot', async () => {
    const hold = () => {
      const now = threadNs();
      samples.push(now - last);
      last = now;
    };
    for (let i = 0; i < waiters; i++) all.push(locks.request('hot', hold));
    // Answered behind all that they have asked for.
    await locks.check();
    last = threadNs();
  });
  await Promise.all(all);
  return samples.length === waiters ? { samples } : { wrong: `${samples.length} of ${waiters} had it` };
}

/** Measures a process that has loaded the package and the client. */
async function first({ face, store, root }) {
  const program = path.join(__dirname, '..', 'programs', 'first-lock.js');
  const execArgv = ['--expose-gc', '--no-warnings'];
  const child = fork(program, [JSON.stringify({ face, store, root })], { execArgv });
  const [{ ms, cpu, megabytes }] = await once(child, 'message');
  return { samples: [ms * 1e6], cpu, megabytes };
}

const WAYS = { uncontended, handedOver, afterKill, crowd, first };

function measure(face, { way, store, faces, ...params }, root) {
  return faces.includes(face) ? WAYS[way]({ face, store, root }, params) : null;
}

const ROOT = path.join(__dirname, '..', '..');
const named = ['redlock', 'redis-semaphore'];
/** Packages that are optional. */
function isThere(face) {
  if (!named.includes(face)) return true;
  try {
    require.resolve(face);
    require.resolve('ioredis');
    return true;
  } catch {
    return false;
  }
}

module.exports = {
  name: 'stores',
  title: 'Locks among machines, on one',
  kind: 'toolkit',
  rounds: 3,
  timeLimit: 120_000,
  limitIs: 'of the same client: two for a pair, three for a handover, a connection and one for the first lock',
  metrics: [
    { key: 'p10', label: 'p10 ms', better: 'lower', percentile: 10, digits: 3 },
    { key: 'p50', label: 'median ms', better: 'lower', ratio: true, percentile: 50, digits: 3 },
    { key: 'p99', label: 'p99 ms', better: 'lower', percentile: 99, digits: 3 },
    {
      key: 'over',
      label: 'µs over',
      better: 'lower',
      digits: 0,
      note: 'µs over: 1.2 times two bare round trips taken in turn with the pairs; in a handover, over three of them; of a killed holder the worst, over its lease of 2 s',
    },
    { key: 'cpu', label: 'CPU ms', better: 'lower', digits: 0 },
    { key: 'megabytes', label: 'MB', better: 'lower', digits: 1 },
  ],
  async begin() {
    const world = await startServers();
    for (const face of named) if (!isThere(face)) world.absent[face] = `it and ioredis are not both installed`;
    return world;
  },
  cases({ short, world }) {
    return world.stores.flatMap((store) => {
      // Leases take their time.
      const isQuick = store.kind === 'postgres';
      const others = OTHERS[store.kind].filter(isThere);
      const faces = ['sablock', BARE, ...others];
      return [
        {
          name: `${store.kind}: nobody else wants it`,
          params: { way: 'uncontended', store, faces, count: short ? 20 : 500 },
          goals: [{ metric: 'over', atMost: 60 }],
        },
        {
          name: `${store.kind}: handover`,
          params: { way: 'handedOver', store, faces, count: short ? 4 : 60 },
          goals: [{ metric: 'over', atMost: 500 }],
        },
        ...(short && !isQuick
          ? []
          : [
              {
                name: `${store.kind}: the holder is killed`,
                params: {
                  way: 'afterKill',
                  store: { ...store, options: isQuick ? {} : { lease: LEASE_MS } },
                  faces: ['sablock'],
                  kills: short ? 1 : 5,
                },
                goals: [{ metric: 'over', atMost: AFTER_KILL[store.kind] }],
              },
            ]),
        {
          name: `${store.kind}: 1,000 wait for it`,
          params: { way: 'crowd', store, faces: ['sablock'], waiters: short ? 50 : 1000 },
        },
        {
          name: `${store.kind}: first of a process`,
          params: { way: 'first', store, faces: ['sablock', BARE] },
          goals: [
            { metric: 'p50', atMost: 150 },
            { metric: 'megabytes', atMost: 20 },
          ],
        },
      ];
    });
  },
  run: (contender, params) => measure('sablock', params, contender.root),
  limits: [BARE, ...Object.values(OTHERS).flat()].map((name) => ({
    name,
    run: (params) => measure(name, params, ROOT),
  })),
};
