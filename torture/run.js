// The torture run: random verbs from many threads that end at random moments, round after round; each is checked.
//
//   node torture/run.js --seconds 60 --seed 1 [--threads 6] [--mutexes 4] [--busy 1] [--deaths 1] [--round 1]

const { setImmediate: turn } = require('node:timers/promises');
const { check } = require('./checks/index.js');
const { createLog } = require('./log.js');
const { readHistory } = require('./history.js');
const { readOptions } = require('./options.js');
const { Round } = require('./round.js');
const { Tally } = require('./tally.js');
const { countFaults, printTable } = require('./table.js');
const { startWatchdog } = require('./watchdog.js');

/** Logs are taken by threads, and given back when their round has been checked. */
class LogPool {
  #free = [];
  #taken = [];

  take() {
    const log = this.#free.pop() ?? createLog();
    this.#taken.push(log);
    return log;
  }

  recycle() {
    for (const log of this.#taken) log.clear();
    this.#free.push(...this.#taken.splice(0));
  }
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  const tally = new Tally();
  const logs = new LogPool();
  const watchdog = startWatchdog(2 * options.patience + 10_000);
  const end = performance.now() + options.seconds * 1000;
  let passed = 0;
  let violations = [];
  for (let number = options.round; performance.now() < end && violations.length === 0; number++) {
    violations = await runRound(number, options, logs, tally);
    if (violations.length === 0) passed += 1;
    watchdog.feed();
  }
  printTable(tally, violations, options);
  const failed = violations.length > 0 ? 1 : 0;
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed);
}

/** Answers the violations that were found. */
async function runRound(number, options, logs, tally) {
  const violations = [];
  const report = (kind, text) => violations.push({ kind, text });
  const round = new Round(number, options, logs, tally, report);
  const isQuiet = await round.run();
  // What the sweep set on its way, settled.
  await turn();
  if (isQuiet) {
    const history = readHistory(round.threads, round.profile.mutexes);
    check(history, report, tally, options.slack);
    countFaults(history, round.threads, tally);
    logs.recycle();
  }
  const { profile, threads } = round;
  const shape = `${profile.pace}, ${profile.mutexes} mutexes, ${threads.length} threads`;
  if (!options.quiet) console.log(`round ${number}: ${shape}, ${violations.length > 0 ? 'FAILED' : 'passed'}`);
  if (violations.length > 0) explain(number, options, violations);
  return violations;
}

function explain(number, options, violations) {
  const [{ kind, text }] = violations;
  console.log(`\nVIOLATION (${kind}) in round ${number} of seed ${options.seed}, node ${process.version}:\n${text}`);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const again = given.map(([name, value]) => `--${name} ${name === 'round' ? number : value}`);
  console.log(`\nAgain: node torture/run.js ${again.filter((text) => !text.startsWith('--quiet')).join(' ')}`);
  for (const other of violations.slice(1, 12)) console.log(`  also (${other.kind}): ${other.text.slice(0, 500)}`);
  if (violations.length > 12) console.log(`  and ${violations.length - 12} more`);
  console.log();
}

process.on('uncaughtException', (error) => {
  console.log(`\nVIOLATION (error), in the main thread: ${error?.stack ?? error}\n0 passed, 1 failed`);
  process.exit(1);
});
main();
