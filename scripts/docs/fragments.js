// The names that the fragments of code in README.md, the guides and index.d.ts may use. Each fragment runs in a worker of its
// own, as the body of an async function with these parameters.

const { isMainThread, Worker } = require('node:worker_threads');
const sablock = require('../..');

const memory = new SharedArrayBuffer(64);
const { signal } = new AbortController();

const names = {
  ...sablock,
  memory,
  signal,
  mutex: new sablock.Mutex(memory, 0),
  /** Behind the bytes of a condition at offset 4. Not zero, so that waiting for that ends at once. */
  count: new Int32Array(memory, 8, 1).fill(1),
  table: new Int32Array(memory, 12, 4),
  /** Has the value with which the fragments call `wait` and `waitAsync`. */
  array: new Int32Array(memory, 32, 1).fill(5),
  lock: new sablock.RwLock(new SharedArrayBuffer(8)),
  latch: new sablock.Latch(new SharedArrayBuffer(4)),
  work: () => {},
  from: { lock: new sablock.Mutex(memory, 48), balance: 100 },
  to: { lock: new sablock.Mutex(memory, 52), balance: 0 },
  transfer: async (from, to, amount) => {
    await null;
    from.balance -= amount;
    to.balance += amount;
  },
  connections: new sablock.Semaphore(new SharedArrayBuffer(4), 0, 4),
  jobs: new sablock.Semaphore(new SharedArrayBuffer(4), 0, 8),
  connection: {},
  query: () => [],
  barrier: new sablock.Barrier(new SharedArrayBuffer(8), 0, 1),
  steps: 2,
  compute: () => {},
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
