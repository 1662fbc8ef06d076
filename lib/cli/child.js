// Runs a program in the place of this one: its output, its signals, its end.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const { constants } = require('node:os');
const { fail } = require('./output.js');

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'].filter(
  (signal) => process.platform !== 'win32' || signal === 'SIGINT' || signal === 'SIGTERM' || signal === 'SIGHUP',
);
/** Signals that a terminal sends to all processes of its foreground, this one's child too. */
const OF_TERMINAL = new Set(['SIGINT', 'SIGQUIT']);
/** Whether this process is in the foreground of a terminal, whatever stdin is; on Linux only is it known of one in the background. */
function isInFront() {
  try {
    const [, , group, , , front] = fs
      .readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return group === front;
  } catch {
    // It is not Linux.
  }
  try {
    fs.closeSync(fs.openSync('/dev/tty'));
    return true;
  } catch {
    return false;
  }
}

/** As shells have it. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const KILLED = 128;

/** Node.js becomes another one, if it can: then no process is left to hand signals on. Returns whether it does. */
exports.become = (args, env) => {
  if (process.execve === undefined || process.platform === 'win32') return false;
  process.execve(process.execPath, [process.execPath, ...args], env);
  return true;
};

/** `ended(code, signal)` is called with one of the two when it has ended, or could not begin. Returns nothing. */
exports.runChild = (command, args, options, ended) => {
  let child;
  // It may send one as soon as it runs.
  for (const signal of FORWARDED) {
    process.on(signal, () => {
      if (!(OF_TERMINAL.has(signal) && isInFront())) child.kill(signal);
    });
  }
  const cannot = ({ code }) => {
    fail(`Cannot run ${command}: ${code}.`);
    ended(code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE, null);
  };
  try {
    child = spawn(command, args, options);
  } catch (error) {
    // Some errors of the system, ENOTDIR for example, are thrown.
    cannot(error);
    return;
  }
  child.on('error', (error) => {
    if (child.pid === undefined) cannot(error);
  });
  child.on('exit', (code, signal) => ended(code ?? KILLED + constants.signals[signal], signal));
};
