'use strict';
// Runs one scenario: for each case, round after round, every contender in turn (A B C A B C), and makes a row of the
// medians for each. A contender that is wrong, ends or takes too long is out for that case, and its row says why.

const { Child } = require('./child');
const { byName } = require('./contenders');
const { median, max, Samples } = require('./stats');

const LIMITS = null;

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
  take(answer) {
    if (answer.tookOver) this.failure = { kind: 'slow', text: `> ${answer.tookOver / 1000} s` };
    else if (answer.error) this.failure = { kind: 'error', text: answer.error, stack: answer.stack };
    else if (answer.result?.wrong) this.failure = { kind: 'wrong', text: answer.result.wrong, known: this.#known };
    else if (answer.notBuilt) this.failure = { kind: 'not built', text: answer.notBuilt };
    else if (answer.result === null) this.absent = true;
    else {
      const { samples, ...values } = answer.result;
      if (samples) this.#samples.add(samples);
      this.rounds.push(values);
    }
    return !this.failure && !this.absent;
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
 * @param {{ short: boolean, rounds?: number, only?: string, onRow(row): void }} options
 */
async function runScenario(scenario, contenders, { short, rounds, only, onRow }) {
  const absent = {};
  const children = new Children(scenario.loads !== false);
  const limits = (scenario.limits ?? []).map(({ name }, i) => ({ label: name, file: LIMITS, limit: i }));
  const present = [];
  for (const runner of contenders) {
    if (scenario.threads && byName(runner.file).oneThread) continue;
    const { failure } = await children.get(runner);
    if (failure) absent[runner.label] = failure;
    else present.push(runner);
  }
  const rows = [];
  const tooSlow = new Set();
  const cases = scenario.cases({ short }).filter(({ name }) => !only || name.includes(only));
  for (const { name, params, family, fresh, nodeFlags, goals } of cases) {
    const field = [...present, ...limits].map((runner) => {
      const row = new Row(name, runner);
      const runs = !tooSlow.has(`${family} ${runner.label}`);
      if (!runs) row.failure = { kind: 'slow', text: 'not tried, after a smaller one' };
      return { runner, row, runs };
    });
    const count = rounds ?? (short ? 1 : (scenario.rounds ?? 5));
    for (let round = 0; round < count; round++) {
      for (const entry of field) {
        if (!entry.runs) continue;
        const { child, failure } = await children.get(entry.runner, { fresh, nodeFlags });
        const timeLimit = short ? 10_000 : (scenario.timeLimit ?? 60_000);
        entry.runs = entry.row.take(
          failure ? { error: failure } : await child.round(scenario.name, entry.runner.limit, params, timeLimit),
        );
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
  const { name, title, metrics } = scenario;
  return { name, title, metrics, absent, rows };
}

module.exports = { runScenario };
