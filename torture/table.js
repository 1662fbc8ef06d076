// The table of what was tried and what was lost.

const { FATES, OUTCOMES, PHASES, STATE } = require('./log.js');
const { MISUSES } = require('./misuse.js');

const WAYS = {
  TERMINATED: 'worker terminated',
  EXITS: 'process.exit() in a worker',
  THROWS: 'uncaught error in a worker',
  THROWS_IN_CALLBACK: 'error in the callback of enter()',
  RETURNS: 'worker that ends with nothing left to do',
  OVERFLOWS: 'worker out of memory',
};
const ENDS = { [OUTCOMES.TIMED_OUT]: 'timed out', [OUTCOMES.ABORTED]: 'aborted', [OUTCOMES.DEADLOCK]: 'DeadlockError' };

/** Counts what a round has tried. */
exports.countFaults = ({ threads, warnings }, workers, tally) => {
  tally.count('done', 'threads', threads.length);
  tally.count('done', 'warnings of abandonment', warnings.length);
  for (const thread of threads) {
    if (thread.died) countDeath(thread, tally);
    tally.count('done', 'loop kept from turning for up to 300 ms', thread.busy.length);
    for (const wait of thread.waits) {
      tally.count('verb', wait.verbName);
      if (wait.held) tally.count('done', 'holds');
      if (wait.phase === PHASES.ENDED) tally.count('wait', ENDS[wait.outcome]);
    }
  }
  for (const { log } of workers) {
    for (const [index, name] of MISUSES.entries()) tally.count('misuse', name, log.state[STATE.MISUSES + index]);
  }
};

function countDeath({ fate, waits }, tally) {
  const way = WAYS[Object.keys(FATES).find((name) => FATES[name] === fate)];
  const isHolding = waits.some((wait) => wait.held && !wait.left);
  const open = waits.filter((wait) => wait.phase === PHASES.BEGUN);
  const states = [
    isHolding && 'holding',
    open.some((wait) => wait.isBlocking) && 'blocked',
    open.some((wait) => wait.isAsync) && 'awaiting',
    waits.some((wait) => wait.phase === PHASES.LEAVING) && 'unlocking',
  ].filter(Boolean);
  tally.count('death', `${way}, ${states.join(' and ') || 'running'}`);
}

const row = (name, count, lost) => console.log(`| ${name.padEnd(66)} | ${String(count).padStart(9)} | ${lost} |`);

exports.printTable = (tally, violations, { seed, threads, mutexes }) => {
  const lost = violations.length === 0 ? 'nothing' : 'see above';
  console.log(`\nseed ${seed}, up to ${threads} threads at once, up to ${mutexes} mutexes, node ${process.version}\n`);
  row('what was tried', 'times', 'lost');
  row('-'.repeat(66), '-'.repeat(9), '-'.repeat(7));
  const groups = {
    death: '',
    wait: 'wait ',
    deadlock: 'deadlock ',
    misuse: '',
    abandonment: 'abandonment: ',
    done: '',
    verb: '',
  };
  for (const group in groups) {
    for (const [name, count] of tally.group(group).sort()) row(groups[group] + name, count, lost);
  }
  console.log();
  const digits = (value) => value.toFixed(2).padStart(10);
  console.log(`${'distribution'.padEnd(44)}     count     median        p99    largest`);
  for (const { name, seen, median, p99, largest } of tally.distributions) {
    console.log(`${name.padEnd(44)}${String(seen).padStart(10)} ${digits(median)} ${digits(p99)} ${digits(largest)}`);
  }
  console.log();
};
