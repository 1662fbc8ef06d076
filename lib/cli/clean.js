// `sablock clean`: removes the files of names of the machine that have not been used for a day.

const fs = require('node:fs');
const { fail, print, unknownOption } = require('./output.js');
const { openLocks, readNames } = require('./record.js');

const DAY_MS = 24 * 60 * 60 * 1000;
/** The last one is what a holder locks. */
const PARTS = ['.info', '.turn', '.gate', '.lock'];

const isOld = (file) => !(fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs >= Date.now() - DAY_MS);

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
    for (const { stem, name, isClean } of readNames(directory)) {
      // One that is not clean says something: that goes only when it is asked for. Whoever shares a lock touches `.lock` only.
      const isWanted = (isClean || takesMarks) && PARTS.every((part) => isOld(stem + part));
      const lock = isWanted ? await manager.acquireAsync(name, { ifAvailable: true }) : null;
      if (lock === null) continue;
      // A process that waits in one of these files finds that its path leads elsewhere, and waits there.
      const isGone = takesMarks || !lock.abandoned;
      if (isGone) for (const part of PARTS) fs.rmSync(stem + part, { force: true });
      count += Number(isGone);
      lock.unlock();
    }
    print(`${count} removed\n`);
  } catch (error) {
    fail(error.message, 1);
  }
};
