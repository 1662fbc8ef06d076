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

/** The descriptors that this process has open beside stdin, stdout and stderr: of each what `fstat` says. */
function openDescriptors() {
  const found = new Map();
  for (let descriptor = 3; descriptor < MOST_DESCRIPTORS; descriptor++) {
    try {
      found.set(descriptor, fs.fstatSync(descriptor));
    } catch {
      // It is not open.
    }
  }
  return found;
}

/**
 * Those of a program that has begun just now which it has inherited. Node.js would close them in the command. Its own ones are no
 * regular files, and have the lowest free numbers; on Linux the first of those is of no type.
 */
function inheritedAmong(open) {
  const isOwn = ({ mode }) => (mode & fs.constants.S_IFMT) === 0;
  const first = process.platform === 'linux' ? [...open].find(([, stat]) => isOwn(stat))?.[0] : undefined;
  return [...open]
    .filter(([descriptor, stat]) => descriptor < first || stat.isFile())
    .map(([descriptor]) => descriptor);
}

module.exports = async (args) => {
  const { problem, name, options, directory, command } = parse(args);
  if (problem !== undefined) return fail(`${problem} See sablock --help.`);
  const before = openDescriptors();
  const handedOn = inheritedAmong(before);
  let lock;
  try {
    const manager = new LockManager({ scope: 'machine', directory });
    lock = await manager.acquireAsync(name, options);
    for (const [descriptor, stat] of openDescriptors()) {
      if (stat.isFile() && !before.has(descriptor)) handedOn.push(descriptor);
    }
  } catch (error) {
    return fail(error.message, HELD_BY_OTHERS);
  }
  if (lock === null) {
    process.exitCode = HELD_BY_OTHERS;
    return;
  }
  // Each keeps its number: the command may have been told of it.
  const stdio = ['inherit', 'inherit', 'inherit'];
  for (const descriptor of handedOn) stdio[descriptor] = descriptor;
  for (let at = 0; at < stdio.length; at++) stdio[at] ??= 'ignore';
  runChild(command[0], command.slice(1), { stdio }, (code, signal) => {
    // A command that a signal has ended may have left its work half done: whoever comes next learns of it.
    if (signal !== null) process.exit(code);
    lock.unlock();
    process.exitCode = code;
  });
};
