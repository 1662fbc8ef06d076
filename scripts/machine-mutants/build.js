// A copy of the package with mutants in its core, its binding and its JavaScript, one of which can be turned on.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { messagesOf, testPrograms } = require('../cargo-messages.js');
const { NAPI } = require('../variant.js');
const { plant } = require('./javascript.js');

const root = path.join(__dirname, '..', '..');
const folder = path.join(root, 'target', 'machine-mutants');
const copy = path.join(folder, 'package');
const build = path.join(folder, 'build');
exports.folder = folder;
const PARSER = ['acorn@8', 'acorn-walk@8'];
const CORE = ['--no-default-features', '--features', 'audit', '--profile', 'mutants'];
/** A place that does not compile in one of these is left out. */
const CHECKS = [
  ['--lib', '--tests', ...CORE],
  ['--lib', '--profile', 'mutants'],
];

/** Runs a program. Returns what it has printed, and how it ended. */
function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 30, ...options });
  if (result.error) throw result.error;
  return result;
}

/** Returns what it has printed. */
function done(program, args, options) {
  const { status, stdout, stderr } = run(program, args, options);
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ended with ${status}\n${stderr}`);
  return stdout;
}

const cargo = (args) => run('cargo', args, { cwd: copy, env: { ...process.env, CARGO_TARGET_DIR: build } });

function copyPackage() {
  fs.rmSync(copy, { recursive: true, force: true });
  for (const file of done('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'])
    .split('\0')
    .filter(Boolean)) {
    const from = path.join(root, file);
    if (fs.existsSync(from)) fs.cpSync(from, path.join(copy, file));
  }
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
}

function parser() {
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline'];
  done('npm', ['install', ...options, '--prefix', folder, ...PARSER], { shell: process.platform === 'win32' });
  const installed = (name) => require(require.resolve(name, { paths: [folder] }));
  return { parse: installed('acorn').parse, fullAncestor: installed('acorn-walk').fullAncestor };
}

function plantJavaScript() {
  const library = parser();
  const mutants = [];
  for (const name of fs.readdirSync(path.join(root, 'lib'), { recursive: true }).sort()) {
    if (!name.endsWith('.js')) continue;
    const file = path.posix.join('lib', name.replaceAll(path.sep, '/'));
    const { text, places } = plant(library, fs.readFileSync(path.join(root, file), 'utf8'), mutants.length + 1);
    fs.writeFileSync(path.join(copy, file), text);
    mutants.push(...places.map(({ number, line, kind, text }) => ({ number, file, line, kind, text })));
  }
  return mutants;
}

/** The numbers in the sources at which an error of the compiler points. */
function numbersAt({ spans, children }) {
  for (const { file_name: file, line_start: first, line_end: last, column_start: column } of [
    ...spans,
    ...children.flatMap((child) => child.spans),
  ]) {
    const lines = fs
      .readFileSync(path.join(copy, file), 'utf8')
      .split('\n')
      .slice(first - 1, last)
      .join('\n');
    const near = [...lines.matchAll(/planted::is\((\d+)\)/g)].sort(
      (a, b) => Math.abs(a.index - column) - Math.abs(b.index - column),
    );
    if (near.length > 0) return [near[0][1]];
  }
  return [];
}

/** Plants those that compile: which ones do, the compiler says. */
function plantCore(first) {
  const leftOut = path.join(folder, 'left-out');
  fs.writeFileSync(leftOut, '');
  // No documentation is asked of what is changed.
  const manifest = path.join(copy, 'Cargo.toml');
  fs.writeFileSync(
    manifest,
    fs.readFileSync(manifest, 'utf8').replace(/^missing_docs = .*/m, 'missing_docs = "allow"'),
  );
  const planter = ['run', '--quiet', '--package', 'sablock-planter', '--', root, copy, String(first), leftOut];
  for (;;) {
    const printed = done('cargo', planter);
    const errors = new Set();
    for (const check of CHECKS) {
      const { status, stdout, stderr } = cargo(['check', '--message-format=json', ...check]);
      const found = messagesOf(stdout)
        .filter(({ reason, message }) => reason === 'compiler-message' && message.level === 'error')
        .flatMap(({ message }) => numbersAt(message));
      if (status !== 0 && found.length === 0) throw new Error(`The core does not compile with mutants:\n${stderr}`);
      for (const number of found) errors.add(number);
    }
    if (errors.size === 0) {
      return printed
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const [number, file, at, kind, text] = line.split('\t');
          return { number: Number(number), file, line: Number(at), kind, text };
        });
    }
    fs.appendFileSync(leftOut, `${[...errors].join('\n')}\n`);
  }
}

/** Builds the addon and the tests of the core. Returns these, by name. */
function compile() {
  const addon = ['build', '--platform', '--profile', 'mutants', '--no-js', '--dts', 'target/binding.d.ts'];
  done(process.execPath, [NAPI, ...addon, '--target-dir', build], { cwd: copy });
  const { status, stdout, stderr } = cargo(['test', '--no-run', '--message-format=json', ...CORE]);
  if (status !== 0) throw new Error(`The tests of the core do not compile:\n${stderr}`);
  return [...testPrograms(stdout)].map(([name, program]) => ({ name, program, args: ['--quiet'], cwd: copy }));
}

/** Returns the mutants, the core's tests, and the folder of the copy. */
exports.buildWithMutants = () => {
  console.log(`Building the package with mutants in ${path.relative(root, copy)}`);
  copyPackage();
  const mutants = plantJavaScript();
  mutants.push(...plantCore(mutants.length + 1));
  return { mutants, core: compile(), copy };
};
