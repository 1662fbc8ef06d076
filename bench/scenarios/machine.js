'use strict';
// Locks among the processes of a machine: what one costs that nobody else wants; from the unlock in one process to the lock in
// another; from the end of a holder that is killed; and how evenly four processes get it. What proves that only one was inside
// is a file, which each holder reads and writes.

const { loadNative } = require('../lib/builds');
const { sharedNs, threadNs } = require('../lib/clock');
const { NAME, manager, open } = require('../lib/machine-locks');
const { handover, killed, withPeers } = require('../lib/peers');
const { JAIN, jain, sum } = require('../lib/stats');

/** All are awake by then. */
const START_NS = 50e6;

/** One after the other, in one process. */
function uncontended(what, { count }) {
  return withPeers(what, async (_start, _witness, directory) => {
    const once = oneHold(what, directory);
    let holds = 0;
    const start = threadNs();
    for (let i = 0; i < count; i++) holds += await once();
    const each = (threadNs() - start) / count / 1000;
    return holds === count ? { each } : { wrong: `${holds} holds of ${count}` };
  });
}

/** As each is used: by a callback, or between two calls. Returns how many holds there were: 1. */
function oneHold({ face, root }, directory) {
  if (face === 'sablock') {
    const locks = manager(directory, root);
    return () => locks.request(NAME, () => 1);
  }
  const take = open(face, directory);
  return async () => {
    const lock = await take();
    await lock.unlock();
    return 1;
  };
}

/** Four processes do nothing but take it. */
function crowd(what, { processes, hold, ms }) {
  return withPeers(what, async (start, witness) => {
    const peers = await Promise.all(Array.from({ length: processes }, start));
    const params = { from: sharedNs() + START_NS, ms, hold };
    const results = await Promise.all(peers.map((peer) => peer.tell('loop', params)));
    const shares = results.map(({ waits }) => waits.length);
    const doubles = sum(results.map((result) => result.doubles));
    if (doubles) return { wrong: `two processes were inside in ${doubles} holds` };
    if (witness.count !== sum(shares)) return { wrong: `${sum(shares)} holds counted ${witness.count}` };
    const samples = results.flatMap(({ waits }) => waits);
    return { samples, jain: jain(shares), rate: (sum(shares) / ms) * 1000 };
  });
}

const WAYS = { uncontended, handover, killed, crowd };

/** `faces`: who takes part in a case, and what is its own there. */
function measure(name, { way, faces, ...params }, root) {
  if (faces[name] === undefined) return null;
  if (name === 'bare flock') loadNative(); // says here that it is not built, not in a process of its own
  const { face = name, ...own } = faces[name];
  return WAYS[way]({ face, root }, { ...params, ...own });
}

module.exports = {
  name: 'machine',
  title: 'Locks among processes',
  kind: 'toolkit',
  /** One of its limits is of bench/native. */
  native: true,
  rounds: 3,
  /** On a busy machine a handover's own messages take long. */
  timeLimit: 180_000,
  limitIs: "the system's lock on a file, in the same places",
  metrics: [
    { key: 'each', label: 'µs', better: 'lower', ratio: true, digits: 1 },
    { key: 'p50', label: 'median ms', better: 'lower', ratio: true, percentile: 50, digits: 3 },
    { key: 'p99', label: 'p99 ms', better: 'lower', percentile: 99, digits: 3 },
    { key: 'worst', label: 'worst ms', better: 'lower', percentile: 100, digits: 3, chart: 'log' },
    { key: 'jain', label: 'fairness', better: 'higher', digits: 3, note: JAIN },
    { key: 'rate', label: 'holds/s', better: 'higher', digits: 0 },
  ],
  cases({ short }) {
    const ms = short ? 200 : 3000;
    const kills = short ? 1 : 10;
    const handovers = short ? 10 : 200;
    return [
      {
        name: 'nobody else wants it',
        params: {
          way: 'uncontended',
          count: short ? 20 : 2000,
          faces: { sablock: {}, 'bare flock': {}, 'proper-lockfile': { count: short ? 20 : 200 } },
        },
        goals: [{ metric: 'each', versus: 'proper-lockfile', atMost: 0.2 }],
      },
      {
        name: 'handover, awaited',
        params: { way: 'handover', count: handovers, faces: { sablock: {}, 'bare flock': {} } },
        goals: [{ metric: 'p50', versus: 'bare flock', atMost: 3 }],
      },
      {
        name: 'handover, blocking',
        params: {
          way: 'handover',
          count: handovers,
          faces: { sablock: { face: 'sablock, blocking' }, 'bare flock': {} },
        },
        goals: [{ metric: 'p50', versus: 'bare flock', atMost: 3 }],
      },
      {
        name: 'the holder is killed',
        params: {
          way: 'killed',
          faces: {
            sablock: { kills },
            'bare flock': { kills },
            // It waits for up to ten seconds each time.
            ...(!short && { 'proper-lockfile': { kills: 1 } }),
          },
        },
        goals: [{ metric: 'p50', atMost: 10 }],
      },
      {
        name: '4 processes, 1 ms',
        params: { way: 'crowd', processes: 4, hold: 1000, ms, faces: { sablock: {}, 'bare flock': {} } },
        goals: [
          { metric: 'jain', atLeast: 0.8 },
          { metric: 'p99', atMost: 20 },
        ],
      },
    ];
  },
  run: (contender, params) => measure('sablock', params, contender.root),
  limits: ['bare flock', 'proper-lockfile'].map((name) => ({ name, run: (params) => measure(name, params) })),
};
