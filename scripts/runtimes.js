// npm run test:runtimes [-- [--short] NAME ...]: the JS tests on each runtime that the package supports. Their binaries are npm
// packages, which are installed into target/runtimes. With `--short` the tests of what differs most between runtimes.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const { LACKS } = require('../__test__/helpers/runtime.js');
const { AT_ONCE, nodeTest } = require('./node-test.js');

const root = path.join(__dirname, '..');
const CACHE = path.join(root, 'target', 'runtimes');
const { platform, arch } = process;
const suffix = platform === 'win32' ? '.exe' : '';

const nodePackage = `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
const bunPackage = `@oven/bun-${platform === 'win32' ? 'windows' : platform}-${arch === 'arm64' ? 'aarch64' : arch}`;
const denoPackage = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`;

/** The newest Node.js of each line. The others have the versions for which `LACKS` is right. */
const RUNTIMES = [
  ...['20', '22', '24', '26'].map((version) => ({
    name: `node${version}`,
    kind: 'node',
    version,
    package: nodePackage,
    file: `bin/node${suffix}`,
  })),
  { name: 'bun', kind: 'bun', version: '~1.4.0', package: bunPackage, file: `bin/bun${suffix}` },
  { name: 'deno', kind: 'deno', version: '~2.9.0', package: denoPackage, file: `deno${suffix}` },
];

/** Returns the path of the runtime's binary. Where npm has none for this system, prints that and returns undefined. */
function install({ name, kind, version, package: packageName, file }) {
  if (kind === 'node' && process.versions.node.split('.')[0] === version) return process.execPath;
  const folder = path.join(CACHE, name);
  fs.mkdirSync(folder, { recursive: true });
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline'];
  const { status, stderr } = spawnSync(
    'npm',
    ['install', ...options, '--prefix', folder, `${packageName}@${version}`],
    { cwd: folder, encoding: 'utf8', shell: platform === 'win32' },
  );
  if (status === 0) return path.join(folder, 'node_modules', packageName, file);
  // npm has all of them for the system of CI, where none may go missing unnoticed.
  if (/\b(E404|ETARGET|EBADPLATFORM)\b/.test(stderr) && `${platform}-${arch}` !== 'linux-x64') {
    console.log(`${name}: skipped, since npm has no ${packageName}@${version}`);
    return undefined;
  }
  throw new Error(`${packageName}@${version} could not be installed:\n${stderr}`);
}

function parses(source) {
  try {
    new vm.Script(source);
    return true;
  } catch {
    return false;
  }
}

/** Whether this Node.js reads `using`, which must be compiled for it otherwise. */
const USING_IS_KNOWN = parses('{ using resource = null; }');

/** In milliseconds, for all files and for one: what hangs is reported while the others still run. */
const ALL_LIMIT = 600_000;
const FILE_LIMIT = 180_000;
const isShort = process.argv.includes('--short');
/** The tests of how the binding is loaded, how threads and loops end and wait, and what is the same for every kind. */
const SHORT = ['ends', 'kinds', 'loading', 'mutex', 'named'];
const files = fs
  .readdirSync(path.join(root, '__test__'), { recursive: true })
  .filter((file) => file.endsWith('.test.js') && (!isShort || SHORT.includes(path.dirname(file))))
  .map((file) => `__test__/${file}`);

/** Test files that a runtime cannot run, and why. */
const LEFT_OUT = {
  node: {},
  bun: {},
  deno: {
    release: 'the release scripts are for Node.js: their children lack permissions',
  },
};
const filesOf = (kind) => files.filter((file) => !(path.basename(file, '.test.js') in LEFT_OUT[kind]));

/** The runtimes: how each runs test files, how it counts them, and where in its output the failures begin. */
const KINDS = {
  node: {
    batches: [files],
    args: (batch) => ['--test-reporter=spec', ...nodeTest(batch)],
    counts: { passed: /^ℹ pass (\d+)/m, skipped: /^ℹ skipped (\d+)/m, failed: /^ℹ fail (\d+)/m },
    failures: /^✖ failing tests:/m,
  },
  bun: {
    batches: filesOf('bun').map((file) => [file]),
    args: ([file]) => ['test', '--timeout', '100000', `./${file}`],
    counts: { passed: /^ *(\d+) pass$/m, skipped: /^ *(\d+) skip$/m, failed: /^ *(\d+) fail$/m },
    failures: /^/,
  },
  deno: {
    batches: filesOf('deno').map((file) => [file]),
    // Some tests compare ours with built-in functions, which need the flag.
    args: ([file]) => ['test', '-A', '--no-check', '--no-lock', '--v8-flags=--allow-natives-syntax', file],
    counts: { passed: / (\d+) passed/, skipped: / (\d+) ignored/, failed: / (\d+) failed/ },
    failures: /^ ERRORS /m,
  },
};

/** Runs one batch of files. Returns the counts. */
function runBatch(kind, binary, batch) {
  return new Promise((resolve) => {
    const env = { ...process.env, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
    const child = spawn(binary, kind.args(batch), { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(() => child.kill('SIGKILL'), batch.length === 1 ? FILE_LIMIT : ALL_LIMIT);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const count = (name) => Number(kind.counts[name].exec(output)?.[1] ?? 0);
      const [passed, skipped, failed] = ['passed', 'skipped', 'failed'].map(count);
      const isClean = code === 0 && failed === 0 && passed + skipped > 0;
      if (!isClean) {
        console.log(`${batch.length === 1 ? batch[0] : path.basename(binary)}: ended with ${signal ?? code}`);
        console.log(output.slice(Math.max(output.search(kind.failures), 0)));
      }
      resolve({ passed, skipped, failed: isClean ? 0 : Math.max(failed, 1) });
    });
  });
}

async function run(runtime, binary) {
  const kind = KINDS[runtime.kind];
  const startedAt = performance.now();
  const total = { passed: 0, skipped: 0, failed: 0 };
  const batches = kind.batches.slice();
  const work = async () => {
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      const result = await runBatch(kind, binary, batch);
      for (const name of Object.keys(total)) total[name] += result[name];
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const [version] = /\d+\.\d+\.\d+/.exec(execFileSync(binary, ['--version'], { encoding: 'utf8' }));
  return { runtime: runtime.name, version, ...total, seconds: Math.round((performance.now() - startedAt) / 1000) };
}

async function main(names) {
  const unknown = names.find((name) => !RUNTIMES.some((runtime) => runtime.name === name));
  if (unknown !== undefined) throw new Error(`No such runtime: ${unknown}`);
  const rows = [];
  for (const runtime of RUNTIMES) {
    if (names.length > 0 && !names.includes(runtime.name)) continue;
    const binary = install(runtime);
    if (binary === undefined) continue;
    rows.push(await run(runtime, binary));
    console.log(Object.values(rows.at(-1)).join(' '));
  }
  console.table(rows);
  for (const kind of new Set(RUNTIMES.map(({ kind }) => kind))) {
    for (const [need, reason] of Object.entries(LACKS[kind])) console.log(`${kind} lacks ${need}: ${reason}`);
    for (const [file, reason] of Object.entries(LEFT_OUT[kind])) console.log(`${kind} leaves out ${file}: ${reason}`);
  }
  if (rows.length === 0 || rows.some(({ failed }) => failed > 0)) process.exitCode = 1;
}

Object.assign(exports, { RUNTIMES, install, USING_IS_KNOWN });

if (require.main === module) {
  main(process.argv.slice(2).filter((argument) => argument !== '--short'));
}
