'use strict';
// npm run bench [-- SCENARIO ... options]: see README.md.

const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const contenders = require('./lib/contenders');
const { compare, judgeGoals, problems } = require('./lib/compare');
const machine = require('./lib/machine');
const native = require('./lib/native');
const { chartLibrary, writeReport } = require('./lib/report');
const { runScenario } = require('./lib/rounds');
const { table, goalsTable } = require('./lib/table');

const SCENARIOS = [
  'uncontended',
  'contended',
  'starvation',
  'convoy',
  'handover',
  'pending',
  'futex',
  'many-locks',
  'load',
  'idle',
];

/** As `Patience::ablated` in src/lot/mod.rs names them. */
const ABLATIONS = ['strict', 'offers', 'no-spin'];

const USAGE = `node bench/run.js [SCENARIO ...] [options]

Scenarios: ${SCENARIOS.join(', ')} (default: all)

  --short            a quick pass that checks results, not times
  --rounds N         rounds for each case
  --contender NAME   only this one (may be given more than once)
  --case TEXT        only the cases whose name contains TEXT
  --against DIR      also another build of sablock, in that folder
  --ablation NAME    also sablock without a part of its design: ${ABLATIONS.join(', ')}
  --json FILE        write the raw data
  --report [FILE]    write a page with charts (bench-report.html)
  --from FILE        run nothing: show what --json wrote`;

const OPTIONS = {
  short: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  contender: { type: 'string', multiple: true, default: [] },
  case: { type: 'string' },
  against: { type: 'string', multiple: true, default: [] },
  ablation: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
  report: { type: 'string' },
  from: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
};

/** parseArgs knows no optional values: a bare --report gets its default first. */
function withReportName(args) {
  return args.map((arg, i) => {
    const bare = arg === '--report' && !/\.html?$/.test(args[i + 1] ?? '');
    return bare ? '--report=bench-report.html' : arg;
  });
}

function options(args) {
  const { values, positionals } = parseArgs({ args: withReportName(args), options: OPTIONS, allowPositionals: true });
  for (const name of positionals) {
    if (!SCENARIOS.includes(name))
      throw new Error(`No scenario is called '${name}'. Choose from: ${SCENARIOS.join(', ')}`);
  }
  for (const name of values.ablation) {
    if (!ABLATIONS.includes(name))
      throw new Error(`No ablation is called '${name}'. Choose from: ${ABLATIONS.join(', ')}`);
  }
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
    throw new Error(`--rounds takes a whole number above 0, not '${values.rounds}'`);
  }
  return { ...values, rounds, scenarios: positionals.length ? positionals : SCENARIOS };
}

function field({ contender, against, ablation }) {
  const own = contenders.pick(contender).map((name) => ({ label: name, file: name }));
  const others = against.map((folder) => ({
    label: `sablock@${path.basename(path.resolve(folder))}`,
    file: 'sablock',
    env: { SABLOCK_BENCH_PACKAGE: path.resolve(folder) },
  }));
  const ablated = ablation.map((name) => ({
    label: `sablock ${name}`,
    file: 'sablock',
    env: { SABLOCK_ABLATION: name },
  }));
  return [...own, ...others, ...ablated];
}

async function measure(asked) {
  const run = { machine: machine.describe(), short: asked.short, scenarios: [] };
  console.log(machine.line(run.machine));
  const scenarios = asked.scenarios.map((name) => require(`./scenarios/${name}`));
  if (scenarios.some((scenario) => scenario.native)) native.build();
  for (const scenario of scenarios) {
    const result = await runScenario(scenario, field(asked), {
      short: asked.short,
      rounds: asked.rounds,
      only: asked.case,
      onRow: () => process.stderr.isTTY && process.stderr.write('.'),
    });
    compare(result);
    run.scenarios.push(result);
    show(result);
  }
  return run;
}

function show(result) {
  console.log(table(result));
  for (const [contender, reason] of Object.entries(result.absent)) {
    console.log(`${contender}: not available: ${reason.split('\n')[0]}`);
  }
}

function replay(file) {
  const run = JSON.parse(fs.readFileSync(file, 'utf8'));
  console.log(machine.line(run.machine));
  run.scenarios.forEach((result) => {
    compare(result);
    show(result);
  });
  return run;
}

async function main() {
  const asked = options(process.argv.slice(2));
  if (asked.help) return console.log(USAGE);
  if (asked.report) chartLibrary();
  const run = asked.from ? replay(asked.from) : await measure(asked);
  const verdicts = run.short ? [] : run.scenarios.flatMap(judgeGoals);
  if (verdicts.length) console.log(goalsTable(verdicts));
  if (asked.json) fs.writeFileSync(asked.json, JSON.stringify(run, null, 1));
  if (asked.report) writeReport(run, asked.report);
  const found = run.scenarios.flatMap(problems);
  for (const problem of found) console.error(`PROBLEM: ${problem}`);
  process.exitCode = found.length ? 1 : 0;
}

main().catch((error) => {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
});
