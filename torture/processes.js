// Processes lock names for themselves and together, in every way there is, and are killed, stopped and continued at random;
// their threads are terminated, and the records of the locks cut. Each holder writes into one log when it is in and before it
// unlocks: that log is the witness (processes/witness.js).
//
//     npm run torture:processes -- --seconds 60 --seed 7 [--processes 8] [--names 3]

const { fork } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { createRandom } = require('./processes/random.js');
const { testify } = require('./processes/witness.js');

const DEFAULTS = { seconds: 20, seed: 1, processes: 8, names: 3 };
/** Nobody is stopped for longer. */
const LONGEST_STOP_MS = 60;
/** Without a line in the log for so long, or after being told to finish, somebody waits for ever. */
const PATIENCE_MS = 30_000;

function readOptions(args) {
  const options = {};
  for (const name in DEFAULTS) options[name] = { type: 'string', default: String(DEFAULTS[name]) };
  const { values } = parseArgs({ args, options });
  for (const name in DEFAULTS) {
    const value = Number(values[name]);
    if (!(value >= 1)) throw new RangeError(`--${name} must be a number, 1 or more; got ${values[name]}`);
    values[name] = value;
  }
  return values;
}

class Run {
  #options;
  #directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-torture-'));
  #log = path.join(this.#directory, 'log');
  #file = fs.openSync(this.#log, 'a');
  #random;
  #children = new Set();
  #next = 0;
  #counts = { kills: 0, stops: 0, cuts: 0 };

  constructor(options) {
    this.#options = options;
    this.#random = createRandom(options.seed);
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
    fs.closeSync(this.#file);
    const testimony = testify(fs.readFileSync(this.#log, 'utf8'));
    fs.rmSync(this.#directory, { recursive: true });
    return { ...this.#counts, processes: this.#next, ...testimony };
  }

  #start() {
    const id = this.#next++;
    const args = [this.#directory, this.#log, id, this.#options.names, this.#random.below(2 ** 31)].map(String);
    const child = fork(path.join(__dirname, 'processes', 'child.js'), args, { execArgv: ['--no-warnings'] });
    child.id = id;
    child.isStopped = false;
    child.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#children.delete(child);
        if (signal !== 'SIGKILL' && code !== 0) this.#write(`X ${id} ended with ${code ?? signal}`);
        resolve();
      });
    });
    this.#children.add(child);
  }

  #write(line) {
    fs.writeSync(this.#file, `${line}\n`);
  }

  #disturb() {
    const child = this.#random.pick([...this.#children]);
    const chance = this.#random.next();
    if (chance < 0.12) this.#kill(child);
    else if (chance < 0.85) this.#stop(child);
    else this.#cut();
  }

  /** It may be stopped at the time. */
  #kill(child) {
    if (child.isDoomed) return;
    child.isDoomed = true;
    // Written before it happens: whoever finds the lock free afterwards writes later.
    this.#write(`K ${child.id}`);
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
      child.kill('SIGCONT');
    }, this.#random.below(LONGEST_STOP_MS));
  }

  /** Cuts a record, to any length: the lock counts as abandoned then. */
  #cut() {
    const records = fs.readdirSync(this.#directory).filter((file) => file.endsWith('.info'));
    if (records.length === 0) return;
    fs.truncateSync(path.join(this.#directory, this.#random.pick(records)), this.#random.below(80));
    this.#counts.cuts += 1;
  }

  #checkProgress() {
    const silence = Date.now() - fs.fstatSync(this.#file).mtimeMs;
    if (silence > PATIENCE_MS) throw new Error(`No process got on for ${Math.round(silence)} ms`);
  }

  /** All end what they have begun. */
  async #finish() {
    await sleep(LONGEST_STOP_MS);
    for (const child of this.#children) if (child.connected) child.send('finish');
    const ends = Promise.all([...this.#children].map((child) => child.ended));
    const isOver = await Promise.race([ends.then(() => true), sleep(PATIENCE_MS, false, { ref: false })]);
    if (isOver) return;
    for (const child of this.#children) {
      this.#write(`X ${child.id} did not finish`);
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
