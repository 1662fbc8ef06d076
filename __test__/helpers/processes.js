// Runs a program of `__test__/programs` in a process of its own, and kills it when it does not end.

const { spawn } = require('node:child_process');
const path = require('node:path');
const { limit } = require('./limits.js');

const LIMIT_MS = 30_000;

/** Returns how the program ended and what it printed; `signal` is SIGKILL if it had to be killed. */
exports.runProgram = (name, args = [], { most = LIMIT_MS, nodeArgs = [], env: more, onOutput } = {}) => {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(
      process.execPath,
      [...nodeArgs, path.join(__dirname, '..', 'programs', `${name}.js`), ...args],
      {
        env: { ...env, ...more },
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    );
    const timer = setTimeout(() => child.kill('SIGKILL'), limit(most));
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      onOutput?.(stdout, child);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr, ms: performance.now() - startedAt });
    });
  });
};
