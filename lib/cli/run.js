// `sablock run NAME -- command`: runs a command while it holds a lock of the machine. The command inherits the lock's descriptors:
// if this process is killed, the lock stays with the command until that ends.

const fs = require('node:fs');
const { LockManager } = require('../../index.js');
const { runChild } = require('./child.js');
const { fail } = require('./output.js');

/** Nothing was run: others hold it. As flock(1) has it. */
const HELD_BY_OTHERS = 1;
/** Descriptors are looked for up to this one. */
const MOST_DESCRIPTORS = 256;
const UNITS = { ms: 1, s: 1000, m: 60_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m)?$/;

function toMs(text = '') {
  const [, number, unit = 's'] = DURATION.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * UNITS[unit];
}

/** The command line; `problem` if it cannot be understood. */
function parse(args) {
  const asked = { name: undefined, options: {}, directory: undefined, command: [] };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at];
    if (arg === '--') {
      asked.command = args.slice(at + 1);
      break;
    } else if (arg === '--shared') asked.options.mode = 'shared';
    else if (arg === '--if-available') asked.options.ifAvailable = true;
    else if (arg === '--directory') asked.directory = args[++at];
    else if (arg === '--timeout') {
      asked.options.timeout = toMs(args[++at]);
      if (asked.options.timeout === undefined) return { problem: '--timeout needs a time, 5s or 250ms for example.' };
    } else if (asked.name === undefined && !arg.startsWith('-')) asked.name = arg;
    else if (arg.startsWith('-')) return { problem: `run does not know ${arg}.` };
    else {
      asked.command = args.slice(at);
      break;
    }
  }
  if (asked.name === undefined || !asked.command[0]) return { problem: 'run needs a name and a command.' };
  return asked;
}

/** The regular files that this process has open. */
function openFiles() {
  const found = new Set();
  for (let descriptor = 3; descriptor < MOST_DESCRIPTORS; descriptor++) {
    try {
      if (fs.fstatSync(descriptor).isFile()) found.add(descriptor);
    } catch {
      // It is not open.
    }
  }
  return found;
}

module.exports = async (args) => {
  const { problem, name, options, directory, command } = parse(args);
  if (problem !== undefined) return fail(`${problem} See sablock --help.`);
  let lock;
  let inherited = [];
  try {
    const manager = new LockManager({ scope: 'machine', directory });
    const before = openFiles();
    lock = await manager.acquireAsync(name, options);
    inherited = [...openFiles()].filter((descriptor) => !before.has(descriptor));
  } catch (error) {
    return fail(error.message, HELD_BY_OTHERS);
  }
  if (lock === null) {
    process.exitCode = HELD_BY_OTHERS;
    return;
  }
  const stdio = ['inherit', 'inherit', 'inherit', ...inherited];
  runChild(command[0], command.slice(1), { stdio }, (code, signal) => {
    // A command that a signal has ended may have left its work half done: whoever comes next learns of it.
    if (signal !== null) process.exit(code);
    lock.unlock();
    process.exitCode = code;
  });
};
