// The record of a name of the machine, as `src/files/record.rs` has it: who held it exclusively last.

const fs = require('node:fs');
const path = require('node:path');
const { LockManager } = require('../../index.js');
const { binding } = require('../engine/thread.js');

/** What a record begins with: of other versions nothing is known. */
const MAGIC = Buffer.from('sablock\u0002');
const FLAGS = 8;
const HELD = 1;
/** And nobody's code was in. */
const OUTSIDE = 4;
const PID = 32;
const THREAD = 36;
const SINCE = 48;
const LENGTH = 56;
const NAME = 72;

/** What a record says; undefined if it is not one. */
function readRecord(file) {
  try {
    const record = fs.readFileSync(file);
    const end = NAME + 2 * Number(record.readBigUInt64LE(LENGTH));
    if (!record.subarray(0, MAGIC.length).equals(MAGIC) || end > record.length) return undefined;
    return {
      name: record.toString('utf16le', NAME, end),
      isClean: record[FLAGS] === 0 || record[FLAGS] === (HELD | OUTSIDE),
      isHeld: (record[FLAGS] & HELD) !== 0,
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

/** The records of a directory, each with the path of its files without their ending. */
exports.readRecords = (directory) =>
  fs
    .readdirSync(directory)
    .filter((entry) => entry.endsWith('.info'))
    .map((entry) => path.join(directory, entry.replace(/\.info$/, '')))
    .map((stem) => ({ stem, ...readRecord(`${stem}.info`) }))
    .filter(({ name }) => name !== undefined);
