// npm run test:machine-mutants -- [ROOM ...] [--shard 0/20] [--in-diff main] [--minutes 10]: cargo-mutants changes the Rust core,
// one place at a time, and runs the core's tests with each change. A change that no test notices fails the run: answer it with
// a test, or in `.cargo/mutants.toml` with the reason why nobody can see it.
//
// Rooms are the folders of `src`; without names, `primitives`. `--in-diff` takes only what has changed since that commit, in all
// rooms of the core. Needs cargo-mutants: `cargo install --locked cargo-mutants`.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');

const root = path.join(__dirname, '..');
const ROOMS = ['primitives', 'engine', 'clients', 'files', 'agents', 'desk'];
/** The tests of a room that few others use: nothing else is built. Of the other rooms all tests run. */
const TESTS = {
  clients: ['lib', 'conditions', 'futex', 'lock_all', 'names'],
  files: ['lib', 'files'],
  desk: ['lib'],
};
const OUTPUT = path.join(root, 'target', 'machine-mutants');
/** The exit codes of cargo-mutants when a change was missed, and when one timed out: a hang is noticed. */
const [FOUND, MISSED, TIMED_OUT] = [0, 2, 3];

function run(program, args, options) {
  const result = spawnSync(program, args, { cwd: root, stdio: 'inherit', ...options });
  if (result.error?.code === 'ENOENT') throw new Error('No cargo-mutants: cargo install --locked cargo-mutants');
  return result;
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { shard: { type: 'string' }, 'in-diff': { type: 'string' }, minutes: { type: 'string' } },
  });
  const unknown = positionals.find((room) => !ROOMS.includes(room));
  if (unknown !== undefined) throw new Error(`No room of the core: ${unknown}; ${ROOMS.join(', ')}`);
  const since = values['in-diff'];
  const rooms = positionals.length > 0 ? positionals : since === undefined ? ['primitives'] : ROOMS;
  fs.mkdirSync(OUTPUT, { recursive: true });
  const args = [
    'mutants',
    '--output',
    OUTPUT,
    '--no-shuffle',
    ...rooms.flatMap((room) => ['--file', `src/${room}/**`]),
  ];
  if (values.shard !== undefined) args.push('--shard', values.shard);
  if (since !== undefined) {
    const diff = path.join(OUTPUT, 'changes.diff');
    const { stdout, status } = run('git', ['diff', `${since}...HEAD`, '--', 'src'], { stdio: 'pipe' });
    if (status !== 0) throw new Error(`git knows no ${since}`);
    if (stdout.length === 0) {
      console.log(`The core has not changed since ${since}`);
      return;
    }
    fs.writeFileSync(diff, stdout);
    args.push('--in-diff', diff);
  }
  if (rooms.every((room) => TESTS[room] !== undefined)) {
    const tests = new Set(rooms.flatMap((room) => TESTS[room]));
    args.push('--', ...[...tests].flatMap((test) => (test === 'lib' ? ['--lib'] : ['--test', test])));
  }
  const timeout = values.minutes === undefined ? undefined : Number(values.minutes) * 60_000;
  const { status, error } = run('cargo', args, { timeout, killSignal: 'SIGINT' });
  const missed = path.join(OUTPUT, 'mutants.out', 'missed.txt');
  const survivors = fs.existsSync(missed) ? fs.readFileSync(missed, 'utf8').split('\n').filter(Boolean) : [];
  for (const survivor of survivors) console.log(`SURVIVED  ${survivor}`);
  if (error?.code === 'ETIMEDOUT')
    console.log(`${values.minutes} minutes are over; what was not tried is for another run`);
  const isDone = [FOUND, MISSED, TIMED_OUT].includes(status) || error?.code === 'ETIMEDOUT';
  if (!isDone) throw new Error(`cargo mutants ended with ${status}`);
  console.log(`${survivors.length} failed`);
  process.exitCode = survivors.length > 0 ? 1 : 0;
}

main();
