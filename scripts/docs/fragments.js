// What the fragments of code in README.md and index.d.ts take for granted. A fragment runs, alone, in a worker of its own,
// as the body of an async function that has these names.

const { isMainThread, Worker } = require('node:worker_threads');
const sablock = require('../..');

const memory = new SharedArrayBuffer(64);
const { signal } = new AbortController();

const names = {
  ...sablock,
  memory,
  signal,
  mutex: new sablock.Mutex(memory, 0),
  /** Beyond the bytes of a condition at offset 4; something is in stock. */
  count: new Int32Array(memory, 8, 1).fill(1),
  table: new Int32Array(memory, 12, 4),
  /** The functions that wait see the value that they are told to wait for. */
  array: new Int32Array(memory, 32, 1).fill(5),
  readRows: (table) => Array.from(table),
  save: async (table) => {
    await null;
    return table.slice();
  },
};

exports.NAMES = Object.keys(names);

/** `file` is the program that calls this. */
exports.run = (file, fragment) => {
  if (isMainThread) new Worker(file);
  else fragment(names);
};
