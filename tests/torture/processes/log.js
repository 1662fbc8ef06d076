// The log of a run among processes. Each thread writes a file of its own, since not every system keeps what several append to one.
// The lines have the time of the clock that all processes of a machine share, by which they are put in order: what is written
// during a hold is between its beginning and its end.

const fs = require('node:fs');
const path = require('node:path');

/** Opens the file of one writer. */
exports.createLog = (folder, writer) => {
  const file = fs.openSync(path.join(folder, writer), 'w');
  return {
    write: (line) => fs.writeSync(file, `${process.hrtime.bigint()} ${line}\n`),
    close: () => fs.closeSync(file),
  };
};

/** All lines in order, without their times. */
exports.readLogs = (folder) => {
  const entries = [];
  for (const writer of fs.readdirSync(folder)) {
    // A writer that was killed may have left half a line.
    const lines = fs.readFileSync(path.join(folder, writer), 'utf8').split('\n').slice(0, -1);
    for (const line of lines) {
      const space = line.indexOf(' ');
      entries.push({ time: BigInt(line.slice(0, space)), line: line.slice(space + 1) });
    }
  }
  // Entries of one writer keep their order.
  return entries.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)).map(({ line }) => line);
};

/** Returns how many bytes were written so far. */
exports.sizeOfLogs = (folder) => {
  let size = 0;
  for (const writer of fs.readdirSync(folder)) size += fs.statSync(path.join(folder, writer)).size;
  return size;
};
