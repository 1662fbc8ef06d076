// The summary of what was tried and what was lost, over all rounds: counts, distributions, and the table at the end.

const { createHistogram } = require('node:perf_hooks');
const { FATES, OUTCOMES, PHASES, STATE } = require('./log.js');
const { MISUSES } = require('./misuse.js');

exports.Summary = class Summary {
  #counts = new Map();
  #distributions = new Map();

  count(group, name, times = 1) {
    const key = `${group}: ${name}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + times);
  }

  /** All counts of a group, as `[name, count]`. */
  group(group) {
    const ours = [...this.#counts].filter(([key]) => key.startsWith(`${group}: `));
    return ours.map(([key, count]) => [key.slice(group.length + 2), count]);
  }

  /** One value of a distribution, kept to a thousandth. */
  measure(name, value) {
    if (!Number.isFinite(value)) return;
    if (!this.#distributions.has(name)) this.#distributions.set(name, createHistogram({ figures: 3 }));
    this.#distributions.get(name).record(Math.max(1, Math.round(value * 1000)));
  }

  /** `[{ name, seen, median, p99, largest }]`. */
  get distributions() {
    return [...this.#distributions].sort().map(([name, histogram]) => {
      const [median, p99] = [50, 99].map((percentile) => histogram.percentile(percentile) / 1000);
      return { name, seen: histogram.count, median, p99, largest: histogram.max / 1000 };
    });
  }
};

const WAYS = {
  TERMINATED: 'worker terminated',
  EXITS: 'process.exit() in a worker',
  THROWS: 'uncaught error in a worker',
  THROWS_IN_CALLBACK: 'error in the callback of enter()',
  RETURNS: 'worker that ends with nothing left to do',
  OVERFLOWS: 'worker out of memory',
};
const ENDS = {
  [OUTCOMES.TIMED_OUT]: 'timed out',
  [OUTCOMES.ABORTED]: 'aborted',
  [OUTCOMES.DEADLOCK]: 'DeadlockError',
  [OUTCOMES.NOTIFIED]: 'notified',
  [OUTCOMES.REFUSED]: 'given up with others of the same call',
};
const USE_ENDS = {
  [OUTCOMES.TIMED_OUT]: 'timed out',
  [OUTCOMES.ABORTED]: 'aborted',
  [OUTCOMES.NOTIFIED]: 'passed',
  [OUTCOMES.BROKEN]: 'BrokenBarrierError',
};

/** The words for what a thread is or has inside of each, by the first part of the verb. */
const USED = {
  read: 'a reader',
  downgrade: 'a reader',
  write: 'a writer',
  tryUpgrade: 'a writer',
  semaphore: 'with permits',
  latch: 'an entry of a latch',
  barrier: 'a member of a barrier',
  once: 'running once',
  name: 'holding a name',
};

/** Counts what a round has tried. */
exports.countFaults = ({ threads, conditions, warnings }, workers, summary) => {
  summary.count('done', 'threads', threads.length);
  summary.count('done', 'warnings of abandonment', warnings.length);
  for (const { notifications } of conditions) {
    summary.count('done', 'notifications', notifications.length);
    for (const { woken } of notifications) summary.count('done', 'waiters notified', woken);
  }
  for (const thread of threads) {
    if (thread.died) countDeath(thread, summary);
    summary.count('done', 'loop kept from turning for up to 300 ms', thread.busy.length);
    for (const wait of thread.waits) {
      if (!wait.isRelock) summary.count('verb', wait.verbName);
      if (wait.held) summary.count('done', 'holds');
      if (wait.phase === PHASES.ENDED) summary.count('wait', ENDS[wait.outcome]);
    }
    for (const use of thread.uses) {
      summary.count('use', use.verbName);
      if (use.held) summary.count('done', 'holds of other kinds');
      if (use.outcome in USE_ENDS) summary.count('used', USE_ENDS[use.outcome]);
    }
    for (const { verbName, outcome } of thread.queued) {
      summary.count('verb', verbName);
      if (outcome in ENDS) summary.count('queued', ENDS[outcome]);
    }
  }
  for (const { log } of workers) {
    for (const [index, name] of MISUSES.entries()) summary.count('misuse', name, log.state[STATE.MISUSES + index]);
  }
};

function countDeath({ fate, waits, queued, uses }, summary) {
  const way = WAYS[Object.keys(FATES).find((name) => FATES[name] === fate)];
  const isHolding = waits.some((wait) => wait.held && !wait.left);
  const open = waits.filter((wait) => wait.phase === PHASES.BEGUN && !wait.isRelock);
  const awaited = queued.filter((wait) => wait.phase === PHASES.BEGUN);
  const withMutex = new Set(awaited.map(({ hold }) => hold));
  const states = [
    isHolding && 'holding',
    open.some((wait) => wait.isBlocking) && 'blocked',
    open.some((wait) => wait.isAsync) && 'awaiting',
    uses.some((use) => use.held && !use.left) && 'with holds of other kinds',
    uses.some(({ phase }) => phase === PHASES.BEGUN) && 'waiting for other kinds',
    waits.some(({ phase, index }) => phase === PHASES.LEAVING && !withMutex.has(index)) && 'unlocking',
  ].filter(Boolean);
  const otherwise = awaited.length > 0 ? 'waiting for a notification' : 'running';
  summary.count('death', `${way}, ${states.join(' and ') || otherwise}`);
  // Also counted in one of the rows above.
  const held = new Set(uses.filter((use) => use.held && !use.left).map((use) => USED[use.verbName.split('.')[0]]));
  for (const what of held) summary.count('death', `${way}: ${what}`);
  if (awaited.some((wait) => wait.isRelock)) summary.count('death', `${way}: in a wait of a Condition`);
  if (awaited.some((wait) => !wait.isRelock)) summary.count('death', `${way}: in wait() or waitAsync()`);
}

const row = (name, count, lost) => console.log(`| ${name.padEnd(66)} | ${String(count).padStart(9)} | ${lost} |`);

exports.printTable = (summary, violations, { seed, threads, mutexes }) => {
  const lost = violations.length === 0 ? 'nothing' : 'see below';
  console.log(`\nseed ${seed}, up to ${threads} threads at once, up to ${mutexes} mutexes, node ${process.version}\n`);
  row('what was tried', 'times', 'lost');
  row('-'.repeat(66), '-'.repeat(9), '-'.repeat(7));
  const groups = {
    death: '',
    wait: 'wait ',
    queued: 'wait for a notification ',
    deadlock: 'deadlock ',
    misuse: '',
    abandonment: 'abandonment: ',
    used: 'use of another kind ',
    done: '',
    verb: '',
    use: '',
  };
  for (const group in groups) {
    for (const [name, count] of summary.group(group).sort()) row(groups[group] + name, count, lost);
  }
  console.log();
  const digits = (value) => value.toFixed(2).padStart(10);
  console.log(`${'distribution'.padEnd(44)}     count     median        p99    largest`);
  for (const { name, seen, median, p99, largest } of summary.distributions) {
    console.log(`${name.padEnd(44)}${String(seen).padStart(10)} ${digits(median)} ${digits(p99)} ${digits(largest)}`);
  }
  console.log();
};
