// The shared memory of one generation: a primitive of each kind, plain memory that shows who is inside, and each worker's
// ledger of what it holds.

const { AutoResetEvent, Barrier, Latch, LockTable, Mutex, Once, RwLock, Semaphore, layout } = require('../package.js');

const PERMITS = 3;
const LOCKS = 4;
const ONCES = 4;
/** The number of workers, one after the other, in a generation. */
const SLOTS = 10;
const NOTE_BYTES = 1024;

/** The columns: what can be held, and where in the ledger it stands: the locks of the table and the onces have a column each. */
const COLUMNS = { READ: 0, WRITE: 1, PERMITS: 2, ENTRY: 3, MEMBER: 4, MUTEX: 5, FAIR: 6, LOCK: 7, ONCE: 7 + LOCKS };
const WIDTH = COLUMNS.ONCE + ONCES;

/** A worker has started; it has had a turn. */
const STAGES = { READY: 1, TURNED: 2 };
const CELLS = { TURNS: 0, NOTED: 1, ARRIVALS: 2, PASSES: 3 };

const onces = Object.fromEntries(Array.from({ length: ONCES }, (_, index) => [`once${index}`, Once]));

/** The things that the worker in each slot waits for until it ends; see kinds/late.js. */
const LATE = { event: AutoResetEvent, mutex: Mutex, rw: RwLock, semaphore: [Semaphore, PERMITS] };
const late = Object.fromEntries(
  Array.from({ length: SLOTS }, (_, slot) =>
    Object.entries(LATE).map(([name, type]) => [`${name}${slot}`, type]),
  ).flat(),
);

const PLACES = layout({
  cells: [Int32Array, 8],
  rw: RwLock,
  semaphore: [Semaphore, PERMITS],
  /** In strict order. */
  fair: [Semaphore, PERMITS, { fair: true }],
  latch: Latch,
  /** Threads join it, and nobody waits. */
  members: [Barrier, 2],
  /** Threads wait at it. */
  rounds: [Barrier, 2],
  mutex: Mutex,
  table: [LockTable, LOCKS],
  ...onces,
  ...late,
  /** The one that is inside, by column, as it wrote itself; 0: nobody. Changed without atomics. */
  inside: [Int32Array, WIDTH],
  /** A number that a writer changes in two steps. */
  pair: [Int32Array, 2],
  /** The holders of permits, one for each. */
  seats: [Int32Array, PERMITS],
  fairSeats: [Int32Array, PERMITS],
  /** The number of times that each once was run to its end. */
  runs: [Int32Array, ONCES],
  /** The stage of each worker, and of those that are about to be terminated. */
  stages: [Int32Array, SLOTS],
  doomed: [Int32Array, SLOTS],
  /** Two numbers for each worker and column: what it surely holds, and what it may hold. */
  ledger: [Int32Array, SLOTS * WIDTH * 2],
  note: [Uint8Array, NOTE_BYTES],
});

exports.create = () => PLACES.create();

/** The same memory in any thread. */
exports.on = (buffer) => {
  const places = PLACES.on(buffer);
  return {
    ...places,
    onces: Object.keys(onces).map((name) => places[name]),
    late: Array.from({ length: SLOTS }, (_, slot) =>
      Object.fromEntries(Object.keys(LATE).map((name) => [name, places[`${name}${slot}`]])),
    ),
  };
};

/** Says what must not be; only the first has room. */
exports.complain = ({ cells, note }, text) => {
  if (Atomics.compareExchange(cells, CELLS.NOTED, 0, 1) !== 0) return;
  note.set(Buffer.from(text).subarray(0, NOTE_BYTES));
};

/** Returns what was said, or undefined. */
exports.complaint = ({ cells, note }) => {
  if (Atomics.load(cells, CELLS.NOTED) === 0) return undefined;
  const bytes = Buffer.from(note.slice());
  return bytes.subarray(0, bytes.indexOf(0)).toString() || 'a worker complained and was terminated while it did';
};

/** Returns what the worker in `slot` surely held of a column when it ended, and what it may have held. */
exports.entryOf = ({ ledger }, slot, column) => {
  const at = (slot * WIDTH + column) * 2;
  return { sure: ledger[at], possible: ledger[at + 1] };
};

Object.assign(exports, { CELLS, COLUMNS, LOCKS, ONCES, PERMITS, SLOTS, STAGES, WIDTH });
