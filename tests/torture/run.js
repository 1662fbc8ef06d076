// The torture run: random verbs from many threads that end at random moments, round after round; each is checked.
//
//   node tests/torture/run.js --seconds 60 --seed 1 [--threads 6] [--mutexes 4] [--busy 1] [--deaths 1] [--round 1] [--kind rwlock]

const { setImmediate: turn } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { check } = require('./checks/index.js');
const { checkLatency } = require('./checks/latency.js');
const { PACES } = require('./choices.js');
const { createLog } = require('./log.js');
const { readHistory } = require('./history.js');
const { Round } = require('./round.js');
const { SABOTAGES } = require('./sabotage.js');
const { Summary, countFaults, printTable } = require('./summary.js');
const { THINGS } = require('./things.js');
const { startWatchdog } = require('./watchdog.js');

const NUMBERS = {
  seconds: 20,
  seed: 1,
  threads: 6,
  mutexes: 4,
  /** The frequency with which loops are kept from turning, relative to the usual. */
  busy: 1,
  /** The frequency with which threads end, relative to the usual. */
  deaths: 1,
  /** Whether a thread's other tasks go on in the moment between its uncaught error and its end: 1 or 0. */
  'after-throw': 1,
  /** Whether anything but mutexes and conditions is used: 1 or 0. */
  uses: 1,
  /** The first round to run, to come back to one that failed. */
  round: 1,
  'round-seconds': 2.5,
  /** Without any progress for so many milliseconds, the run has failed. */
  patience: 10_000,
  /** No wait shorter than this, in milliseconds, counts as overtaken. */
  slack: 3000,
};

function readOptions(args) {
  const options = {
    sabotage: { type: 'string' },
    pace: { type: 'string' },
    kind: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  };
  for (const name in NUMBERS) options[name] = { type: 'string', default: String(NUMBERS[name]) };
  const { values } = parseArgs({ args, options });
  for (const name in NUMBERS) {
    const value = Number(values[name]);
    if (!(value >= 0)) throw new RangeError(`--${name} must be a number, 0 or more; got ${values[name]}`);
    values[name] = value;
  }
  if (values.pace !== undefined && !(values.pace in PACES)) {
    throw new RangeError(`--pace must be one of ${Object.keys(PACES).join(', ')}; got ${values.pace}`);
  }
  if (values.kind !== undefined && !THINGS.some(({ kind }) => kind === values.kind)) {
    const kinds = [...new Set(THINGS.map(({ kind }) => kind))];
    throw new RangeError(`--kind must be one of ${kinds.join(', ')}; got ${values.kind}`);
  }
  if (values.sabotage !== undefined && !(values.sabotage in SABOTAGES)) {
    throw new RangeError(`--sabotage must be one of ${Object.keys(SABOTAGES).join(', ')}; got ${values.sabotage}`);
  }
  return values;
}

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
  const summary = new Summary();
  const logs = new LogPool();
  const watchdog = startWatchdog(2 * options.patience + 10_000);
  const end = performance.now() + options.seconds * 1000;
  let passed = 0;
  let violations = [];
  let round = options.round;
  for (; performance.now() < end; round++) {
    violations = await runRound(round, options, logs, summary);
    watchdog.feed();
    if (violations.length > 0) break;
    passed += 1;
  }
  if (violations.length === 0) {
    round = options.round;
    checkLatency(summary, (kind, text) => violations.push({ kind, text }));
  }
  printTable(summary, violations, options);
  // Below the table, since of a long output its end is what is kept.
  if (violations.length > 0) explain(round, options, violations);
  const failed = violations.length > 0 ? 1 : 0;
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed);
}

/** Returns the violations that were found. */
async function runRound(number, options, logs, summary) {
  const violations = [];
  const report = (kind, text) => violations.push({ kind, text });
  const round = new Round(number, options, logs, summary, report);
  const isQuiet = await round.run();
  // The rest that the sweep set on its way is settled.
  await turn();
  if (isQuiet) {
    const history = readHistory(round.threads, round.profile, round.leftOver);
    check(history, report, summary, options.slack);
    countFaults(history, round.threads, summary);
    logs.recycle();
  }
  const { profile, threads } = round;
  const shape = `${profile.pace}, ${profile.mutexes} mutexes, ${threads.length} threads`;
  if (!options.quiet) console.log(`round ${number}: ${shape}, ${violations.length > 0 ? 'FAILED' : 'passed'}`);
  return violations;
}

function explain(number, options, violations) {
  const [{ kind, text }] = violations;
  console.log(`\nVIOLATION (${kind}) in round ${number} of seed ${options.seed}, node ${process.version}:\n${text}`);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const again = given.map(([name, value]) => `--${name} ${name === 'round' ? number : value}`);
  console.log(`\nAgain: node tests/torture/run.js ${again.filter((text) => !text.startsWith('--quiet')).join(' ')}`);
  for (const other of violations.slice(1, 12)) console.log(`  also (${other.kind}): ${other.text.slice(0, 500)}`);
  if (violations.length > 12) console.log(`  and ${violations.length - 12} more`);
  console.log();
}

process.on('uncaughtException', (error) => {
  console.log(`\nVIOLATION (error), in the main thread: ${error?.stack ?? error}\n0 passed, 1 failed`);
  process.exit(1);
});
main();
