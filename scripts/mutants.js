// npm run test:mutants [-- NAME ...|--check]: puts known faults into the Rust core, one at a time, in a copy of the sources,
// and checks that a loom model or a test catches each. A mutant that survives is a gap in the tests.
//
// The model of the protocol has faults of its own (`npm run test:model`).

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const MUTANTS = require('../tests/mutants.json');
const root = path.join(__dirname, '..');
// A hang is one of the ways in which a lock fails. Without a fault, a suite takes a few seconds.
const PATIENCE = 240_000;

/** As an argument: only checks that each fault can still be put into the code. */
const CHECK = '--check';

const SUITES = [
  { name: 'transitions', args: ['--test', 'transitions'], flags: '' },
  { name: 'futex', args: ['--test', 'futex'], flags: '' },
  { name: 'lingering', args: ['--test', 'lingering'], flags: '' },
  { name: 'tally', args: ['--test', 'tally'], flags: '' },
  { name: 'threads', args: ['--test', 'threads'], flags: '' },
  { name: 'loom', args: ['--test', 'loom'], flags: '--cfg loom' },
];

const names = process.argv.slice(2).filter((name) => name !== CHECK);
const unknown = names.filter((name) => !MUTANTS.some((mutant) => mutant.name === name));
if (unknown.length > 0) {
  console.error(`No such mutant: ${unknown.join(', ')}`);
  process.exit(1);
}
const isStale = ({ file, from }) => fs.readFileSync(path.join(root, file), 'utf8').split(from).length !== 2;
const stale = MUTANTS.filter(isStale);
for (const { name, file, from } of stale) console.error(`${name}: ${file} does not contain this once:\n${from}`);
if (stale.length > 0) process.exit(1);
if (process.argv.includes(CHECK)) process.exit();

const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-mutants-'));
for (const part of ['Cargo.toml', 'Cargo.lock', 'build.rs', 'src', 'tests', 'model', 'bench/core', 'bench/native']) {
  fs.cpSync(path.join(root, part), path.join(copy, part), { recursive: true });
}

/** Runs a suite on the copy. Returns how it failed, or null if it passed. */
function run({ name, args, flags }) {
  const target = path.join(root, 'target', flags === '' ? 'mutants' : 'loom');
  const result = spawnSync('cargo', ['test', '--quiet', '--no-default-features', ...args], {
    cwd: copy,
    encoding: 'utf8',
    timeout: PATIENCE,
    killSignal: 'SIGKILL',
    env: { ...process.env, CARGO_TARGET_DIR: target, RUSTFLAGS: flags, RUST_BACKTRACE: '0' },
  });
  const output = `${result.stdout}${result.stderr}`;
  if (/^error(\[E\d+\])?: (?!test failed)/m.test(output) && !output.includes('panicked')) {
    throw new Error(`${name} does not compile:\n${output}`);
  }
  if (result.error?.code === 'ETIMEDOUT') return `${name}: hangs`;
  if (result.status === 0) return null;
  const failed = output.match(/^ {4}(\w+)$/m) ?? output.match(/thread '(\w+)'.*panicked/);
  return `${name}: ${failed?.[1] ?? `ends with ${result.signal ?? result.status}`}`;
}

/** Runs the suites until one fails, the expected one first. */
function caughtBy(expected) {
  const suites = SUITES.toSorted?.((a, b) => (b.name === expected) - (a.name === expected)) ?? SUITES;
  for (const suite of suites) {
    const failure = run(suite);
    if (failure !== null) return failure;
  }
  return null;
}

let passed = 0;
let failed = 0;
try {
  const flaw = caughtBy();
  if (flaw !== null) throw new Error(`The code fails without a fault: ${flaw}`);
  for (const { name, file, from, to, suite } of MUTANTS) {
    if (names.length > 0 && !names.includes(name)) continue;
    const target = path.join(copy, file);
    const original = fs.readFileSync(target, 'utf8');
    fs.writeFileSync(
      target,
      original.replace(from, () => to),
    );
    const failure = caughtBy(suite);
    fs.writeFileSync(target, original);
    console.log(`${failure === null ? 'SURVIVED' : 'caught  '}  ${name}${failure === null ? '' : `  (${failure})`}`);
    if (failure === null) failed += 1;
    else passed += 1;
  }
} finally {
  fs.rmSync(copy, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
