// `sablock locks`: who holds the locks of the machine.

const { LockManager } = require('../../index.js');

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what a terminal would obey.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const toEscape = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
const HEAD = ['NAME', 'MODE', 'PID', 'THREAD', 'SINCE'];

/** Columns as wide as they need to be. */
function table(rows) {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ');
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('');
}

module.exports = async (args, fail) => {
  const unknown = args.find((arg) => arg.startsWith('-') && arg !== '--json');
  const directories = args.filter((arg) => !arg.startsWith('-'));
  if (unknown !== undefined) return fail(`locks does not know ${unknown}.`);
  if (directories.length > 1) return fail('locks takes one directory.');
  try {
    const { held } = await new LockManager({ scope: 'machine', directory: directories[0] }).query();
    const now = Date.now();
    const all = held.map(({ name, mode, pid, threadId, heldMs }) => ({
      name,
      mode,
      pid,
      threadId,
      since: new Date(now - heldMs).toISOString(),
    }));
    if (args.includes('--json')) {
      process.stdout.write(`${JSON.stringify(all)}\n`);
      return;
    }
    const rows = all.map(({ name, mode, pid, threadId, since }) => [
      name.replace(CONTROL, toEscape),
      mode,
      String(pid),
      String(threadId),
      since,
    ]);
    process.stdout.write(all.length === 0 ? '' : table([HEAD, ...rows]));
  } catch (error) {
    process.stderr.write(`sablock: ${error.message}\n`);
    process.exitCode = 1;
  }
};
