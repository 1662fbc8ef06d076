// Runs the tests of sablock built for another system, by something that is not quite that system: Wine, or qemu. What it gets
// wrong stands in a list, test by test; a test in the list that passes is an error too.

const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const nodeTest = require('../node-test.js');

const root = path.join(__dirname, '..', '..');
const FILE_LIMIT_MS = 900_000;

/**
 * @typedef {object} Foreign
 * @property {string} name
 * @property {string} target of Rust
 * @property {string} work a folder
 * @property {(version: string, args: string[]) => [string, string[]]} node a command that starts Node.js
 * @property {NodeJS.ProcessEnv} env of all it runs
 * @property {number} [atOnce] files, as many as there are processors if it is left out
 * @property {{ file: string, test?: string, why: string }[]} faults of this system; without `test`, the whole file
 */

/** Runs a command. Its output goes to a file: Node.js under Wine cannot write to a pipe of the system outside. */
function runToFile(foreign, [command, args], limit) {
  const output = path.join(foreign.work, `output-${runToFile.next++}`);
  const file = fs.openSync(output, 'w');
  return new Promise((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...foreign.env }, stdio: ['ignore', file, file] };
    const child = spawn(command, args, options);
    const timer = setTimeout(() => child.kill('SIGKILL'), limit);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      fs.closeSync(file);
      const text = fs.readFileSync(output, 'latin1');
      fs.rmSync(output);
      resolve({ end: signal ?? code, text });
    });
  });
}
runToFile.next = 0;

/** A program that must end well. */
async function runProgram(foreign, version, args, limit = FILE_LIMIT_MS) {
  const startedAt = performance.now();
  const { end, text } = await runToFile(foreign, foreign.node(version, args), limit);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`Node.js ${version}, ${args.join(' ')}: ${end === 0 ? `passed, ${seconds} s` : `ended with ${end}`}`);
  if (end !== 0) console.log(text);
  return end === 0 ? [] : [`${args[0]} ended with ${end}`];
}

/** Runs cargo for the other system. */
function cargo(foreign, rust, [command, ...args]) {
  const library = rust.library === null ? [] : ['-Zbuild-std'];
  const all = [command, '--quiet', '--target', foreign.target, ...library, ...args];
  const folder = path.join(foreign.work, 'cargo');
  const quick = { CARGO_TARGET_DIR: folder, CARGO_PROFILE_DEV_DEBUG: 'false', CARGO_INCREMENTAL: '0' };
  const env = { ...process.env, ...foreign.env, ...rust.env, ...quick };
  return spawnSync(rust.cargo, all, { cwd: root, env, stdio: 'inherit' }).status === 0;
}

/** Builds `library`, and puts it where the package looks for it. Returns what removes it there. */
function build(foreign, rust, library, name) {
  if (!cargo(foreign, rust, ['build', '--lib'])) throw new Error(`${library} could not be built`);
  const binary = path.join(root, name);
  fs.copyFileSync(path.join(foreign.work, 'cargo', foreign.target, 'debug', library), binary);
  return () => fs.rmSync(binary);
}

/** The tests of the core, except for files in `tests/`. */
function runCore(foreign, rust, leftOut = {}) {
  const startedAt = performance.now();
  const names = fs.readdirSync(path.join(root, 'tests')).map((file) => path.parse(file));
  const tests = names.filter(({ ext, name }) => ext === '.rs' && !Object.hasOwn(leftOut, name));
  const chosen = ['--lib', ...tests.flatMap(({ name }) => ['--test', name])];
  const isRight = cargo(foreign, rust, ['test', '--no-default-features', '--no-fail-fast', ...chosen]);
  console.log(`The core's tests for ${foreign.target}: ${Math.round((performance.now() - startedAt) / 1000)} s`);
  return isRight ? [] : ["the core's tests failed"];
}

/** Returns the results of a file's tests, by name; of those in others only their parents. */
function resultsOf(text) {
  const results = new Map();
  for (const [, not, name, directive] of text.matchAll(/^(not )?ok \d+ - (.*?)( # (?:SKIP|TODO).*)?\r?$/gm)) {
    const isSkipped = directive?.startsWith(' # SKIP');
    // The reporter escapes these.
    results.set(name.replaceAll(/\\([#\\])/g, '$1'), not ? 'failed' : isSkipped ? 'skipped' : 'passed');
  }
  return results;
}

/** Judges a file's results by the faults that are known. */
function judge(file, faults, { end, text }) {
  const known = faults.filter((fault) => fault.file === file);
  if (known.some(({ test }) => test === undefined)) {
    return end === 0 ? [`${file}: passes, and is in the list of faults`] : [];
  }
  const results = resultsOf(text);
  const wrong = [];
  for (const [name, result] of results) {
    if (result === 'failed' && !known.some(({ test }) => test === name)) wrong.push(`${file}: failed: ${name}`);
  }
  for (const { test } of known) {
    if (results.get(test) !== 'failed') {
      wrong.push(`${file}: ${results.get(test) ?? 'is not there'}, and is in the list of faults: ${test}`);
    }
  }
  const hasEnded = /^# tests \d+\r?$/m.test(text);
  if (!hasEnded || results.size === 0 || (end !== 0 && known.length === 0 && wrong.length === 0)) {
    wrong.push(`${file}: ended with ${end}`);
  }
  return wrong;
}

/** The test files whose path has one of `subjects`, without those left out. */
function testFiles(subjects, leftOut) {
  const tests = nodeTest.testFiles().map((file) => path.relative('__test__', file).slice(0, -'.test.js'.length));
  const isChosen = (file) => subjects.length === 0 || subjects.some((subject) => file.startsWith(subject));
  return tests.filter((file) => isChosen(file) && !Object.hasOwn(leftOut, file)).sort();
}

/** Runs test files, some at a time. Returns what is wrong. */
async function runFiles(foreign, version, files) {
  const startedAt = performance.now();
  const left = [...files];
  const counts = { passed: 0, skipped: 0, failed: 0 };
  const wrong = [];
  const work = async () => {
    for (let file = left.shift(); file !== undefined; file = left.shift()) {
      const args = ['--test-reporter=tap', `__test__/${file}.test.js`];
      const fileStartedAt = performance.now();
      const outcome = await runToFile(foreign, foreign.node(version, args), FILE_LIMIT_MS);
      const results = [...resultsOf(outcome.text).values()];
      for (const result of results) counts[result] += 1;
      const found = judge(file, foreign.faults, outcome);
      const passed = results.filter((result) => result === 'passed').length;
      const fileSeconds = Math.round((performance.now() - fileStartedAt) / 1000);
      console.log(`  ${file}: ${passed} of ${results.length} passed, ${fileSeconds} s`);
      if (found.length > 0) console.log(`${outcome.text}\n${found.join('\n')}`);
      wrong.push(...found);
    }
  };
  await Promise.all(Array.from({ length: foreign.atOnce ?? os.availableParallelism() }, work));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const total = Object.entries(counts).map(([result, count]) => `${count} ${result}`);
  const faults = foreign.faults.filter(({ file }) => files.includes(file)).length;
  console.log(`Node.js ${version}: ${files.length} files, ${total.join(', ')} (${faults} known faults), ${seconds} s`);
  return wrong;
}

/** Ends the process: with what is wrong, or well. */
function conclude(foreign, wrong) {
  console.log(wrong.length === 0 ? `Nothing wrong under ${foreign.name}.` : `Wrong under ${foreign.name}:`);
  for (const line of wrong) console.log(`  ${line}`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}

module.exports = { build, conclude, judge, root, runCore, runFiles, runProgram, testFiles };
