// The record of a name of the machine, as `src/files/record.rs` has it: who held it exclusively last.

const { createHash } = require('node:crypto');
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
/** The length of its end, the begin of the hash of all before. */
const CHECKSUM = 8;
/** A name that gets longer when it is escaped has a hash in the names of its files. */
const LONGEST = 120;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest();

/** The content of the record of these files; undefined if it is no whole one, of their name, as `decode()` there has it. */
function decode(record, stem) {
  const begin = NAME[record[MAGIC.length]];
  if (!(record.length >= begin + CHECKSUM) || !record.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const end = begin + 2 * Number(record.readBigUInt64LE(LENGTH));
  if (
    record.length !== end + CHECKSUM ||
    !sha256(record.subarray(0, end)).subarray(0, CHECKSUM).equals(record.subarray(end))
  ) {
    return undefined;
  }
  const name = record.toString('utf16le', begin, end);
  const flags = record[FLAGS];
  if (
    stemOf(name) !== path.basename(stem) ||
    flags > (HELD | ABANDONED | OUTSIDE) ||
    (flags & ~ABANDONED) === OUTSIDE
  ) {
    return undefined;
  }
  return {
    stem,
    name,
    isClean: flags === 0 || flags === (HELD | OUTSIDE),
    isHeld: (flags & HELD) !== 0,
    isMarked: (flags & ABANDONED) !== 0,
    pid: record.readUInt32LE(PID),
    threadId: record.readUInt32LE(THREAD),
    sinceMs: Number(record.readBigUInt64LE(SINCE)),
  };
}

/** Longer files are no records, as in `files/directory.rs`. */
const LARGEST = 64 << 10;
/** A pipe that somebody has put there would keep its reader for ever, and a link may lead anywhere. Windows has neither. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;

/** The same, of a mark if it is not whole, which is what the next holder sees; undefined if it cannot be read, or is no file. */
function readRecord(stem) {
  let file;
  try {
    file = fs.openSync(`${stem}.info`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const stats = fs.fstatSync(file);
    if (!stats.isFile()) return undefined;
    const known = stats.size > LARGEST ? undefined : decode(fs.readFileSync(file), stem);
    const unknown = { isClean: false, isHeld: false, isMarked: true, pid: null, threadId: null };
    return known ?? { stem, name: nameOf(stem), ...unknown, sinceMs: stats.mtimeMs };
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) fs.closeSync(file);
  }
}

/** The locks of a directory, which is not made for a look at it. */
exports.openLocks = (given) => {
  if (given !== undefined) fs.accessSync(given);
  const manager = new LockManager({ scope: 'machine', directory: given });
  return { manager, directory: binding.openDirectory(given && path.resolve(given)).path };
};

/** The names of a name's files, without their ending: those of others are left alone. */
const STEM = /^v1(?:-(?:[a-z0-9_-]|%[0-9a-f]{2})*|h-[0-9a-f]{64})$/;

/** The paths of the files of a directory with this ending, without it. */
const stemsOf = (directory, ending) =>
  fs
    .readdirSync(directory)
    .filter((entry) => entry.endsWith(ending) && STEM.test(entry.slice(0, -ending.length)))
    .map((entry) => path.join(directory, entry.slice(0, -ending.length)));

/** The records of a directory, each with the path of its files without their ending; the name is undefined if nothing tells it. */
exports.readRecords = (directory) =>
  stemsOf(directory, '.info')
    .map(readRecord)
    .filter((record) => record !== undefined);

/** The same, and what was shared only, which has no record. */
exports.readNames = (directory) => {
  const shared = stemsOf(directory, '.lock').filter((stem) => !fs.existsSync(`${stem}.info`));
  return [...exports.readRecords(directory), ...shared.map((stem) => ({ stem, name: nameOf(stem), isClean: true }))];
};

/** The name that files are for, as they are called; undefined if that does not tell it: a hash, or half a surrogate pair. */
function nameOf(stem) {
  const base = path.basename(stem);
  try {
    const name = decodeURIComponent(base.slice('v1-'.length));
    return stemOf(name) === base ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The name of the files of a name, without their ending, as `src/files/name.rs` has it. */
function stemOf(name) {
  const bytes = Buffer.concat(Array.from(name, toBytes));
  const escaped = bytes
    .toString('latin1')
    .replace(/[^a-z0-9_-]/g, (byte) => `%${Buffer.from(byte, 'latin1').toString('hex')}`);
  return escaped.length <= LONGEST ? `v1-${escaped}` : `v1h-${sha256(bytes).toString('hex')}`;
}

/** UTF-8, and three bytes for half a surrogate pair as well. */
function toBytes(character) {
  if (character.isWellFormed()) return Buffer.from(character);
  const unit = character.charCodeAt(0);
  return Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)]);
}
