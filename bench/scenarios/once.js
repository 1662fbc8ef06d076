'use strict';
// The cost of asking whether something has been done once, when it has: the control is the await of a promise that is
// resolved, or one atomic load.

const { timePairs } = require('../lib/clock');

const AWAIT = 'await run, when done';
const SYNC = 'runSync, when done';

const LOOPS = {
  async [AWAIT](once, n) {
    let passed = 0;
    const fn = () => {};
    for (let i = 0; i < n; i++) {
      if ((await once.run(fn)) === false) passed++;
    }
    return passed;
  },
  [SYNC](once, n) {
    let passed = 0;
    const fn = () => {};
    for (let i = 0; i < n; i++) {
      if (once.runSync(fn) === false) passed++;
    }
    return passed;
  },
};

async function run(contender, { loop, ms }) {
  const { Once } = contender.toolkit();
  const once = new Once(new SharedArrayBuffer(4), 0, { allowMainThread: true });
  let runs = 0;
  const isFirst = once.runSync(() => {
    runs++;
  });
  if (!isFirst || runs !== 1) return { wrong: `the first call ran it ${runs} times and returned ${isFirst}` };
  const { ns, wrong } = await timePairs((n) => LOOPS[loop](once, n), ms);
  return { ns, wrong: wrong && 'it was not done once only' };
}

function resolved({ loop, ms }) {
  if (loop !== AWAIT) return null;
  const done = Promise.resolve(false);
  return timePairs(async (n) => {
    let passed = 0;
    for (let i = 0; i < n; i++) {
      if ((await done) === false) passed++;
    }
    return passed;
  }, ms);
}

function newResolved({ loop, ms }) {
  if (loop !== AWAIT) return null;
  return timePairs(async (n) => {
    let passed = 0;
    for (let i = 0; i < n; i++) {
      if ((await Promise.resolve(false)) === false) passed++;
    }
    return passed;
  }, ms);
}

function atomicLoad({ loop, ms }) {
  if (loop !== SYNC) return null;
  const word = new Int32Array(new SharedArrayBuffer(4));
  return timePairs((n) => {
    let passed = 0;
    for (let i = 0; i < n; i++) {
      if (Atomics.load(word, 0) === 0) passed++;
    }
    return passed;
  }, ms);
}

module.exports = {
  name: 'once',
  title: 'Once, when it is done',
  kind: 'toolkit',
  rounds: 9,
  limitIs: 'which only awaits what is resolved, or loads a word',
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true }],
  cases: ({ short }) => [
    {
      name: AWAIT,
      params: { loop: AWAIT, ms: short ? 5 : 50 },
      goals: [{ metric: 'ns', versus: 'limit', atMost: 1.2 }],
    },
    { name: SYNC, params: { loop: SYNC, ms: short ? 5 : 50 } },
  ],
  run,
  limits: [
    { name: 'await of one resolved promise', run: resolved },
    { name: 'await of a new one', run: newResolved },
    { name: 'Atomics.load', run: atomicLoad },
  ],
};
