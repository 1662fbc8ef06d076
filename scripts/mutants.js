// npm run test:mutants [-- --shard 0/3 | --schedules | NAME ...]: turns on the faults of `src/fault.rs`, one at a time, and checks that a test or a loom
// model of the core notices each. One that survives is a gap in the tests.
//
// Two builds serve all of them, with and without loom: `SABLOCK_FAULT` names the fault that is on. Each is tried first with
// the test that is known to notice it, then with all others; each of these passes without a fault, or that says nothing. The
// model of the protocol has faults of its own (`npm run test:model`).
//
// `--schedules`: only random schedules run (tests/schedules.rs), which know of no fault, and those that they do not find are listed;
// `SABLOCK_SCHEDULES` says how many, for each.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { testPrograms } = require('./cargo-messages.js');
const { endGroup } = require('./end-group.js');
const { SHARD, ofShard } = require('./shard.js');

const root = path.join(__dirname, '..');
// A hang is one of the ways in which a lock fails. Without a fault a test takes seconds, also where much else runs; with
// one it gets ten times what it took without, between these bounds.
const PATIENCE = 60_000;
const LEAST_PATIENCE = 15_000;
const PATIENCE_WITH_SUITES = 300_000;
const LOOM = ['loom', 'loom_primitives'];
const SCHEDULES = 'schedules';

const FAULTS = [
  ...fs.readFileSync(path.join(root, 'src/fault.rs'), 'utf8').matchAll(/^ {4}(\w+): (\w+) "([\w:]+)",$/gm),
].map(([, name, suite, test]) => ({ name, suite, test }));

/** Runs a program; resolves to its output and how it failed: null if it did not. */
function run(program, args, { env = {}, patience } = {}) {
  return new Promise((resolve, reject) => {
    const options = { cwd: root, env: { ...process.env, RUST_BACKTRACE: '0', ...env }, detached: true };
    const child = spawn(program, args, options);
    let output = '';
    let hangs = false;
    const collect = (chunk) => {
      output += chunk;
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const watchdog = patience && setTimeout(() => (hangs = child.kill('SIGKILL')), patience);
    child.on('error', reject);
    // What it has left keeps its output open.
    child.on('exit', () => endGroup(child.pid));
    child.on('close', (code, signal) => {
      clearTimeout(watchdog);
      const failed = /^test (\S+) .*FAILED$/m.exec(output)?.[1] ?? `ends with ${signal ?? code}`;
      const failure = code === 0 ? null : hangs ? 'hangs' : failed;
      resolve({ output, failure });
    });
  });
}

/** Builds the tests with these flags of their own; returns the path of each suite's program. */
async function build(flags, folder, tests, features = []) {
  const { output, failure } = await run(
    'cargo',
    ['test', '--no-default-features', ...features, '--no-run', '--message-format=json-render-diagnostics', ...tests],
    { env: { CARGO_TARGET_DIR: path.join(root, 'target', folder), RUSTFLAGS: flags, CARGO_PROFILE_DEV_DEBUG: '0' } },
  );
  if (failure !== null) throw new Error(`${folder} does not compile:\n${output}`);
  return testPrograms(output);
}

/** Runs a suite, or one test of it, with a fault. Returns how it failed, or null if it passed. */
async function fails(program, suite, test, fault, patience = test === undefined ? PATIENCE_WITH_SUITES : PATIENCE) {
  const args = test === undefined ? [] : ['--exact', test];
  const env = fault === undefined ? {} : { SABLOCK_FAULT: fault };
  const { output, failure } = await run(program, args, { env, patience });
  if (failure === null && test !== undefined && !/^test result: ok\. 1 passed/m.test(output)) {
    throw new Error(`${suite} has no test ${test}`);
  }
  return failure && `${suite}: ${failure}`;
}

/** Throws if one of the tests that faults name is called otherwise by now, also one that another shard takes. */
async function checkNames(programs) {
  for (const [suite, program] of programs) {
    const { output } = await run(program, ['--list']);
    const there = new Set(output.split('\n'));
    const missing = FAULTS.find((fault) => fault.suite === suite && !there.has(`${fault.test}: test`));
    if (missing !== undefined) throw new Error(`${suite} has no test ${missing.test}, which ${missing.name} names`);
  }
}

/** By suite and test: the run of it without a fault, and the time that it took. */
const untouched = new Map();

async function runUntouched(program, suite, test) {
  const startedAt = performance.now();
  const failure = await fails(program, suite, test);
  return { failure, took: performance.now() - startedAt };
}

/** Returns how a suite, or one test of it, which passes without a fault, fails with one; null if it does not. */
async function noticing(program, suite, test, fault) {
  const key = `${suite} ${test}`;
  if (!untouched.has(key)) untouched.set(key, runUntouched(program, suite, test));
  const { failure, took } = await untouched.get(key);
  if (failure !== null) throw new Error(`The code fails without a fault: ${failure}`);
  const patience = test && Math.min(LEAST_PATIENCE + 10 * took, PATIENCE);
  return fails(program, suite, test, fault, patience);
}

/** Which test notices the fault; null if none does. */
async function noticedBy(programs, { name, suite, test }) {
  const program = programs.get(suite);
  if (!program) throw new Error(`${name}: no suite ${suite}`);
  const first = await noticing(program, suite, test, name);
  if (first !== null) return { failure: first, isExpected: true };
  for (const [other, program] of programs) {
    const failure = await noticing(program, other, undefined, name);
    if (failure !== null) return { failure, isExpected: false };
  }
  return null;
}

/** Calls `act` with each item, as many at a time as there are processors. */
async function forEach(items, act) {
  const rest = [...items];
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, worker));
}

