'use strict';
// Runs one scenario: for each case, round after round, every contender in turn, each in a process of its own, and makes a
// row of the medians for each. A contender that is wrong, ends or takes too long is out for that case, and its row says why.

const { fork } = require('node:child_process');
const path = require('node:path');
const { byName, takesPart } = require('./contenders');
const { median, max, Samples } = require('./stats');

const LIMITS = null;

/** One contender's process, seen from here: starts it, asks it for rounds, and ends it when it takes too long. */
class Child {
  #process;
  #waiting = null;
  #log = [];

  /**
   * @param {string | null} name the contender; null: the limits
   * @param {{ load?: boolean, env?: object, nodeFlags?: string[] }} options load: false leaves the contender's package unloaded
   */
  constructor(name, { load = true, env = {}, nodeFlags = [] } = {}) {
    const flags = (name && byName(name).nodeFlags) ?? [];
    this.#process = fork(path.join(__dirname, '..', 'programs', 'host.js'), {
      execArgv: ['--expose-gc', '--no-warnings', ...flags, ...nodeFlags],
      env: { ...process.env, ...env },
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#process.stderr.on('data', (chunk) => this.#log.push(chunk));
    this.#process.on('message', (message) => this.#settle(message));
    this.#process.on('exit', (code, signal) => {
      const said = Buffer.concat(this.#log).toString().trim().split('\n').slice(0, 8).join('\n');
      this.#settle({ error: `its process ended (${signal ?? code})${said && `: ${said}`}` });
    });
    this.ready = this.#ask({ start: name, load }, 30_000);
  }

  get ended() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** One round: `{ result }` (null: does not apply), `{ error }`, `{ notBuilt }`, or `{ tookOver: ms }`. */
  round(scenario, limit, params, timeLimit) {
    return this.#ask({ scenario, limit, params }, timeLimit);
  }

  end() {
    this.#process.kill('SIGKILL');
  }

  #ask(request, timeLimit) {
    if (this.ended) return Promise.resolve({ error: 'its process has ended' });
    return new Promise((resolve) => {
      const watchdog = setTimeout(() => {
        this.#settle({ tookOver: timeLimit });
        this.end();
      }, timeLimit);
      this.#waiting = { resolve, watchdog };
      this.#process.send(request, (error) => error && this.#settle({ error: error.message }));
    });
  }

  #settle(message) {
    if (this.#waiting === null) return;
    const { resolve, watchdog } = this.#waiting;
    this.#waiting = null;
    clearTimeout(watchdog);
    resolve(message);
  }
}

class Row {
  rounds = [];
  #samples = new Samples();
  #known;

  constructor(caseName, { label, file, limit }) {
    this.case = caseName;
    this.contender = label;
    this.limit = limit !== undefined;
    this.#known = file ? byName(file).knownWrong : undefined;
  }

  /** True if this contender takes part in further rounds of the case. */
  take(answer, metrics) {
    if (answer.tookOver) this.failure = { kind: 'slow', text: `> ${answer.tookOver / 1000} s` };
    else if (answer.error) this.failure = { kind: 'error', text: answer.error, stack: answer.stack };
    else if (answer.result?.wrong) this.failure = { kind: 'wrong', text: answer.result.wrong, known: this.#known };
    else if (answer.notBuilt) this.failure = { kind: 'not built', text: answer.notBuilt };
    else if (answer.result === null) this.absent = true;
    else {
      const { samples, ...values } = answer.result;
      if (samples) this.#add(samples, values, metrics);
      this.rounds.push(values);
    }
    return !this.failure && !this.absent;
  }

  /** Percentiles are of all rounds together; those of each round show how much they vary. */
  #add(samples, values, metrics) {
    this.#samples.add(samples);
    const own = new Samples().add(samples);
    for (const { key, percentile, nanos = 1e6 } of metrics) {
      if (percentile !== undefined) values[key] = own.at(percentile) / nanos;
    }
  }

