// Shows that the torture run and the storm can fail: each fault that is put in on purpose is found, and without one nothing is.
//
//   node tests/torture/self-test.js [name of a sabotage ...]

const { spawnSync } = require('node:child_process');
const { join } = require('node:path');
const { SABOTAGES } = require('./sabotage.js');
const { SABOTAGES: STORM_SABOTAGES } = require('./storm/sabotage.js');

const RUN = [
  '--seed',
  '5',
  '--seconds',
  '30',
  '--patience',
  '3000',
  '--slack',
  '1500',
  '--quiet',
  '--after-throw',
  '0',
];

function show({ name, isRight, seen }) {
  console.log(`${isRight ? 'as due ' : 'WRONG  '} ${name.padEnd(20)} ${seen}`);
}

function start(program, args) {
  return spawnSync(process.execPath, [join(__dirname, program), ...args], {
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 2 ** 26,
  });
}

function run(args) {
  const { status, stdout, stderr } = start('run.js', [...RUN, ...args]);
  const kinds = [...stdout.matchAll(/^VIOLATION \((\w+)\)|^ {2}also \((\w+)\)/gm)].map(
    ([, first, other]) => first ?? other,
  );
  return { status, kinds, output: stdout + stderr };
}

function withoutFault() {
  const { status, kinds, output } = run(['--seconds', '5']);
  return { isRight: status === 0, seen: kinds.join(', ') || 'nothing found', output };
}

/** A fault that another check finds first, or nobody in time, is tried with another seed. */
function withFault(name, seeds = ['5', '6', '7']) {
  const [seed, ...rest] = seeds;
  const { status, kinds, output } = run(['--seed', seed, '--sabotage', name, ...(SABOTAGES[name].args ?? [])]);
  const isRight = status === 1 && kinds.some((kind) => SABOTAGES[name].found.includes(kind));
  if (!isRight && rest.length > 0) return withFault(name, rest);
  return { isRight, seen: [...new Set(kinds)].join(', ') || 'nothing found', output };
}

/** `kind` and `found` are left out where there is no fault. */
function storm(name, { kind, found } = {}) {
  const args = ['--seed', '5', '--workers', '1000'];
  if (found !== undefined) args.push('--sabotage', name, '--kinds', kind);
  const { status, stdout, stderr } = start('storm.js', args);
  const seen = /^(?:Error: )?Seed .*/m.exec(stderr)?.[0] ?? 'nothing found';
  const isRight = found === undefined ? status === 0 : status === 1 && found.test(seen);
  return { isRight, seen, output: stdout + stderr };
}

function main() {
  const tries = {
    'no fault': withoutFault,
    ...Object.fromEntries(Object.keys(SABOTAGES).map((name) => [name, withFault])),
    'storm without fault': storm,
    ...Object.fromEntries(Object.keys(STORM_SABOTAGES).map((name) => [name, () => storm(name, STORM_SABOTAGES[name])])),
  };
  const chosen = process.argv.slice(2);
  const results = [];
  for (const name of chosen.length > 0 ? chosen : Object.keys(tries)) {
    results.push({ name, ...tries[name](name) });
    show(results.at(-1));
  }
  const failed = results.filter(({ isRight }) => !isRight);
  for (const { name, output } of failed) console.log(`\n${name}:\n${output}`);
  console.log(`${results.length - failed.length} passed, ${failed.length} failed`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

main();
