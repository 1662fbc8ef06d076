// npm run test:seam-mutants [-- --shard 0/20 --minutes 10]: cargo-mutants lists changes of `src/node`, one place each; each is built into
// the addon of a copy of the last commit, and the tests of the seam (`__test__/binding`) run with it; if none of them notices, those
// of the folders behind it. One that nobody notices fails the run: answer it with a test, or in `.cargo/mutants.toml` with the
// reason why nobody can see it.
//
// The doctor's part is left out: its tests take minutes. Needs cargo-mutants: `cargo install --locked cargo-mutants`.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');
const { NAPI } = require('./variant.js');

const root = path.join(__dirname, '..');
const copy = path.join(root, 'target', 'seam-mutants');
const FILES = ['--file', 'src/node/**', '--exclude', 'src/node/doctor.rs'];
/** Folders of `__test__`: of the seam, and of what stands on it. A hang is noticed too, by these times, in milliseconds. */
const SEAM = { folders: ['binding'], patience: 120_000 };
const BEHIND = { folders: ['condition', 'ends', 'loading', 'mutex', 'named'], patience: 600_000 };

function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.error?.code === 'ENOENT') throw new Error(`No ${program}`);
  return result;
}

/** Returns what it has printed. */
function done(program, args, options) {
  const { status, stdout, stderr } = run(program, args, options);
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ended with ${status}\n${stderr}`);
  return stdout;
}

function copyPackage() {
  fs.rmSync(path.join(copy, 'package'), { recursive: true, force: true });
  fs.mkdirSync(path.join(copy, 'package'), { recursive: true });
  const archive = path.join(copy, 'package.tar');
  done('git', ['archive', '--output', archive, 'HEAD']);
  done('tar', ['-xf', archive, '-C', path.join(copy, 'package')]);
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'package', 'node_modules'));
  return path.join(copy, 'package');
}

/** Builds the addon; returns whether it compiles. */
function build(folder) {
  const args = [NAPI, 'build', '--platform', '--profile', 'mutants', '--no-js', '--dts', 'target/binding.d.ts'];
  return run(process.execPath, [...args, '--target-dir', path.join(copy, 'build')], { cwd: folder }).status === 0;
}

/** Whether these tests pass. */
function passes(copied, { folders, patience }) {
  const testsOf = (name) =>
    fs.readdirSync(path.join(copied, '__test__', name)).map((file) => `__test__/${name}/${file}`);
  const tests = folders.flatMap(testsOf).filter((file) => file.endsWith('.test.js'));
  return run(process.execPath, nodeTest(tests), { cwd: copied, timeout: patience }).status === 0;
}

/** The text with what stands in the span, lines and columns from 1, replaced. */
function replaced(text, { start, end }, replacement) {
  const lines = text.split('\n');
  const at = ({ line, column }) => lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0) + column - 1;
  return text.slice(0, at(start)) + replacement + text.slice(at(end));
}

function main() {
  const { values } = parseArgs({ options: { shard: SHARD, minutes: { type: 'string', default: 'Infinity' } } });
  const end = performance.now() + Number(values.minutes) * 60_000;
  const all = JSON.parse(done('cargo', ['mutants', '--list', '--json', ...FILES]));
  const folder = copyPackage();
  if (!build(folder) || !passes(folder, SEAM) || !passes(folder, BEHIND))
    throw new Error('The tests fail without a change');
  const survivors = [];
  let tried = 0;
  let behind = 0;
  for (const { name, file, span, replacement } of ofShard(all, values.shard)) {
    if (performance.now() > end) {
      console.log(`${values.minutes} minutes are over; what was not tried is for another run`);
      break;
    }
    const source = path.join(folder, file);
    const text = fs.readFileSync(source, 'utf8');
    fs.writeFileSync(source, replaced(text, span, replacement));
    if (build(folder)) {
      tried += 1;
      if (passes(folder, SEAM)) {
        if (passes(folder, BEHIND)) survivors.push(name);
        else behind += 1;
      }
    }
    fs.writeFileSync(source, text);
  }
  for (const survivor of survivors) console.log(`SURVIVED  ${survivor}`);
  console.log(`${survivors.length} of ${tried} failed; ${behind} were noticed by the folders behind the seam only`);
  process.exitCode = survivors.length > 0 ? 1 : 0;
}

main();
