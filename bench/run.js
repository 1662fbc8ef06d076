'use strict';
// npm run bench [-- SCENARIO ... options]: see README.md.

const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { buildAblation, buildNative, buildPacked } = require('./lib/builds');
const { LEAST_ROUNDS, against, compare, judgeGoals, problems } = require('./lib/compare');
const contenders = require('./lib/contenders');
const { isShown, shownScenarios, writeFigures } = require('./lib/figures');
const machine = require('./lib/machine');
const { chartLibrary, writeReport } = require('./lib/report');
const { runScenario } = require('./lib/runner');
const { againstTable, goalsTable, table } = require('./lib/table');

const SCENARIOS = [
  'uncontended',
  'doctor',
  'contended',
  'starvation',
  'long-turns',
  'convoy',
  'handover',
  'pending',
  'futex',
  'many-locks',
  'rwlock',
  'readers',
  'rw-starvation',
  'semaphore',
  'barrier',
  'once',
  'table',
  'lock-all',
  'named',
  'machine',
  'stores',
  'load',
  'idle',
];

/** As `Patience::ablated` in the core names them. */
const ABLATIONS = ['strict', 'offers', 'no-spin'];

const USAGE = `node bench/run.js [SCENARIO ...] [options]

Scenarios: ${SCENARIOS.join(', ')} (default: all)

  --short            a quick pass that checks results, not times
  --rounds N         rounds for each case
  --contender NAME   only this one (may be given more than once)
  --case TEXT        only the cases whose name contains TEXT
  --against DIR      beside another build of sablock, in that folder: a table of ratios for each scenario
  --ablation NAME    also sablock without a part of its design: ${ABLATIONS.join(', ')} (builds it into target/ablation)
  --json FILE        write the raw data
  --report [FILE]    write a page with charts (bench-report.html)
  --figures          write the README's table and picture (docs/bench.md, docs/bench.svg); runs the cases that they show, if
                     no scenario and no case is named. With 'stores': the picture of the guide on locks among machines
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
  figures: { type: 'boolean', default: false },
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
  const onlyFigures = values.figures && positionals.length === 0 && values.case === undefined;
  const all = onlyFigures ? shownScenarios : SCENARIOS;
  return { ...values, rounds, onlyFigures, scenarios: positionals.length ? positionals : all };
}

/** Another build of sablock, which must be there before anything is measured. */
function otherBuild(folder) {
  const root = path.resolve(folder);
  const manifest = path.join(root, 'package.json');
  if (!fs.existsSync(manifest) || require(manifest).name !== 'sablock')
    throw new Error(`--against ${folder}: there is no sablock in ${root}`);
  if (!fs.readdirSync(root).some((file) => /^sablock\..*\.node$/.test(file)))
    throw new Error(`--against ${folder}: it is not built; run npm ci in ${root}`);
  const label = `sablock@${path.basename(root)}`;
  return { label, file: 'sablock', env: { SABLOCK_BENCH_PACKAGE: root }, commit: machine.commitOf(root) };
}

/** The other builds stand beside this one, so that they take turns. */
function field({ contender, ablation }, others) {
  const own = contenders.pick(contender).map((name) => ({ label: name, file: name }));
  const folder = ablation.length ? buildAblation() : undefined;
  const ablated = ablation.map((name) => ({
    label: `sablock ${name}`,
    file: 'sablock',
    env: { SABLOCK_BENCH_PACKAGE: folder, SABLOCK_ABLATION: name },
  }));
  const isOurs = ({ label }) => label === 'sablock';
  return [...own.filter(isOurs), ...others, ...ablated, ...own.filter((runner) => !isOurs(runner))];
}

/** Which cases of a scenario are asked for; undefined: all. */
function casesOf(asked, { name: scenario }) {
  if (asked.case !== undefined) return (name) => name.includes(asked.case);
  return asked.onlyFigures ? (name) => isShown(scenario, name) : undefined;
}

async function measure(asked) {
  const others = asked.against.map(otherBuild);
  const runners = field(asked, others);
  const run = {
    machine: machine.describe(),
    short: asked.short,
    against: others.map(({ label, commit }) => ({ label, commit })),
    scenarios: [],
  };
  console.log(machine.line(run.machine));
  for (const { label, commit } of run.against) console.log(`${label} is ${commit || 'no git checkout'}`);
  const scenarios = asked.scenarios.map((name) => require(`./scenarios/${name}`));
  if (scenarios.some((scenario) => scenario.native)) buildNative();
  if (scenarios.some((scenario) => scenario.packed)) {
    for (const runner of runners.filter(({ file }) => file === 'sablock')) {
      const packed = buildPacked(runner.env?.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..'));
      runner.env = { ...runner.env, SABLOCK_BENCH_PACKED: packed };
    }
  }
  for (const scenario of scenarios) {
    const result = await runScenario(scenario, runners, {
      short: asked.short,
      rounds: asked.rounds,
      leastRounds: others.length ? LEAST_ROUNDS : 1,
      only: casesOf(asked, scenario),
      onRow: () => process.stderr.isTTY && process.stderr.write('.'),
    });
    run.scenarios.push(result);
    show(result, run);
  }
  return run;
}

function show(result, run) {
  compare(result);
  console.log(table(result));
  for (const [contender, reason] of Object.entries(result.absent)) {
    console.log(`${contender}: not available: ${reason.split('\n')[0]}`);
  }
  for (const { label } of run.against ?? []) {
    const compared = against(result, label);
    if (compared.length) console.log(againstTable(result, label, compared));
  }
}

function replay(file) {
  const run = JSON.parse(fs.readFileSync(file, 'utf8'));
  console.log(machine.line(run.machine));
  for (const result of run.scenarios) show(result, run);
  return run;
}

/** All that is worse than in another build, once more at the end. */
function showWorse(run) {
  for (const { label } of run.against ?? []) {
    const compared = run.scenarios.flatMap((result) => against(result, label).map((row) => ({ ...row, result })));
    const worse = compared.filter(({ verdict }) => verdict === 'worse');
    // Were the builds the same, each round would fall on either side as a coin does.
    const judged = compared.filter(({ verdict }) => verdict !== 'few rounds');
    const byChance = judged.reduce((sum, { rounds }) => sum + 2 ** -rounds, 0);
    console.log(
      `\nOf ${judged.length} figures, ${worse.length} are worse than those of ${label}; ${byChance.toFixed(1)} at most would be by chance`,
    );
    for (const { result, case: name, metric, ratio, low, high } of worse) {
      const ratios = [ratio, low, high].map((value) => value.toFixed(2));
      console.log(`  ${result.name}, ${name}: ${metric} x ${ratios[0]} (${ratios[1]} to ${ratios[2]})`);
    }
  }
}

async function main() {
  const asked = options(process.argv.slice(2));
  if (asked.help) return console.log(USAGE);
  if (asked.report) chartLibrary();
  const run = asked.from ? replay(asked.from) : await measure(asked);
  showWorse(run);
  const verdicts = run.short ? [] : run.scenarios.flatMap(judgeGoals);
  if (verdicts.length) console.log(goalsTable(verdicts));
  if (asked.json) fs.writeFileSync(asked.json, JSON.stringify(run, null, 1));
  if (asked.report) writeReport(run, asked.report);
  if (asked.figures) console.log(`Wrote ${writeFigures(run).join(' and ')}`);
  const found = run.scenarios.flatMap(problems);
  for (const problem of found) console.error(`PROBLEM: ${problem}`);
  process.exitCode = found.length ? 1 : 0;
}

main().catch((error) => {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
});
