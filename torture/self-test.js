// Shows that the torture run can fail: each fault that is put in on purpose is found, and without one nothing is.
//
//   node torture/self-test.js [name of a sabotage ...]

const { spawnSync } = require('node:child_process');
const { join } = require('node:path');
const { SABOTAGES } = require('./sabotage.js');

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

function run(args) {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [join(__dirname, 'run.js'), ...RUN, ...args], {
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 2 ** 26,
  });
  const kinds = [...stdout.matchAll(/^VIOLATION \((\w+)\)|^ {2}also \((\w+)\)/gm)].map(
    ([, first, other]) => first ?? other,
  );
  return { status, signal, kinds, output: stdout + stderr };
}

function main() {
  const names = process.argv.slice(2);
  const results = [];
  if (names.length === 0) {
    const { status, kinds, output } = run(['--seconds', '5']);
    results.push({ name: 'no fault', isRight: status === 0, seen: kinds.join(', ') || 'nothing found', output });
    show(results.at(-1));
  }
  for (const name of names.length > 0 ? names : Object.keys(SABOTAGES)) {
    const { status, kinds, output } = run(['--sabotage', name, ...(SABOTAGES[name].args ?? [])]);
    const isRight = status === 1 && kinds.some((kind) => SABOTAGES[name].found.includes(kind));
    results.push({ name, isRight, seen: [...new Set(kinds)].join(', ') || 'nothing found', output });
    show(results.at(-1));
  }
  const failed = results.filter(({ isRight }) => !isRight);
  for (const { name, output } of failed) console.log(`\n${name}:\n${output}`);
  console.log(`${results.length - failed.length} passed, ${failed.length} failed`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

main();
