// A thread's log, in memory of its own that survives it: what it waited for, what it held, whom it notified.
//
// A record is opened before the call that it is about, and its phase advances with what the thread knows. So the log of
// a thread that was killed says what it surely held (HELD), and where that is in doubt (BEGUN, LEAVING).

const PHASES = {
  EMPTY: 0,
  /** The verb is about to be called, or pending. */
  BEGUN: 1,
  /** The thread's code knows that it holds; of a wait for a notification, that it was notified. */
  HELD: 2,
  /** It is about to unlock; of a wait for a notification: its code knows that it was not. */
  LEAVING: 3,
  /** It has unlocked. */
  FREED: 4,
  /** The wait ended without a hold. */
  ENDED: 5,
};

/** QUEUED: a wait for a notification. HOP: one of the waits of a DeadlockError. USE: of something in things.js. */
const KINDS = { WAIT: 1, BUSY: 2, WARNING: 3, HOP: 4, QUEUED: 5, NOTIFY: 6, USE: 7 };

const OUTCOMES = {
  NONE: 0,
  HELD: 1,
  TIMED_OUT: 2,
  ABORTED: 3,
  DEADLOCK: 4,
  ERROR: 5,
  THREAD_ENDING: 6,
  NOTIFIED: 7,
  NOT_EQUAL: 8,
  /** By a BrokenBarrierError. */
  BROKEN: 9,
  /** By a once that was done. */
  REFUSED: 10,
};

/** Permits that go back by being forgotten and added again, in `cleared`; each is written behind the call that makes it so. */
const FORGOTTEN = { NOT_YET: 1, MISSING: 2, ADDED: 3 };

/** The fields of a record; ticks are of the arena's clock, times in milliseconds. */
const FIELDS = [
  'kind',
  /** The condition, in a wait for a notification and in a notification; in a use, what is used. */
  'mutex',
  'verb',
  'timeout',
  'beginTick',
  'beginTime',
  'heldTick',
  'heldTime',
  'sequence',
  'leftTick',
  'leftTime',
  'freedTick',
  'endTick',
  'endTime',
  'outcome',
  'abandoned',
  'cleared',
  /** The number of the call of its thread for this mutex, in a promise; in a hop, the wait that it is of. */
  'order',
  /**
   * The number of times that its thread's tasks had awaited, in a wait (in one for a notification, when it ended); in a warning or
   * a hop, the thread that it names.
   */
  'about',
  /** The tick when it surely stood in the queue, in a wait for a notification and in a use; 0: not known. */
  'queuedTick',
  /** The record of the hold of the mutex that it waits with, in a wait for a notification; -1: none. */
  'hold',
  /** The number that it was to wake, and that it woke, in a notification; in a use, how many permits; which party. */
  'count',
  /** In a use of an exchanger, the value that it got; in one of permits that are forgotten and added again, how many those are. */
  'woken',
];

const CAPACITY = 14_000;
/** Room for what a thread logs after it has seen that the log is full. */
const MARGIN = 1500;
const NOTES = 4096;
const HEADER = 32;
const PHASES_AT = HEADER * 4;
const FIELDS_AT = PHASES_AT + CAPACITY * 4;
const NOTES_AT = FIELDS_AT + CAPACITY * FIELDS.length * 8;
const FIELD = Object.fromEntries(FIELDS.map((name, index) => [name, index]));

// The header, for those who look on while the thread lives.
const STATE = {
  THREAD: 0,
  COUNT: 1,
  BLOCKED: 2,
  BLOCKED_SINCE: 3,
  HOLDING: 4,
  PENDING: 5,
  FATE: 6,
  NOTED: 7,
  MISUSES: 8,
  /** Behind the misuses. */
  BUSY: 24,
  /** When the thread met its fate. */
  FATE_TICK: 25,
  /** When it met the first one: after an uncaught error its other tasks go on, and each may meet one. */
  ENDING_TICK: 26,
};

/** Why a thread ended; DONE is the good end. */
const FATES = {
  RUNNING: 0,
  DONE: 1,
  EXITS: 2,
  THROWS: 3,
  RETURNS: 4,
  OVERFLOWS: 5,
  TERMINATED: 6,
  THROWS_IN_CALLBACK: 7,
};

class Log {
  constructor(memory) {
    this.memory = memory;
    this.state = new Int32Array(memory, 0, HEADER);
    this.phases = new Int32Array(memory, PHASES_AT, CAPACITY);
    this.fields = new Float64Array(memory, FIELDS_AT, CAPACITY * FIELDS.length);
    this.notes = new Uint8Array(memory, NOTES_AT, NOTES);
  }

  /** Makes it as new. */
  clear() {
    const count = Math.min(CAPACITY, this.state[STATE.COUNT]);
    this.phases.fill(0, 0, count);
    this.fields.fill(0, 0, count * FIELDS.length);
    this.state.fill(0);
  }

  get isFull() {
    return this.state[STATE.COUNT] > CAPACITY - MARGIN;
  }

  /** No room is left for more than a few records: only where nothing goes on any more. */
  get isSpent() {
    return this.state[STATE.COUNT] > CAPACITY - 100;
  }

  /** A new record with these fields; returns its index. */
  open(phase, fields) {
    const index = this.state[STATE.COUNT]++;
    if (index >= CAPACITY) throw new Error('The log is full.');
    this.write(index, fields);
    this.advance(index, phase);
    return index;
  }

  write(index, fields) {
    for (const name in fields) this.fields[index * FIELDS.length + FIELD[name]] = fields[name];
  }

  advance(index, phase) {
    Atomics.store(this.phases, index, phase);
  }

  /** The index in `fields` of one field of a record, for code that must write it without a call. */
  placeOf(index, name) {
    return index * FIELDS.length + FIELD[name];
  }

  phase(index) {
    return Atomics.load(this.phases, index);
  }

  /** One record as an object. */
  read(index) {
    const record = { index, phase: this.phases[index] };
    for (let field = 0; field < FIELDS.length; field++) {
      record[FIELDS[field]] = this.fields[index * FIELDS.length + field];
    }
    return record;
  }

  /** All records that were begun. */
  *records() {
    const count = Math.min(CAPACITY, this.state[STATE.COUNT]);
    for (let index = 0; index < count; index++) if (this.phases[index] !== PHASES.EMPTY) yield this.read(index);
  }

  /** Something that must not be, seen by the thread itself: `kind: text`. */
  complain(kind, text) {
    const bytes = Buffer.from(`${kind}: ${text}\n`);
    const from = this.state[STATE.NOTED];
    if (from + bytes.length > NOTES) return;
    this.notes.set(bytes, from);
    Atomics.store(this.state, STATE.NOTED, from + bytes.length);
  }

  get complaints() {
    const text = Buffer.from(this.notes.slice(0, this.state[STATE.NOTED])).toString();
    return text.split('\n').filter((line) => line !== '');
  }
}

exports.createLog = () => new Log(new SharedArrayBuffer(NOTES_AT + NOTES));
exports.Log = Log;
exports.CAPACITY = CAPACITY;
Object.assign(exports, { FATES, FORGOTTEN, KINDS, OUTCOMES, PHASES, STATE });
