// `sablock run NAME -- command`: runs a command while it holds a lock of the machine. The command inherits the lock's descriptors:
// if this process is killed, the lock stays with the command until that ends.

const fs = require('node:fs');
const { inspect } = require('node:util');
const { LockManager } = require('../../index.js');
const { outerOf } = require('../named/held-lock.js');
const { binding } = require('../engine/thread.js');
const { runChild } = require('./child.js');
const { findEnded, findOuter, findPlace, inside } = require('./nested.js');
const { fail, unknownOption } = require('./output.js');
const { readRecords } = require('./record.js');

/** Nothing was run: others hold it. As flock(1) has it. */
const HELD_BY_OTHERS = 1;
/** Descriptors are looked for up to this one. */
const MOST_DESCRIPTORS = 256;
/** The time for which it waits without a word. */
const PATIENCE_MS = 1000;
const OPTIONS = ['--shared', '--timeout', '--if-available', '--directory', '--mark-consistent'];
const UNITS = { ms: 1, s: 1000, m: 60_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m)?$/;

function toMs(text = '') {
  const [, number, unit = 's'] = DURATION.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * UNITS[unit];
}

/** The command line; `problem` if it cannot be understood. */
function parse(args) {
  const asked = { name: undefined, options: {}, directory: undefined, isRepair: false, command: [] };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at];
    if (arg === '--') {
      asked.command = args.slice(at + 1);
      break;
    } else if (arg === '--shared') asked.options.mode = 'shared';
    else if (arg === '--if-available') asked.options.ifAvailable = true;
    else if (arg === '--mark-consistent') asked.isRepair = true;
    else if (arg === '--directory') {
      asked.directory = args[++at];
      // A variable of the shell that is empty has left the word out.
      if (asked.directory === undefined || asked.directory.startsWith('-')) {
        return { problem: '--directory needs a directory.' };
      }
    } else if (arg === '--timeout') {
      asked.options.timeout = toMs(args[++at]);
      if (asked.options.timeout === undefined) return { problem: '--timeout needs a time, 5s or 250ms for example.' };
    } else if (asked.name === undefined && !arg.startsWith('-')) asked.name = arg;
    else if (arg.startsWith('-')) return { problem: unknownOption('run', arg, OPTIONS) };
    else {
      asked.command = args.slice(at);
      break;
    }
  }
  if (asked.name === undefined || !asked.command[0]) return { problem: 'run needs a name and a command.' };
  if (asked.isRepair && asked.options.mode === 'shared') return { problem: '--mark-consistent needs the lock alone.' };
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
 * Descriptors that a program which has begun just now has inherited. Node.js would close them in the command. Its own ones are no
 * regular files, and have the lowest free numbers; on Linux the first of those is of no type.
 */
function inheritedAmong(open) {
  const isOwn = ({ mode }) => (mode & fs.constants.S_IFMT) === 0;
  const first = process.platform === 'linux' ? [...open].find(([, stat]) => isOwn(stat))?.[0] : undefined;
  return [...open]
    .filter(([descriptor, stat]) => descriptor < first || stat.isFile())
    .map(([descriptor]) => descriptor);
}

const ownEnd = (name, holder) =>
  new Error(
    `${inspect(name)} is held by ${holder}: to wait for it is to wait for the own end. Leave one of the two out, or let both be --shared.`,
  );

/** The advice of the warning of a mark, which a shell has no use for. */
const FOR_PROGRAMS = /, which (?:now belongs to this thread|this thread now reads)\..*/s;

/** Prints warnings for who runs commands; none if Node.js prints none. */
function takeWarnings(isRepair) {
  if (process.listenerCount('warning') === 0) return;
  const advice = isRepair
    ? 'If it ends with 0, the mark goes.'
    : 'The mark goes with a run --mark-consistent that ends with 0.';
  process.removeAllListeners('warning').on('warning', ({ code, message }) => {
    const text = message.replace(
      FOR_PROGRAMS,
      `: what it did may be half done. The command has SABLOCK_ABANDONED=1. ${advice}`,
    );
    process.stderr.write(`sablock: ${code === 'SABLOCK_ABANDONED' ? text : message}\n`);
  });
}

/** The lock; null if it is not available. Says who holds it, if that takes a while. */
async function acquire({ name, options, directory }) {
  const manager = new LockManager({ scope: 'machine', directory });
  const place = findPlace(directory, name, options.mode);
  const outer = findOuter(place);
  if (outer !== undefined && options.ifAvailable) return { place, lock: null };
  if (outer !== undefined) throw ownEnd(name, `the sablock run (process ${outer.pid}) that runs this command`);
  const ended = findEnded(place);
  if (ended.length > 0) {
    const lock = await manager.acquireAsync(name, { ...options, ifAvailable: true });
    if (lock !== null || options.ifAvailable) return { place, lock };
    const record = readRecords(place.path).find((each) => each.name === name);
    // A holder that shares it leaves the record as it was.
    const isShared = binding.fileHolders(place.number, name, binding.NameMode.Shared).length > 0;
    const killed = ended.find(({ pid }) => pid === record?.pid);
    if (!isShared && record?.isHeld && killed !== undefined) {
      throw ownEnd(
        name,
        `what a sablock run (process ${killed.pid}) that was killed has left running, this command too`,
      );
    }
  }
  const waiting = setTimeout(() => {
    const [holder] = binding.fileHolders(place.number, name);
    const who = holder == null ? '' : `, which process ${holder.pid} holds`;
    process.stderr.write(`sablock: Waiting for ${inspect(name)}${who} ...\n`);
  }, PATIENCE_MS);
  try {
    return { place, lock: await manager.acquireAsync(name, options) };
  } catch (error) {
    // The advice for a program is of no use in a shell.
    error.message = error.message.replace(/or ask with \{ ifAvailable: true \}/, 'or use --if-available');
    throw error;
  } finally {
    clearTimeout(waiting);
  }
}

module.exports = async (args) => {
  const { problem, isRepair, ...asked } = parse(args);
  if (problem !== undefined) return fail(`${problem} See sablock --help.`);
  takeWarnings(isRepair);
  const handedOn = inheritedAmong(openDescriptors());
  let lock;
  let place;
  try {
    ({ lock, place } = await acquire(asked));
  } catch (error) {
    return fail(error.message, HELD_BY_OTHERS);
  }
  if (lock === null) {
    process.exitCode = HELD_BY_OTHERS;
    return;
  }
  handedOn.push(...outerOf(lock).descriptors);
  // Each keeps its number: the command may have been told of it.
  const stdio = ['inherit', 'inherit', 'inherit'];
  for (const each of handedOn) stdio[each] = each;
  for (let at = 0; at < stdio.length; at++) stdio[at] ??= 'ignore';
  const { SABLOCK_ABANDONED, ...env } = { ...process.env, ...inside(place) };
  if (lock.abandoned) env.SABLOCK_ABANDONED = '1';
  const [command, ...rest] = asked.command;
  runChild(command, rest, { stdio, env }, (code, signal) => {
    // A command that a signal has ended may have left its work half done: whoever comes next learns of it.
    if (signal !== null) process.exit(code);
    if (isRepair && code === 0) lock.markConsistent();
    lock.unlock();
    process.exitCode = code;
  });
};
