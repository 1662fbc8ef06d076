// npm run test:seam-mutants [-- --shard 0/20 --minutes 10]: cargo-mutants lists changes of `src/node`, one place each; each is built into
// the addon of a copy of the last commit, and the tests of the seam (`__test__/binding`) run with it. One that none of them notices
// fails the run: answer it with a test, or in `.cargo/mutants.toml` with the reason why nobody can see it.
//
// The doctor's part is left out: its tests take minutes. Needs cargo-mutants: `cargo install --locked cargo-mutants`.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { nodeTest } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');

const root = path.join(__dirname, '..');
const copy = path.join(root, 'target', 'seam-mutants');
const FILES = ['--file', 'src/node/**', '--exclude', 'src/node/doctor.rs'];
/** The tests take seconds; a hang is noticed too, in milliseconds. */
const PATIENCE = 120_000;

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
  const napi = path.join(root, 'node_modules', '@napi-rs', 'cli', 'dist', 'cli.js');
  const args = [napi, 'build', '--platform', '--profile', 'mutants', '--no-js', '--dts', 'target/binding.d.ts'];
  return run(process.execPath, [...args, '--target-dir', path.join(copy, 'build')], { cwd: folder }).status === 0;
}

/** Whether the tests of the seam pass. */
function passes(folder) {
  const tests = fs.readdirSync(path.join(folder, '__test__', 'binding')).map((name) => `__test__/binding/${name}`);
  return run(process.execPath, nodeTest(tests), { cwd: folder, timeout: PATIENCE }).status === 0;
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
  if (!build(folder) || !passes(folder)) throw new Error('The tests of the seam fail without a change');
  const survivors = [];
  let tried = 0;
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
      if (passes(folder)) survivors.push(name);
    }
    fs.writeFileSync(source, text);
  }
  for (const survivor of survivors) console.log(`SURVIVED  ${survivor}`);
  console.log(`${survivors.length} of ${tried} failed`);
  process.exitCode = survivors.length > 0 ? 1 : 0;
}

main();
