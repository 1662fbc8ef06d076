// `sablock clean`: removes the files of names of the machine that have not been used for a day.

const fs = require('node:fs');
const path = require('node:path');
const { fail, print, unknownOption } = require('./output.js');
const { openLocks, readNames } = require('./record.js');

const DAY_MS = 24 * 60 * 60 * 1000;
/** The last one is what a holder locks. */
const PARTS = ['.info', '.turn', '.gate', '.lock'];

const isOld = (file) => !(fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs >= Date.now() - DAY_MS);

const remove = (stem) => {
  for (const part of PARTS) fs.rmSync(stem + part, { force: true });
};

/** Removes the files of a name while it holds the lock. Returns whether it has. `isMarked` looks at that lock. */
async function clean(manager, stem, takesMarks, name, isMarked = (lock) => lock.abandoned) {
  const lock = await manager.acquireAsync(name, { ifAvailable: true });
  if (lock === null) return false;
  // A process that waits in one of these files finds that its path leads elsewhere, and waits there.
  const isGone = takesMarks || !isMarked(lock);
  if (isGone) remove(stem);
  lock.unlock();
  return isGone;
}

/** The same, where nothing tells the name: the lock is had by another, whose file is linked to the one that a holder locks. */
async function cleanUnnamed(manager, stem, takesMarks) {
  const name = `sablock-clean-${process.pid}`;
  const link = path.join(path.dirname(stem), `v1-${name}`);
  try {
    fs.linkSync(`${stem}.lock`, `${link}.lock`);
  } catch {
    // A file system without links, or the file of another user.
    return false;
  }
  try {
    // A record that is there by now may have a mark.
    return await clean(manager, stem, takesMarks, name, () => fs.existsSync(`${stem}.info`));
  } finally {
    remove(link);
  }
}

module.exports = async (args) => {
  const isOption = (arg) => arg.startsWith('-');
  const unknown = args.find((arg) => isOption(arg) && arg !== '--marks');
  if (unknown !== undefined) return fail(unknownOption('clean', unknown, ['--marks']));
  const takesMarks = args.includes('--marks');
  const directories = args.filter((arg) => !isOption(arg));
  if (directories.length > 1) return fail('clean takes one directory.');
  // That its own holds end with their files is what it is for.
  process.removeAllListeners('warning');
  try {
    const { manager, directory } = openLocks(directories[0]);
    let count = 0;
    let failure;
    for (const { stem, name, isClean } of readNames(directory)) {
      // One that is not clean says something: that goes only when it is asked for. Whoever shares a lock touches `.lock` only.
      const isWanted = (isClean || takesMarks) && PARTS.every((part) => isOld(stem + part));
      if (!isWanted) continue;
      try {
        count += Number(await (name === undefined ? cleanUnnamed : clean)(manager, stem, takesMarks, name));
      } catch (error) {
        // A file that somebody else has put there keeps no other name.
        failure ??= error;
      }
    }
    print(`${count} removed\n`);
    if (failure !== undefined) fail(failure.message, 1);
  } catch (error) {
    fail(error.message, 1);
  }
};
