// `sablock clean`: removes the files of names of the machine that nobody has used for a day.

const fs = require('node:fs');
const path = require('node:path');
const { LockManager } = require('../../index.js');
const { binding } = require('../engine/thread.js');

const DAY_MS = 24 * 60 * 60 * 1000;
/** What a record begins with, as in `src/files/record.rs`: of other versions nothing is known. */
const MAGIC = Buffer.from('sablock\u0002');
const FLAGS = 8;
const LENGTH = 56;
const NAME = 72;
/** The last one is what a holder locks. */
const PARTS = ['.info', '.turn', '.gate', '.lock'];

/** The name that an old record is of; undefined if it is not clean, or not one: then it says something. */
function nameOf(file) {
  try {
    const record = fs.readFileSync(file);
    if (!record.subarray(0, MAGIC.length).equals(MAGIC) || record[FLAGS] !== 0) return undefined;
    const end = NAME + 2 * Number(record.readBigUInt64LE(LENGTH));
    return end <= record.length ? record.toString('utf16le', NAME, end) : undefined;
  } catch {
    return undefined;
  }
}

const isOld = (file) => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs < Date.now() - DAY_MS;

module.exports = async (args, fail) => {
  const unknown = args.find((arg) => arg.startsWith('-'));
  if (unknown !== undefined) return fail(`clean does not know ${unknown}.`);
  if (args.length > 1) return fail('clean takes one directory.');
  // That its own holds end with their files is what it is for.
  process.removeAllListeners('warning');
  try {
    const manager = new LockManager({ scope: 'machine', directory: args[0] });
    const { path: directory } = binding.openDirectory(args[0] && path.resolve(args[0]));
    let count = 0;
    for (const entry of fs.readdirSync(directory)) {
      const stem = path.join(directory, entry.replace(/\.info$/, ''));
      if (!entry.endsWith('.info') || !isOld(`${stem}.info`)) continue;
      const name = nameOf(`${stem}.info`);
      const lock = name === undefined ? null : await manager.acquireAsync(name, { ifAvailable: true });
      if (lock === null) continue;
      // Whoever waits in one of these files finds that its path leads elsewhere, and waits there.
      if (!lock.abandoned) for (const part of PARTS) fs.rmSync(stem + part, { force: true });
      count += lock.abandoned ? 0 : 1;
      lock.unlock();
    }
    process.stdout.write(`${count} removed\n`);
  } catch (error) {
    process.stderr.write(`sablock: ${error.message}\n`);
    process.exitCode = 1;
  }
};
