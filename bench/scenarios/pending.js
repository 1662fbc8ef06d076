'use strict';
// Very many pending lockAsync of one thread: on one lock, handed on one after the other, aborted, timed out, kept;
// and one on each of many locks. The limit is a queue of bare promises, with a bare listener or
// timer where waits are cancelled: what is above it is the lock's.

const { handOn, oneEach, abort, timeOut, memory, PromiseQueue } = require('../lib/pending-waits');
const { has } = require('../lib/contenders');

const WAYS = {
  'hand on': handOn,
  'abort, a signal each': (lock, count) => abort(lock, count, false),
  'abort, one signal': (lock, count) => abort(lock, count, true),
  'time out': timeOut,
  memory,
};
const ONE_EACH = 'one on each of as many locks';
const CANCELS = new Set(['abort, a signal each', 'abort, one signal', 'time out']);

/** V8 grows its young generation in steps of megabytes; kept small, the resident memory tells what is retained. */
const SMALL_YOUNG_GENERATION = ['--max-semi-space-size=1'];

/** Which contenders can cancel, and how. */
const CAN = {
  sablock: ['abort, a signal each', 'abort, one signal', 'time out'],
  plain: ['time out'],
  locks: ['abort, a signal each', 'abort, one signal'],
};

async function run(contender, { way, count }) {
  if (CANCELS.has(way) && !CAN[contender.name]?.includes(way)) return null;
  if (way === ONE_EACH) return oneEach(contender, count);
  const lock = contender.open(contender.share(1), 0);
  if (!has(lock, 'lockAsync', 'unlock')) return null;
  return WAYS[way](lock, count);
}

async function barePromises({ way, count }) {
  const contender = { share: () => null, open: () => new PromiseQueue() };
  return way === ONE_EACH ? oneEach(contender, count) : WAYS[way](new PromiseQueue(), count);
}

function goals(way, count) {
  if (way === 'memory') return [{ metric: 'bytes', versus: 'beside', atMost: 400 }];
  if (way === ONE_EACH) {
    const each = ['enqueue', 'end'].map((metric) => ({ metric, versus: 'plain', atMost: 1 }));
    return count === 100_000 ? each : undefined;
  }
  if (way !== 'hand on') return undefined;
  const ratios = [
    { metric: 'enqueue', versus: 'plain', atMost: 0.65 },
    { metric: 'end', versus: 'plain', atMost: 0.4 },
  ];
  return count === 100_000 ? [...ratios, { metric: 'end', versus: 'beside', atMost: 2000 }] : ratios;
}

module.exports = {
  name: 'pending',
  title: 'Pending lockAsync, for each of them',
  rounds: 3,
  metrics: [
    { key: 'enqueue', label: 'enqueue ns', better: 'lower', ratio: true, minus: true, digits: 0 },
    { key: 'end', label: 'end ns', better: 'lower', ratio: true, minus: true, digits: 0 },
    { key: 'bytes', label: 'bytes', better: 'lower', ratio: true, minus: true, digits: 0 },
  ],
  cases({ short }) {
    const cases = [];
    for (const way of [...Object.keys(WAYS), ONE_EACH]) {
      for (const count of short ? [2000] : [10_000, 100_000, 1_000_000]) {
        cases.push({
          name: `${count.toLocaleString('en')}: ${way}`,
          params: { way, count },
          family: way,
          fresh: way === 'memory',
          nodeFlags: way === 'memory' ? SMALL_YOUNG_GENERATION : [],
          goals: goals(way, count),
        });
      }
    }
    return cases;
  },
  run,
  limits: [{ name: 'bare promises', run: barePromises }],
};
