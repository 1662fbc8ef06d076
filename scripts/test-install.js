// npm run test:install: installs the packed tarballs into an empty folder, as a user does, and runs the examples of the README
// there on each runtime: the first, and in two processes at once the second. Without a compiler (the PATH is empty) and, where
// Linux allows that, without a network.

const { execFile, execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const { packLocal } = require('./packages.js');
const { RUNTIMES, install } = require('./runtimes.js');

const root = path.join(__dirname, '..');
const LIMIT = 60_000;
const npm = process.env.npm_execpath;
if (npm === undefined) throw new Error('Run it as: npm run test:install');

/** The programs of the README that say what they print, and that output. */
function readExamples() {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const programs = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  return programs.flatMap((code) => {
    const [, printed] = /console\.log\(.*\); \/\/ prints (.*)$/m.exec(code) ?? [];
    return printed === undefined ? [] : [{ code, printed: `${printed}\n` }];
  });
}

// In a namespace of its own, as its root: this needs no rights outside.
const NO_NETWORK = ['/usr/bin/unshare', '--map-root-user', '--net', '--'];
const hasNoNetwork = spawnSync(NO_NETWORK[0], [...NO_NETWORK.slice(1), process.execPath, '--version']).status === 0;

/** Runs a program with an empty PATH. Returns what it printed. */
function run(cwd, program, args) {
  const [file, ...rest] = [...(hasNoNetwork ? NO_NETWORK : []), program, ...args];
  return execFileSync(file, rest, optionsIn(cwd));
}

const optionsIn = (cwd) => ({
  cwd,
  env: { HOME: cwd, PATH: path.join(cwd, 'nothing'), NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
  encoding: 'utf8',
  timeout: LIMIT,
  killSignal: 'SIGKILL',
});

/** Runs a program in two processes at once, as the user who they are of. Returns what each printed. */
async function runTwice(cwd, program, args) {
  const start = () => promisify(execFile)(program, args, optionsIn(cwd));
  return (await Promise.all([start(), start()])).map(({ stdout }) => stdout);
}

const COMMANDS = { node: [], bun: [], deno: ['run', '-A'] };

async function main(folder) {
  const runtimes = RUNTIMES.map((runtime) => ({ ...runtime, binary: install(runtime) })).filter(({ binary }) => binary);
  const packages = path.join(folder, 'packages');
  const tarballs = packLocal(packages);
  const home = path.join(folder, 'home');
  fs.mkdirSync(home);
  run(home, process.execPath, [npm, 'install', '--offline', '--no-audit', '--no-fund', ...tarballs]);

  const [counter, token] = readExamples();
  // The extension that Deno needs for CommonJS.
  fs.writeFileSync(path.join(home, 'counter.cjs'), counter.code);
  fs.writeFileSync(path.join(home, 'token.cjs'), token.code);
  for (const { name, kind, binary } of runtimes) {
    const output = run(home, binary, [...COMMANDS[kind], 'counter.cjs']);
    if (output !== counter.printed) throw new Error(`${name} printed ${output}, not ${counter.printed}`);
    const outputs = await runTwice(home, binary, [...COMMANDS[kind], 'token.cjs']);
    if (outputs.some((each) => each !== token.printed)) throw new Error(`${name} printed ${outputs}`);
    console.log(`${name}: ${output.trim()}; ${outputs.join('').trim().replace('\n', ', ')}`);
  }
  console.log(
    `The README's examples run ${hasNoNetwork ? 'without a network' : 'beside a network'}, from the tarballs.`,
  );
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-user-'));
main(folder).finally(() => fs.rmSync(folder, { recursive: true }));
