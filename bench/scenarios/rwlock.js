'use strict';
// A readers-writer lock that nobody else wants: nanoseconds for each pair of its two sides. The control is the same pair of
// a mutex of this package.

const { timePairs } = require('../lib/clock');
const { faultOf, faultOfRwlock, has } = require('../lib/contenders');
const { sablock } = require('../lib/rwlocks');
const { PAIRS } = require('./uncontended');

const SIDES = ['read', 'write'];
const VERBS = ['lock+unlock', 'acquire+guard.unlock', 'await lockAsync+unlock'];

const PEER = { metric: 'ns', versus: 'multithreading', atMost: 1 };
const GOALS = {
  read: [{ metric: 'ns', versus: 'limit', atMost: 1.15 }, PEER],
  write: [{ metric: 'ns', versus: 'limit', atMost: 1.25 }, PEER],
};

async function time(lock, { verb, ms }) {
  const { needs, loop } = PAIRS[verb];
  return has(lock, ...needs) ? timePairs((n) => loop(lock, n), ms) : null;
}

async function run(contender, params) {
  const rwlock = contender.rwlock.open(contender.rwlock.share());
  const timed = await time(rwlock[params.side], params);
  return timed && { ns: timed.ns, wrong: timed.wrong ?? faultOfRwlock(rwlock) };
}

async function mutexPair(params) {
  const contender = sablock();
  const mutex = contender.open(contender.share(1), 0);
  const { ns, wrong } = await time(mutex, params);
  return { ns, wrong: wrong ?? faultOf(mutex) };
}

module.exports = {
  name: 'rwlock',
  title: 'RwLock, uncontended pairs',
  kind: 'rwlock',
  rounds: 9,
  limitIs: 'the same verbs of a Mutex',
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true }],
  cases: ({ short }) =>
    SIDES.flatMap((side) =>
      VERBS.map((verb) => ({
        name: verb.replace(/lock|acquire/, `${side}.$&`),
        params: { side, verb, ms: short ? 5 : 50 },
        // V8's knowledge of the other side is not of this one.
        fresh: true,
        goals: verb === 'lock+unlock' ? GOALS[side] : undefined,
      })),
    ),
  run,
  limits: [{ name: 'Mutex', run: mutexPair }],
};
