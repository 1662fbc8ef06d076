'use strict';
// An event loop whose turns are long (parsing, rendering) beside workers that do nothing but take the lock. Main computes
// in each turn and asks for the lock at its beginning, unless it still waits; a wait of one turn is the least, since
// nothing reaches main before the turn is over. The next turn is always due already, as in a server under load: a loop that
// sleeps between its turns, be it for a millisecond, gets the lock then. Blocks of turns with waits alternate with blocks
// of the same turns without: the workers' rate in the one is shown in percent of the other. A lock that is free when main
// asks is main's for the whole turn, by the program's own doing; that time does not count against the lock.

const { awakeNs, busyFor, threadNs } = require('../lib/clock');
const { has } = require('../lib/contenders');
const { sum } = require('../lib/stats');
const { WorkerGroup, miscount } = require('../lib/workers');

const WORKERS = 2;
const TURNS_MS = [5, 20, 50, 100, 300];
const HOLDS_µS = [20, 200, 1000];

/** With every contender this would take most of an hour: only these take part, plain with fewer waits. */
const SHARES = { sablock: 1, plain: 0.25, busted: 1 };

/** The turns that a wait may take, on average, before a round ends with fewer waits than it should have. */
const MOST_TURNS = 1.5;

/** Main's loop: turns of `turnMs`, one after the other. */
class LongTurns {
  #lock;
  #data;
  #compute;
  #turnNs;
  #isWaiting = false;
  /** For how many nanoseconds of its turns main itself kept the lock, which was free when it asked. */
  keptNs = 0;
  /** The time that each wait took, in millionths of a turn. */
  waits = [];
  turns = 0;

  constructor(lock, data, turnMs) {
    this.#lock = lock;
    this.#data = data;
    this.#compute = busyFor(turnMs * 1000);
    this.#turnNs = turnMs * 1e6;
  }

  /** Turns until `isOver()` and nobody waits. `asks`: whether they want the lock. */
  run(asks, isOver) {
    return new Promise((resolve, reject) => {
      const turn = () => {
        if (!this.#isWaiting && isOver()) return resolve();
        this.turns++;
        if (asks && !this.#isWaiting) this.#ask().catch(reject);
        this.#compute();
        setImmediate(turn);
      };
      setImmediate(turn);
    });
  }

  async #ask() {
    this.#isWaiting = true;
    const asked = threadNs();
    const isFree = this.#lock.tryLock();
    await (isFree || this.#lock.lockAsync());
    const ns = threadNs() - asked;
    if (isFree) this.keptNs += ns;
    this.waits.push((ns / this.#turnNs) * 1e6);
    this.#data[0]++;
    this.#lock.unlock();
    this.#isWaiting = false;
  }
}

/** Observes the workers and main while main runs such turns. */
async function observe(group, main, turns) {
  const [holds, kept, start, awake] = [group.total(), main.keptNs, threadNs(), awakeNs()];
  await turns();
  const ns = threadNs() - start;
  return { ns, free: ns - (main.keptNs - kept), holds: group.total() - holds, asleep: ns - (awakeNs() - awake) };
}

const rateOf = (blocks) => (sum(blocks.map(({ holds }) => holds)) / sum(blocks.map(({ free }) => free))) * 1e6;
const sleepOf = (blocks) => (100 * sum(blocks.map(({ asleep }) => asleep))) / sum(blocks.map(({ ns }) => ns));

async function run(contender, { turnMs, hold, waits, blocks }) {
  const share = SHARES[contender.name];
  if (share === undefined) return null;
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  if (!has(lock, 'tryLock', 'lockAsync', 'unlock')) return null;
  const data = new Int32Array(new SharedArrayBuffer(64));
  const group = await WorkerGroup.start(WORKERS, 'hold-loop.js', contender.name, () => ({ memory, data, hold }));
  const main = new LongTurns(lock, data, turnMs);
  const waitsInBlock = Math.ceil((waits * share) / blocks);
  const turnsInBlock = Math.ceil(waitsInBlock * MOST_TURNS);
  // Far beyond any goal: the workers stop, so that the round comes to an end.
  const rescue = setTimeout(() => group.stop(), 3000 + blocks * turnsInBlock * turnMs * 3);

  group.go();
  const without = [];
  const waiting = [];
  for (let block = 0; block < blocks; block++) {
    let last = main.turns + Math.ceil(waitsInBlock / 2);
    without.push(await observe(group, main, () => main.run(false, () => main.turns >= last)));
    last = main.turns + turnsInBlock;
    const most = main.waits.length + waitsInBlock;
    const isOver = () => main.waits.length >= most || main.turns >= last;
    waiting.push(await observe(group, main, () => main.run(true, isOver)));
  }
  clearTimeout(rescue);
  group.stop();
  const results = await group.results();
  await group.end();
  const wrong = miscount(sum(results.map(({ holds }) => holds)) + main.waits.length, data);
  if (wrong) return { wrong };
  return {
    samples: main.waits,
    percent: (100 * rateOf(waiting)) / rateOf(without),
    asleep: Math.max(0, sleepOf(waiting) - sleepOf(without)),
    waits: main.waits.length,
  };
}

module.exports = {
  name: 'long-turns',
  title: 'Long turns: main awaits the lock while it computes, two workers loop',
  /** The unit of the samples. */
  unit: 'turns',
  threads: true,
  rounds: 5,
  timeLimit: 120_000,
  metrics: [
    { key: 'p50', label: 'median turns', better: 'lower', ratio: true, percentile: 50 },
    { key: 'worst', label: 'worst turns', better: 'lower', percentile: 100, chart: 'log' },
    { key: 'percent', label: '% of the rate without', better: 'higher', chart: 'linear' },
    {
      key: 'asleep',
      label: '% asleep',
      better: 'lower',
      digits: 1,
      note: '% asleep: how much of its time main sleeps more than in the same turns without waits',
    },
    { key: 'waits', label: 'waits a round', better: 'higher', digits: 0 },
  ],
  cases: ({ short }) =>
    (short ? [5] : TURNS_MS).flatMap((turnMs) =>
      (short ? [200] : HOLDS_µS).map((hold) => ({
        name: `turns of ${turnMs} ms, ${hold / 1000} ms holds`,
        // Five rounds make the 200 waits of the goal.
        params: { turnMs, hold, waits: short ? 8 : 40, blocks: short ? 2 : 4 },
        goals: [
          { metric: 'p50', atMost: 1.5 },
          { metric: 'worst', atMost: 3 },
          { metric: 'percent', atLeast: 90 },
          { metric: 'asleep', atMost: 10 },
        ],
      })),
    ),
  run,
};
