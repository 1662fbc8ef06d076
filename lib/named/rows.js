// The rows in which the binding shows many names: a name each, and three numbers.

const clock = require('../load/clock.js');

/** The number of rows that are made in a turn: about a millisecond. */
const ROWS_IN_A_TURN = 2000;

/** Calls `add(name, one, other, third)` for each row; returns a promise of the end. */
exports.readRows = ({ names, rows }, add) => {
  let begin = 0;
  const addSome = (first, last) => {
    for (let index = first; index < last; index += 4) {
      const end = rows[index];
      add(names.slice(begin, end), rows[index + 1], rows[index + 2], rows[index + 3]);
      begin = end;
    }
  };
  return new Promise((resolve) => {
    const go = (first) => {
      const last = Math.min(first + 4 * ROWS_IN_A_TURN, rows.length);
      addSome(first, last);
      if (last < rows.length) clock.setImmediate(go, last);
      else resolve();
    };
    // If they are many, to see them was enough for this turn.
    if (rows.length > 4 * ROWS_IN_A_TURN) clock.setImmediate(go, 0);
    else go(0);
  });
};
