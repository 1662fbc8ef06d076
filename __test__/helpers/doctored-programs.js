// Programs with the lock doctor, in a folder where `sablock` is installed, as a user runs them.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { limit } = require('./limits.js');

const root = path.join(__dirname, '..', '..');
const WIDTH = 80;

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-doctor-'));
fs.mkdirSync(path.join(home, 'node_modules'));
fs.symlinkSync(root, path.join(home, 'node_modules', 'sablock'), 'junction');
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }));

/** Runs Node.js until it ends, or `isEnough(stderr, child)`, which ends it; after `within` milliseconds it is killed, and has failed. */
function run(args, { isEnough, env, within = 40_000 } = {}) {
  const { NODE_TEST_CONTEXT, ...rest } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: home, env: { ...rest, ...env } });
    const output = { stdout: '', stderr: '' };
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not done after ${within} ms:\n${output.stdout}${output.stderr}`));
    }, limit(within));
    let isKilled = false;
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
        if (isKilled || !isEnough?.(output[name], child)) return;
        isKilled = true;
        child.kill('SIGTERM');
      });
    }
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ ...output, code, signal });
    });
  });
}

const write = (name, text) => {
  fs.writeFileSync(path.join(home, name), text);
  return name;
};

const firstLines = (text) => {
  const lines = text.split('\n');
  for (const line of lines) assert.ok(line.length <= WIDTH, `a line of ${line.length}: ${line}`);
  return lines.slice(0, 10).join('\n');
};

/** `--require sablock/doctor`, as a user types it. */
const PRELOAD = ['--require', 'sablock/doctor'];

Object.assign(exports, { PRELOAD, firstLines, home, root, run, write });
