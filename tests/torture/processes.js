// Processes lock names for themselves and together, in every way there is, and are killed, stopped and continued at random;
// their threads are terminated, and the records of the locks cut. Each holder writes into a log when it is in and before it
// unlocks: these logs are the witness (processes/witness.js). Windows can stop no process; there, they are only killed.
//
//     npm run torture:processes -- --seconds 60 --seed 7 [--processes 8] [--names 3] [--others 2000] [--kind readers]
//
// `--others`: so many files of names for which nobody asks any more are in the directory.
//
// In the kind `readers` most share, for long, beside some who give up waiting to hold a name alone and processes that are stopped
// for long: the witness says when those who share were not inside together.

const { fork } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { LockManager } = require('../..');
const { createLog, readLogs, sizeOfLogs } = require('./processes/log.js');
const { createRandom } = require('./processes/random.js');
const { testify } = require('./processes/witness.js');

const DEFAULTS = { seconds: 20, seed: 1, processes: 8, names: 3, others: 0 };
/** The kinds of runs: how often what happens, and for how long nobody is stopped at most. */
const KINDS = {
  crowd: { kill: 0.12, cut: 0.15, longestStopMs: 60 },
  readers: { kill: 0.002, cut: 0.01, longestStopMs: 3000 },
};
const CAN_STOP = process.platform !== 'win32';
/** Without a line in the log for so long, or after being told to finish, somebody waits for ever. */
const PATIENCE_MS = 30_000;

function readOptions(args) {
  const options = { kind: { type: 'string', default: 'crowd' } };
  for (const name in DEFAULTS) options[name] = { type: 'string', default: String(DEFAULTS[name]) };
  const { values } = parseArgs({ args, options });
  if (!Object.hasOwn(KINDS, values.kind)) {
    throw new RangeError(`--kind must be one of ${Object.keys(KINDS).join(', ')}; got ${values.kind}`);
  }
  for (const name in DEFAULTS) {
    const value = Number(values[name]);
    const least = Math.min(DEFAULTS[name], 1);
    if (!(value >= least)) throw new RangeError(`--${name} must be a number, ${least} or more; got ${values[name]}`);
    values[name] = value;
  }
  return values;
}

class Run {
  #options;
  #kind;
  #folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-torture-'));
  #directory = path.join(this.#folder, 'locks');
  #logs = path.join(this.#folder, 'logs');
  #log;
  #random;
  #children = new Set();
  /** The files of names for which nobody asks. */
  #others;
  #next = 0;
  #counts = { kills: 0, stops: 0, cuts: 0 };
  #progress = { size: 0, at: performance.now() };

  constructor(options) {
    this.#options = options;
    this.#kind = KINDS[options.kind];
    this.#random = createRandom(options.seed);
    fs.mkdirSync(this.#directory);
    const manager = new LockManager({ directory: this.#directory, allowMainThread: true });
    for (let other = 0; other < options.others; other += 1) manager.requestSync(`other ${other}`, () => {});
    this.#others = new Set(fs.readdirSync(this.#directory));
    fs.mkdirSync(this.#logs);
    this.#log = createLog(this.#logs, 'run');
  }

  async run() {
    const { seconds, processes } = this.#options;
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
      while (this.#children.size < processes) this.#start();
      await sleep(this.#random.below(12));
      this.#disturb();
      this.#checkProgress();
    }
    await this.#finish();
    this.#log.close();
    const testimony = testify(readLogs(this.#logs));
    fs.rmSync(this.#folder, { recursive: true });
    return { ...this.#counts, processes: this.#next, ...testimony };
  }

  #start() {
    const id = this.#next++;
    const { names, kind } = this.#options;
    const args = [this.#directory, this.#logs, id, names, this.#random.below(2 ** 31), kind].map(String);
    const child = fork(path.join(__dirname, 'processes', 'child.js'), args, { execArgv: ['--no-warnings'] });
    child.id = id;
    child.isStopped = false;
    child.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#children.delete(child);
        if (signal !== 'SIGKILL' && code !== 0) this.#log.write(`X ${id} ended with ${code ?? signal}`);
        resolve();
      });
    });
    this.#children.add(child);
  }

  #disturb() {
    // All may have just been killed.
    if (this.#children.size === 0) return;
    const child = this.#random.pick([...this.#children]);
    const chance = this.#random.next();
    if (chance < this.#kind.kill) this.#kill(child);
    else if (chance >= 1 - this.#kind.cut) this.#cut();
    else if (CAN_STOP) this.#stop(child);
  }

  /** It may be stopped at the time. */
  #kill(child) {
    if (child.isDoomed) return;
    child.isDoomed = true;
    // Written before it happens: whoever finds the lock free afterwards writes later.
    this.#log.write(`K ${child.id}`);
    child.kill('SIGKILL');
    this.#counts.kills += 1;
  }

  #stop(child) {
    if (child.isStopped || child.isDoomed) return;
    child.isStopped = true;
    child.kill('SIGSTOP');
    this.#counts.stops += 1;
    setTimeout(() => {
      child.isStopped = false;
      this.#log.write(`R ${child.id} - - - ${Date.now()}`);
      child.kill('SIGCONT');
    }, this.#random.below(this.#kind.longestStopMs));
  }

  /** Cuts a record, to any length: the lock counts as abandoned then. */
  #cut() {
    const records = fs.readdirSync(this.#directory).filter((file) => file.endsWith('.info') && !this.#others.has(file));
    if (records.length === 0) return;
    fs.truncateSync(path.join(this.#directory, this.#random.pick(records)), this.#random.below(80));
    this.#counts.cuts += 1;
  }

  #checkProgress() {
    const now = performance.now();
    if (now - this.#progress.at < PATIENCE_MS) return;
    const size = sizeOfLogs(this.#logs);
    if (size === this.#progress.size) throw new Error(`No process got on for ${PATIENCE_MS} ms`);
    this.#progress = { size, at: now };
  }

  /** All end what they have begun. */
  async #finish() {
    await sleep(this.#kind.longestStopMs);
    for (const child of this.#children) if (child.connected) child.send('finish');
    const ends = Promise.all([...this.#children].map((child) => child.ended));
    const isOver = await Promise.race([ends.then(() => true), sleep(PATIENCE_MS, false, { ref: false })]);
    if (isOver) return;
    for (const child of this.#children) {
      this.#log.write(`X ${child.id} did not finish`);
      child.kill('SIGKILL');
    }
    await ends;
  }
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  const { violations, ...counts } = await new Run(options).run();
  console.log(
    `Node.js ${process.version}, seed ${options.seed}, ${options.processes} processes, ${options.names} names`,
  );
  for (const [what, count] of Object.entries(counts)) console.log(`${what.padEnd(16)} ${count}`);
  for (const violation of violations.slice(0, 10)) console.log(`VIOLATION ${violation}`);
  console.log(violations.length === 0 ? 'Nothing wrong was found.' : `${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}

main();
