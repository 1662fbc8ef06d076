// npm run test:install: installs the packed tarballs into an empty folder, as a user does, and runs the first example of the
// README there on each runtime. Without a compiler (the PATH is empty) and, where Linux allows that, without a network.

const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { packLocal } = require('./packages.js');
const { RUNTIMES, install } = require('./runtimes.js');

const root = path.join(__dirname, '..');
const LIMIT = 60_000;
const npm = process.env.npm_execpath;
if (npm === undefined) throw new Error('Run it as: npm run test:install');

/** The first JavaScript of the README, and the output that its comment announces. */
function readExample() {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, code] = /^```js\n(.*?)^```$/ms.exec(readme);
  const [, printed] = /console\.log\(.*\); \/\/ prints (.*)$/m.exec(code);
  return { code, printed: `${printed}\n` };
}

// In a namespace of its own, as its root: this needs no rights outside.
const NO_NETWORK = ['/usr/bin/unshare', '--map-root-user', '--net', '--'];
const hasNoNetwork = spawnSync(NO_NETWORK[0], [...NO_NETWORK.slice(1), process.execPath, '--version']).status === 0;

/** Runs a program with an empty PATH. Returns what it printed. */
function run(cwd, program, args) {
  const [file, ...rest] = [...(hasNoNetwork ? NO_NETWORK : []), program, ...args];
  const env = { HOME: cwd, PATH: path.join(cwd, 'nothing'), NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
  return execFileSync(file, rest, { cwd, env, encoding: 'utf8', timeout: LIMIT, killSignal: 'SIGKILL' });
}

const COMMANDS = { node: [], bun: [], deno: ['run', '-A'] };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-user-'));
try {
  const runtimes = RUNTIMES.map((runtime) => ({ ...runtime, binary: install(runtime) })).filter(({ binary }) => binary);
  const packages = path.join(folder, 'packages');
  const tarballs = packLocal(packages);
  const home = path.join(folder, 'home');
  fs.mkdirSync(home);
  run(home, process.execPath, [npm, 'install', '--offline', '--no-audit', '--no-fund', ...tarballs]);

  const { code, printed } = readExample();
  // The extension that Deno needs for CommonJS.
  fs.writeFileSync(path.join(home, 'counter.cjs'), code);
  for (const { name, kind, binary } of runtimes) {
    const output = run(home, binary, [...COMMANDS[kind], 'counter.cjs']);
    if (output !== printed) throw new Error(`${name} printed ${output}, not ${printed}`);
    console.log(`${name}: ${output.trim()}`);
  }
  console.log(
    `The README's first example runs ${hasNoNetwork ? 'without a network' : 'beside a network'}, from the tarballs.`,
  );
} finally {
  fs.rmSync(folder, { recursive: true });
}
