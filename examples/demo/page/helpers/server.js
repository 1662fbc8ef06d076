// Starts the page's server in a process of its own, as `npm run demo:page` does, and kills it if it does not end.

const { spawn } = require('node:child_process');
const path = require('node:path');

const LIMIT_MS = 120_000;

const running = new Set();

/** Resolves when the server has printed its address, or has ended. `ended` resolves to how it ended. */
exports.startServer = (...args) => {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const child = spawn(process.execPath, [path.join(__dirname, '..', 'server.js'), ...args], { env });
  const watchdog = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const server = { child, stderr: '' };
  running.add(child);
  child.stderr.setEncoding('utf8').on('data', (text) => {
    server.stderr += text;
  });
  server.ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(watchdog);
      running.delete(child);
      resolve({ code, signal, stderr: server.stderr });
    });
  });
  const located = new Promise((resolve) => {
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      server.url = stdout.match(/http:\S+/)?.[0];
      if (server.url) resolve();
    });
  });
  return Promise.race([located, server.ended]).then(() => server);
};

/** Ends a server. Returns a promise of how it ended. */
exports.endServer = ({ child, ended }, signal = 'SIGTERM') => {
  child.kill(signal);
  return ended;
};

/** Kills the servers that a failed test has left running. */
exports.killServers = () => {
  for (const child of running) child.kill('SIGKILL');
};