/** Which of the faults random schedules notice by themselves. */
async function trySchedules(faults) {
  const programs = await build(
    '--cfg mutant --cfg shuttle',
    'mutants-schedules',
    ['--test', SCHEDULES],
    ['--features', 'audit'],
  );
  const program = programs.get(SCHEDULES);
  if ((await fails(program, SCHEDULES)) !== null) throw new Error('The schedules fail without a fault');
  const missed = [];
  // One after the other: they use all processors by themselves.
  for (const { name } of faults) {
    if ((await fails(program, SCHEDULES, undefined, name)) === null) missed.push(name);
    else console.log(`found     ${name}`);
  }
  console.log(`Not found: ${missed.join(', ')}`);
  console.log(`${faults.length - missed.length} of ${faults.length} were found by random schedules`);
}

async function main() {
  const options = { shard: SHARD, [SCHEDULES]: { type: 'boolean', default: false } };
  const { values, positionals: names } = parseArgs({ allowPositionals: true, options });
  const unknown = names.filter((name) => !FAULTS.some((fault) => fault.name === name));
  if (unknown.length > 0 || FAULTS.length === 0) throw new Error(`No such fault: ${unknown.join(', ')}`);
  const chosen = ofShard(
    FAULTS.filter(({ name }) => names.length === 0 || names.includes(name)),
    values.shard,
  );
  if (values[SCHEDULES]) {
    await trySchedules(chosen);
    return 0;
  }
  // One after the other: cargo uses all processors by itself.
  const programs = new Map([
    ...(await build('--cfg mutant', 'mutants', ['--lib', '--tests'])),
    ...(await build(
      '--cfg mutant --cfg loom',
      'mutants-loom',
      LOOM.flatMap((suite) => ['--test', suite]),
    )),
  ]);
  await checkNames(programs);
  let survivors = 0;
  await forEach(chosen, async (fault) => {
    const noticed = await noticedBy(programs, fault);
    if (noticed === null) survivors += 1;
    const by = noticed && `  (${noticed.failure}${noticed.isExpected ? '' : `; not by ${fault.suite} ${fault.test}`})`;
    console.log(noticed === null ? `SURVIVED  ${fault.name}` : `caught    ${fault.name}${by}`);
  });
  console.log(`${chosen.length - survivors} passed, ${survivors} failed`);
  return survivors > 0 ? 1 : 0;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
