// The record of a name of the machine, as `src/files/record.rs` has it: who held it exclusively last.

const fs = require('node:fs');
const path = require('node:path');
const { LockManager } = require('../../index.js');
const { binding } = require('../engine/thread.js');

/** The begin of a record, before its version. */
const MAGIC = Buffer.from('sablock');
/** The offset of the name in a record of each version; others are not known. */
const NAME = { 1: 64, 2: 72 };
const FLAGS = 8;
const HELD = 1;
const ABANDONED = 2;
/** And nobody's code was in. */
const OUTSIDE = 4;
const PID = 32;
const THREAD = 36;
const SINCE = 48;
const LENGTH = 56;

/** The content of a record; undefined if it is not one. */
function readRecord(file) {
  try {
    const record = fs.readFileSync(file);
    const begin = NAME[record[MAGIC.length]];
    const end = begin + 2 * Number(record.readBigUInt64LE(LENGTH));
    if (!record.subarray(0, MAGIC.length).equals(MAGIC) || !(end <= record.length)) return undefined;
    return {
      name: record.toString('utf16le', begin, end),
      isClean: record[FLAGS] === 0 || record[FLAGS] === (HELD | OUTSIDE),
      isHeld: (record[FLAGS] & HELD) !== 0,
      isMarked: (record[FLAGS] & ABANDONED) !== 0,
      pid: record.readUInt32LE(PID),
      threadId: record.readUInt32LE(THREAD),
      sinceMs: Number(record.readBigUInt64LE(SINCE)),
    };
  } catch {
    return undefined;
  }
}

/** The locks of a directory, which is not made for a look at it. */
exports.openLocks = (given) => {
  if (given !== undefined) fs.accessSync(given);
  const manager = new LockManager({ scope: 'machine', directory: given });
  return { manager, directory: binding.openDirectory(given && path.resolve(given)).path };
};

/** The paths of the files of a directory with this ending, without it. */
const stemsOf = (directory, ending) =>
  fs
    .readdirSync(directory)
    .filter((entry) => entry.endsWith(ending))
    .map((entry) => path.join(directory, entry.slice(0, -ending.length)));

/** The records of a directory, each with the path of its files without their ending. */
exports.readRecords = (directory) =>
  stemsOf(directory, '.info')
    .map((stem) => ({ stem, ...readRecord(`${stem}.info`) }))
    .filter(({ name }) => name !== undefined);

/** The same, and the names that were shared only, which have no record: those that their files tell. */
exports.readNames = (directory) => {
  const shared = stemsOf(directory, '.lock').filter((stem) => !fs.existsSync(`${stem}.info`));
  const unrecorded = shared.map((stem) => ({ stem, name: nameOf(path.basename(stem)), isClean: true }));
  return [...exports.readRecords(directory), ...unrecorded.filter(({ name }) => name !== undefined)];
};

/** The name that a file is for, as `src/files/name.rs` has it; undefined if it is not that of any, or a hash. */
function nameOf(stem) {
  const [, escaped] = /^v1-((?:[a-z0-9_-]|%[0-9a-f]{2})*)$/.exec(stem) ?? [];
  try {
    return escaped && decodeURIComponent(escaped);
  } catch {
    // Half a surrogate pair.
    return undefined;
  }
}
