// `sablock locks`: who holds the locks of the machine.

const path = require('node:path');
const { fail, print, unknownOption } = require('./output.js');
const { openLocks, readRecords } = require('./record.js');

/** Characters that a terminal would obey, or nobody would see, as in the doctor's reports (src/doctor/columns.rs). */
const HIDDEN =
  /[\p{Cc}\u{ad}\u{61c}\u{180e}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{2069}\u{feff}\u{e0000}-\u{e007f}]/gu;
const toEscape = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
const HEAD = ['NAME', 'MODE', 'PID', 'THREAD', 'SINCE', 'ALIVE', 'MARK'];

/** Columns as wide as they need to be. */
function table(rows) {
  const widths = HEAD.map((_, column) => rows.reduce((most, row) => Math.max(most, row[column].length), 0));
  const line = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ');
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('');
}

/** Lists holders, those that have ended while they held, whose lock a command of theirs may keep, and the marks that were left. */
async function list(given) {
  const askedAt = Date.now();
  const { manager, directory } = openLocks(given);
  const { held } = await manager.query();
  const records = readRecords(directory);
  const marked = new Set(records.filter(({ isMarked }) => isMarked).map(({ name }) => name));
  const toRow = ({ name, mode, pid, threadId, since }, alive, isMarked = marked.has(name)) => ({
    // Half a surrogate pair is no JSON to jq.
    name: name.toWellFormed(),
    mode,
    pid,
    threadId,
    since: new Date(since).toISOString(),
    alive,
    marked: isMarked,
  });
  const rows = held.map((holder) => toRow({ ...holder, since: Date.now() - holder.heldMs }, true));
  const living = new Set(held.map(({ name }) => name));
  for (const { isClean, isHeld, sinceMs, stem, ...record } of records) {
    // A process that held it before the question, and still does, was among the answers if it lives.
    if ((isClean && !isHeld) || living.has(record.name) || sinceMs >= askedAt) continue;
    // A process that has ended inside has left a mark, though nobody has come across it yet.
    const name = record.name ?? path.basename(stem);
    rows.push(toRow({ ...record, name, mode: 'exclusive', since: sinceMs }, false, !isClean));
  }
  return rows;
}

module.exports = async (args) => {
  const unknown = args.find((arg) => arg.startsWith('-') && arg !== '--json');
  const directories = args.filter((arg) => !arg.startsWith('-'));
  if (unknown !== undefined) return fail(unknownOption('locks', unknown, ['--json']));
  if (directories.length > 1) return fail('locks takes one directory.');
  try {
    const all = await list(directories[0]);
    if (args.includes('--json')) {
      print(`${JSON.stringify(all)}\n`);
      return;
    }
    const rows = all.map(({ name, mode, pid, threadId, since, alive, marked }) => [
      name.replace(HIDDEN, toEscape),
      mode,
      String(pid ?? '-'),
      String(threadId ?? '-'),
      since,
      alive ? 'yes' : 'no',
      marked ? 'abandoned' : '',
    ]);
    print(all.length === 0 ? '' : table([HEAD, ...rows]));
  } catch (error) {
    fail(error.message, 1);
  }
};
