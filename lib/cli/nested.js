// `sablock run` inside `sablock run`: what the commands of outer ones hold, which their environment names.

const fs = require('node:fs');
const path = require('node:path');
const { binding } = require('../engine/thread.js');

const VARIABLE = 'SABLOCK_RUN';

/** When a process was started, which tells it from a later one of the same number; null where the system does not show it. */
function startOf(pid) {
  try {
    // The command's name may have spaces and parentheses.
    return fs
      .readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')[19];
  } catch {
    return null;
  }
}

/** The lock that is asked for, as an environment names it. `number` and `path` are the directory's. */
exports.findPlace = (directory, name, mode = 'exclusive') => {
  const { number, key, path: found, reason } = binding.openDirectory(directory && path.resolve(directory));
  // Else the request says what is wrong with the directory.
  return { number, path: found, key: reason === undefined ? key : null, name, mode };
};

const readOuter = () => {
  try {
    const all = JSON.parse(process.env[VARIABLE] ?? '[]');
    return Array.isArray(all) ? all.filter((outer) => typeof outer?.pid === 'number') : [];
  } catch {
    // The variable is somebody else's.
    return [];
  }
};

/** Whether it is that very process still; where the system does not show when one was started, whether there is one of its number. */
function lives({ pid, start }) {
  if (start !== null) return startOf(pid) === start;
  try {
    process.kill(pid, 0);
    return true;
  } catch ({ code }) {
    return code === 'EPERM';
  }
}

/** Whether one of the two would keep the other out. */
const excludes = (outer, { key, name, mode }) =>
  key !== null && outer.key === key && outer.name === name && !(outer.mode === 'shared' && mode === 'shared');

/**
 * The outer `sablock run` that keeps the lock from this one for ever. A daemon that was started inside has the variable for ever too: so
 * it counts only while that very process lives and, where it holds the lock alone, the record says that it does.
 */
exports.findOuter = (place) =>
  readOuter().find((outer) => {
    if (!excludes(outer, place) || !lives(outer)) return false;
    return outer.mode === 'shared' || binding.fileHolders(place.number, place.name)[0]?.pid === outer.pid;
  });

/**
 * The outer ones that have ended, of which one may have been killed while it held the lock alone: if that is locked still, its command
 * keeps it, of which this one is a part.
 */
exports.findEnded = (place) =>
  readOuter().filter((outer) => excludes(outer, place) && outer.mode !== 'shared' && !lives(outer));

/** Variables of a command's environment while this process holds the lock. */
exports.inside = ({ key, name, mode }) => ({
  [VARIABLE]: JSON.stringify([...readOuter(), { pid: process.pid, start: startOf(process.pid), key, name, mode }]),
});
