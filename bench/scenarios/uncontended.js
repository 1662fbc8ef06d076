'use strict';
// A lock that nobody else wants, taken and freed by one thread: nanoseconds for each pair. The limits are the two
// atomic instructions that any lock needs, and for the asynchronous verbs the same and the awaits that they must make.

const { timePairs } = require('../lib/clock');
const { faultOf, has } = require('../lib/contenders');

// Each pair is a loop of its own, written out, so that V8 sees in it what it would see in a user's code (inlining.js shows
// what it makes of them).
// Every loop returns how many times it held the lock, and does nothing inside: whatever it did would blur the ratios.
const PAIRS = {
  'lock+unlock': {
    needs: ['lock', 'unlock'],
    loop(lock, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        if (lock.lock()) held++;
        lock.unlock();
      }
      return held;
    },
  },
  'tryLock+unlock': {
    needs: ['tryLock', 'unlock'],
    loop(lock, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        if (lock.tryLock()) {
          held++;
          lock.unlock();
        }
      }
      return held;
    },
  },
  'await lockAsync+unlock': {
    needs: ['lockAsync', 'unlock'],
    async loop(lock, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        if (await lock.lockAsync()) held++;
        lock.unlock();
      }
      return held;
    },
  },
  'await executeLocked': {
    needs: ['executeLocked'],
    async loop(lock, n) {
      let held = 0;
      const hold = () => {
        held++;
      };
      for (let i = 0; i < n; i++) await lock.executeLocked(hold);
      return held;
    },
  },
  'await executeLocked, { timeout }': {
    needs: ['executeLocked'],
    async loop(lock, n) {
      let held = 0;
      const hold = () => {
        held++;
      };
      for (let i = 0; i < n; i++) await lock.executeLocked(hold, { timeout: 1000 });
      return held;
    },
  },
  'await executeLocked, { signal }': {
    needs: ['executeLocked'],
    async loop(lock, n) {
      let held = 0;
      const hold = () => {
        held++;
      };
      const options = { signal: new AbortController().signal };
      for (let i = 0; i < n; i++) await lock.executeLocked(hold, options);
      return held;
    },
  },
  executeLockedSync: {
    needs: ['executeLockedSync'],
    loop(lock, n) {
      let held = 0;
      const hold = () => {
        held++;
      };
      for (let i = 0; i < n; i++) lock.executeLockedSync(hold);
      return held;
    },
  },
  'acquire+guard.unlock': {
    needs: ['acquire'],
    loop(lock, n) {
      let held = 0;
      for (let i = 0; i < n; i++) {
        const guard = lock.acquire();
        held++;
        guard.unlock();
      }
      return held;
    },
  },
};

const ASYNC = new Set(Object.keys(PAIRS).filter((pair) => pair.startsWith('await ')));

async function run(contender, { pair, ms }) {
  const lock = contender.open(contender.share(1), 0);
  const { needs, loop } = PAIRS[pair];
  if (!has(lock, ...needs)) return null;
  const { ns, wrong } = await timePairs((n) => loop(lock, n), ms);
  return { ns, wrong: wrong ?? faultOf(lock) };
}

/** The steps that `lock` and `unlock` cannot do without. */
const BARE = {
  loop(word, n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      if (Atomics.compareExchange(word, 0, 0, 1) === 0) held++;
      Atomics.compareExchange(word, 0, 1, 0);
    }
    return held;
  },
};

function twoCompareExchanges({ pair, ms }) {
  if (ASYNC.has(pair)) return null;
  const word = new Int32Array(new SharedArrayBuffer(4));
  return timePairs((n) => BARE.loop(word, n), ms);
}

function twoCompareExchangesAndAwait({ pair, ms }) {
  if (pair !== 'await lockAsync+unlock') return null;
  const word = new Int32Array(new SharedArrayBuffer(4));
  const nothing = async () => true;
  return timePairs(async (n) => {
    let held = 0;
    for (let i = 0; i < n; i++) {
      Atomics.compareExchange(word, 0, 0, 1);
      if (await nothing()) held++;
      Atomics.compareExchange(word, 0, 1, 0);
    }
    return held;
  }, ms);
}

/** The steps that `executeLocked` cannot do without: it awaits what the function returns, and its caller awaits it. */
function twoCompareExchangesAndTwoAwaits({ pair, ms }) {
  if (pair !== 'await executeLocked') return null;
  const word = new Int32Array(new SharedArrayBuffer(4));
  const execute = async (fn) => {
    Atomics.compareExchange(word, 0, 0, 1);
    try {
      return await fn();
    } finally {
      Atomics.compareExchange(word, 0, 1, 0);
    }
  };
  return timePairs((n) => PAIRS[pair].loop({ executeLocked: execute }, n), ms);
}

const REACH = {
  'lock+unlock': { versus: 'plain', atMost: 1.05 },
  'tryLock+unlock': { versus: 'plain', atMost: 1.05 },
  'await lockAsync+unlock': { versus: 'plain', atMost: 1.1 },
  'await executeLocked': { versus: 'limit', atMost: 1.2 },
};

module.exports = {
  PAIRS,
  BARE,
  name: 'uncontended',
  title: 'Uncontended pairs',
  rounds: 11,
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true }],
  cases: ({ short }) =>
    Object.keys(PAIRS).map((pair) => ({
      name: pair,
      params: { pair, ms: short ? 5 : 50 },
      goals: REACH[pair] && [{ metric: 'ns', ...REACH[pair] }],
    })),
  run,
  limits: [
    { name: 'two compare-exchanges', run: twoCompareExchanges },
    { name: 'two compare-exchanges, one await', run: twoCompareExchangesAndAwait },
    { name: 'two compare-exchanges, two awaits', run: twoCompareExchangesAndTwoAwaits },
  ],
};