  finish(metrics) {
    this.values = {};
    if (this.failure || this.absent) return this;
    for (const { key, over, percentile, nanos = 1e6 } of metrics) {
      if (percentile !== undefined) this.values[key] = this.#samples.at(percentile) / nanos;
      else this.values[key] = (over === 'max' ? max : median)(this.rounds.map((round) => round[key]));
    }
    if (this.#samples.count) this.curve = this.#samples.curve();
    return this;
  }
}

/** The processes of a scenario's run, one for each contender and one for all limits; those that died start again. */
class Children {
  #children = new Map();
  #load;
  constructor(load) {
    this.#load = load;
  }

  async get(runner, { fresh = false, nodeFlags = [] } = {}) {
    let child = this.#children.get(runner);
    if (child && (fresh || child.ended)) {
      child.end();
      child = undefined;
    }
    if (!child) {
      child = new Child(runner.file, { load: this.#load, env: runner.env, nodeFlags });
      this.#children.set(runner, child);
    }
    const started = await child.ready;
    return { child, failure: started.error ?? (started.tookOver && 'its process did not start') };
  }

  end() {
    for (const child of this.#children.values()) child.end();
  }
}

/**
 * @param {object} scenario a module of scenarios/
 * @param {{ label: string, file: string, env?: object }[]} contenders
 * @param {{ short: boolean, rounds?: number, leastRounds?: number, only?: (name: string) => boolean, onRow(rows): void }} options
 */
async function runScenario(scenario, contenders, { short, rounds, leastRounds = 1, only, onRow }) {
  const absent = {};
  const world = await scenario.begin?.();
  const children = new Children(scenario.loads !== false);
  const limits = (scenario.limits ?? []).map(({ name }, i) => ({ label: name, file: LIMITS, limit: i }));
  const present = [];
  for (const runner of contenders) {
    if ((scenario.threads && byName(runner.file).oneThread) || !takesPart(runner.file, scenario)) continue;
    const { failure } = await children.get(runner);
    if (failure) absent[runner.label] = failure;
    else present.push(runner);
  }
  const rows = [];
  const tooSlow = new Set();
  const cases = scenario.cases({ short, world }).filter(({ name }) => !only || only(name));
  for (const { name, params, family, fresh, nodeFlags, goals } of cases) {
    const field = [...present, ...limits].map((runner) => {
      const row = new Row(name, runner);
      const runs = !tooSlow.has(`${family} ${runner.label}`);
      if (!runs) row.failure = { kind: 'slow', text: 'not tried, after a smaller one' };
      return { runner, row, runs };
    });
    const count = rounds ?? (short ? 1 : Math.max(leastRounds, scenario.rounds ?? 5));
    for (let round = 0; round < count; round++) {
      // There and back again, so that nobody always runs after the same one.
      for (const entry of round % 2 === 0 ? field : field.toReversed()) {
        if (!entry.runs) continue;
        const { child, failure } = await children.get(entry.runner, { fresh, nodeFlags });
        const timeLimit = short ? 10_000 : (scenario.timeLimit ?? 60_000);
        const answer = failure
          ? { error: failure }
          : await child.round(scenario.name, entry.runner.limit, params, timeLimit);
        entry.runs = entry.row.take(answer, scenario.metrics);
      }
    }
    for (const { row } of field) {
      if (family && row.failure?.kind === 'slow') tooSlow.add(`${family} ${row.contender}`);
      if (row.absent) continue;
      rows.push(row.finish(scenario.metrics));
      if (row.contender === 'sablock') row.goals = goals;
    }
    onRow?.(rows.filter((row) => row.case === name));
  }
  children.end();
  await world?.end();
  Object.assign(absent, world?.absent);
  const { name, title, unit, metrics, limitIs } = scenario;
  return { name, title, unit, metrics, limitIs, absent, rows };
}

module.exports = { runScenario };
