'use strict';
// A table of very many locks beside as many Mutex objects: a random one is taken and freed, by one thread; and what it costs
// to make a table.

const { timePairs } = require('../lib/clock');
const { randomBelow } = require('../lib/random');
const { sablock } = require('../lib/rwlocks');

const PAIR = 'lock+unlock';
const OPTIONS = { allowMainThread: true };
const FEW = 10;
const CHECKED = 100;

/** Returns the fault of a table, as text, if some of its locks are not free, or not those of Mutex objects on the same words. */
function faultOfTable({ Mutex, LockTable }, table, buffer, count) {
  if (LockTable.bytes(count) !== 4 * count) return `${count} locks take ${LockTable.bytes(count)} bytes`;
  const pick = randomBelow(2);
  for (let i = 0; i < CHECKED; i++) {
    const index = pick(count);
    const mutex = new Mutex(buffer, 4 * index, OPTIONS);
    if (!table.tryLock(index)) return `lock ${index} is not free after all its holds have ended`;
    const twice = mutex.tryLock();
    table.unlock(index);
    if (twice) return `lock ${index} was taken twice at once`;
  }
  return undefined;
}

async function pairs(toolkit, { count, ms }) {
  const buffer = new SharedArrayBuffer(4 * count);
  const table = new toolkit.LockTable(buffer, 0, count, OPTIONS);
  const pick = randomBelow(1);
  const loop = (n) => {
    let held = 0;
    for (let i = 0; i < n; i++) {
      const index = pick(count);
      if (table.lock(index)) held++;
      table.unlock(index);
    }
    return held;
  };
  const { ns, wrong } = await timePairs(loop, ms);
  return { ns, wrong: wrong ?? faultOfTable(toolkit, table, buffer, count) };
}

/** The memory is there already: only the table is new. */
async function make({ LockTable }, { count, ms }) {
  const buffer = new SharedArrayBuffer(4 * count);
  const loop = (n) => {
    let made = 0;
    for (let i = 0; i < n; i++) {
      if (new LockTable(buffer, 0, count, OPTIONS).length === count) made++;
    }
    return made;
  };
  const { ns, wrong } = await timePairs(loop, ms);
  return { ns, wrong: wrong && 'some of the tables have another length' };
}

const run = (contender, params) => (params.what === PAIR ? pairs : make)(contender.toolkit(), params);

function mutexes({ what, count, ms }) {
  if (what !== PAIR) return null;
  const contender = sablock();
  const memory = contender.share(count);
  const locks = Array.from({ length: count }, (_, i) => contender.open(memory, i));
  const pick = randomBelow(1);
  return timePairs((n) => {
    let held = 0;
    for (let i = 0; i < n; i++) {
      const lock = locks[pick(count)];
      if (lock.lock()) held++;
      lock.unlock();
    }
    return held;
  }, ms);
}

const small = ({ what, ms }) => (what === PAIR ? null : make(sablock().toolkit(), { count: FEW, ms }));

module.exports = {
  name: 'table',
  title: 'LockTable',
  kind: 'toolkit',
  rounds: 7,
  limitIs: 'a Mutex object for each lock, or a table of ten',
  metrics: [{ key: 'ns', label: 'ns', better: 'lower', ratio: true }],
  cases({ short }) {
    const ms = short ? 5 : 50;
    const counts = short ? [10_000] : [1000, 1_000_000];
    return [
      ...counts.map((count) => ({
        name: `${PAIR}, a random one of ${count.toLocaleString('en')}`,
        params: { what: PAIR, count, ms },
        // Objects of the case before would be in the way.
        fresh: true,
        goals: [{ metric: 'ns', versus: 'limit', atMost: 1.15 }],
      })),
      {
        name: 'new LockTable of 1,000,000',
        params: { what: 'new', count: 1_000_000, ms },
        fresh: true,
        // No slower, but for what two runs of the same differ by.
        goals: [{ metric: 'ns', versus: 'limit', atMost: 1.03 }],
      },
    ];
  },
  run,
  limits: [
    { name: 'Mutex objects', run: mutexes },
    { name: 'new LockTable of 10', run: small },
  ],
};
