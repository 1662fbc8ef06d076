/**
 * The lock doctor: says what hangs, what could hang, and what is slow, in all threads of a process, while the program runs.
 *
 * ```sh
 * node --require sablock/doctor app.js   # all threads; a report if there is something to report
 * npx sablock doctor app.js              # the same, and a report on SIGUSR2
 * ```
 *
 * It is for development, for tests, and for a program that hangs. A program that does not load it pays nothing.
 *
 * @module
 */

/**
 * The options of the doctor: what it looks for, and when it speaks. The first thread of the process that starts it decides
 * `longHoldMs`, `stuckMs` and `likelyMs`, and whether the report has contention and a trace; the rest is that of each thread.
 */
export interface DoctorOptions {
  /**
   * Whether to look for locks that are locked in different orders, which can deadlock although they have not yet. What code locks
   * while it holds more than 64 locks is left out. Locks without a name are known by their memory: a thread keeps 256 MB of buffers for
   * that, and its orders end with it unless another thread has locked them so, too.
   *
   * @default true
   */
  lockOrder?: boolean | undefined;
  /**
   * Whether to look for threads and tasks that wait for each other for ever.
   *
   * @default true
   */
  deadlocks?: boolean | undefined;
  /**
   * Whether waits are counted, by who waited and by whose unlock ended them.
   *
   * @default true
   */
  contention?: boolean | undefined;
  /**
   * Whether every wait is kept for {@link Doctor.writeTrace}, up to 200,000 of them.
   *
   * @default false
   */
  trace?: boolean | undefined;
  /**
   * Whether to look for guards that are garbage-collected while they hold. Held locks of names are not: they stay until they are unlocked.
   *
   * @default false
   */
  leaks?: boolean | undefined;
  /**
   * Whether reports say where something was done. Without places a hold costs less.
   *
   * @default true
   */
  places?: boolean | undefined;
  /**
   * A hold of this many milliseconds or more is reported as a long one; permits of a semaphore are not. `Infinity`: none is.
   *
   * @default 100
   */
  longHoldMs?: number | undefined;
  /**
   * A lock that has waiters, and whose holder has not changed for this many milliseconds, is stuck: the report is printed to
   * stderr, once, even if all threads are blocked. `Infinity`: never.
   *
   * @default 5000
   */
  stuckMs?: number | undefined;
  /**
   * Waits of tasks for each other that have lasted for this many milliseconds are reported as a likely deadlock. `Infinity`:
   * none is.
   *
   * @default 1000
   */
  likelyMs?: number | undefined;
  /**
   * Which waits of a deadlock fail with a `DeadlockError`, so that the others can go on. `false` and `true`: a call without a timeout
   * that would block its thread in a certain one throws, as it does without the doctor. `'likely'`: of a likely one, the awaited
   * wait that began last is rejected too. (A thread that is blocked can be told nothing.)
   *
   * @default false
   */
  throwOnDeadlock?: boolean | 'likely' | undefined;
}

/** The place in the code where something was done. */
export interface Place {
  /** By which thread: 0 is the main one; -1 stands for several that have ended, if there were many. */
  threadId: number;
  /** The user's frames, `function (file:line:column)`, innermost first. Empty if it is not known. */
  stack: string[];
}

/** A lock as reports name it. */
export interface LockName {
  /** Its name; `null` if it has none. Locks of one name are one class. */
  name: string | null;
  /** Its class, `'Mutex'` for example. */
  kind: string;
  /** Its place in its buffer; `null` if it has none. */
  byteOffset: number | null;
}

/** One lock was locked while another was held. */
export interface LockOrderEdge {
  /** The lock that was held. */
  from: LockName;
  /** The lock that was locked meanwhile. */
  to: LockName;
  /** The place where the first was locked, when this was seen for the first time. */
  held: Place;
  /** The place where the second was locked. */
  locked: Place;
}

/** One wait of a deadlock. */
export interface DeadlockWait {
  /** The lock that it waits for. */
  lock: LockName;
  /** The holder of that. */
  holder: Place | null;
  /** The waiter. */
  waiter: Place;
  /** For how long it had waited when the deadlock was found, in milliseconds. */
  waitedMs: number;
}

/** Waits in a circle: each is for what the next waiter holds. */
export interface TaskDeadlock {
  /**
   * `'certain'`: threads are blocked, each for what the next one holds, so that none of them can go on. `'likely'`: functions
   * that hold await these waits, and have for `likelyMs`; code that the doctor does not know could still end one of them.
   */
  certainty: 'certain' | 'likely';
  /** The waits, in the order of the cycle. */
  waits: DeadlockWait[];
}

/** Waits at one place, or ended by the unlock there. */
export interface Delay {
  /** The place. */
  place: Place;
  /** The number of waits. */
  waits: number;
  /** The time that they took together, in milliseconds. */
  totalMs: number;
}

/** The waits for one lock. */
export interface Contention {
  /** The lock, or the first that was seen of its class. */
  lock: LockName;
  /** The number of waits. */
  waits: number;
  /** The time that they took together, in milliseconds. */
  totalMs: number;
  /** The longest of them, in milliseconds. */
  maxMs: number;
  /** The waiters, the longest total first. */
  waiters: Delay[];
  /** Whose unlocks ended the waits, the longest total first. */
  unlockers: Delay[];
}

/** Locks in a circle: each was held while the next was locked. */
export interface LockCycle {
  /** One for each lock, in the order of the circle. */
  edges: LockOrderEdge[];
}

/** A hold of `longHoldMs` and more. */
export interface LongHold {
  /** The lock that was held. */
  lock: LockName;
  /** The holder, by where it was locked. */
  holder: Place | null;
  /** For how long it was seen, in milliseconds. */
  heldMs: number;
}

/** A hold whose thread has ended. */
export interface UnreleasedHold {
  /** The lock that was held. */
  lock: LockName;
  /** The holder, by where it was locked. */
  holder: Place | null;
}

/** A guard that was collected while it held. */
export interface Leak {
  /** The lock that it holds. */
  lock: LockName;
  /** The place where it was locked. */
  place: Place | null;
}

/** A lock that had waiters while its holder did not change. */
export interface StuckLock {
  /** Which one. */
  lock: LockName;
  /** The holders, by where it was locked: all of them, of permits and of what is shared. */
  holders: Place[];
  /**
   * The holder of a lock of the machine or of a store that is not of this process; else `null`. Stores are asked for it by the event
   * loop that waits: for a thread that blocks it is not known.
   */
  outside: OutsideHolder | null;
  /** The waiters, in the order of the queue. */
  waiters: Place[];
}

/** A wait that has not ended. */
export interface PendingWait {
  /** The thing that it waits for: a lock, an event, a latch, a condition, ... */
  lock: LockName;
  /** The waiter. */
  waiter: Place;
  /** For how long, in milliseconds. */
  waitedMs: number;
  /** The holders. Empty if they are not known, or there is nothing to hold. */
  holders: Place[];
  /** The holder of a lock of the machine or of a store, if it is not of this process and known; else `null`. */
  outside: OutsideHolder | null;
}

/** A holder of a lock of the machine, or of a store, in another process. What is not known is `null`. */
export interface OutsideHolder {
  /** The session that holds a lock of a store, as `query()` of its manager lists it. */
  clientId: string | null;
  /** The process; of PostgreSQL, that of the server's session. */
  pid: number | null;
  /** For how long it has held it, in milliseconds. */
  heldMs: number | null;
}

/**
 * The report: what the doctor has found in the process since it was started. Plain data. Of deadlocks, stuck locks, leaks, long
 * holds and holds that are never released, the last 1,000 of each are kept.
 */
export interface DoctorReport {
  /** Cycles of locks that were held while the next was locked: orders that can deadlock. */
  lockOrder: LockCycle[];
  /** Locks of one class, of one name for example, that were locked one inside of the other: of each class the first sighting. */
  sameClass: LockOrderEdge[];
  /** Waits of tasks and threads for each other. */
  deadlocks: TaskDeadlock[];
  /**
   * Locks that were waited for, the longest total first. Locks without a name whose memory is gone, and names that were not used for
   * long, are one entry, of the kind `Locks used before`.
   */
  contention: Contention[];
  /** Holds of `longHoldMs` and more, the longest first. */
  longHolds: LongHold[];
  /** The holds of threads that ended, by themselves or because others terminated them. */
  neverReleased: UnreleasedHold[];
  /** Guards that were collected while they held. */
  leaks: Leak[];
  /** Locks that were stuck, as they were then. */
  stuck: StuckLock[];
  /** The waits of this moment, the longest first. An idle consumer waits too: what is stuck is in `stuck`. */
  waiting: PendingWait[];
  /** Threads that use locks, and in which the doctor does not run: what they do is not in the report. */
  threadsWithoutDoctor: number[];
  /**
   * Files of bundles that this package is part of. Where the bundle is minified, frames of the package are shown as yours there: leave
   * the package external.
   */
  bundles: string[];
}

/** The doctor of this thread. All threads of the process share one report. */
export interface Doctor {
  /** Returns what was found in the process. */
  report(): DoctorReport;
  /** Prints the report to stderr: what hangs, what could, and what is slow. */
  print(): void;
  /**
   * Writes the delay as a profile in the format of pprof, `contentions/count` and `delay/nanoseconds` by call site.
   *
   * @param file The path of the file, `locks.pb.gz` for example: it is compressed.
   * @param options `by: 'unlocker'`, the default, gives the delay to those whose unlocks ended it, as Go's mutex profile does;
   * `by: 'waiter'` gives it to those who waited, as Go's block profile does.
   */
  writeProfile(file: string, options?: { by?: 'unlocker' | 'waiter' | undefined }): void;
  /**
   * Writes the waits and the contended holds of each thread in the Chrome trace format, which Perfetto draws. Needs the option
   * `trace`.
   *
   * @param file The path of the file, `locks.json` for example.
   */
  writeTrace(file: string): void;
  /** Ends it in this thread: all is as before. */
  stop(): void;
}

/**
 * Starts the doctor in this thread. If it runs there already, because of `--require` for example, returns that one, whose options
 * stay as they are. Workers start it themselves, unless the process was started with `--require sablock/doctor`.
 *
 * If the system refuses the doctor a thread, the process gets a warning with the code `ERR_LOCK_NO_THREAD`: the doctor prints nothing
 * when the program is stuck, nor on signals, but {@link Doctor.report} and {@link Doctor.print} work as ever.
 *
 * @example
 * ```js
 * const { Mutex } = require('sablock');
 * const { start } = require('sablock/doctor');
 *
 * const doctor = start({ stuckMs: 1000 });
 * const memory = new SharedArrayBuffer(8);
 * const from = new Mutex(memory, 0, { name: 'from' });
 * const to = new Mutex(memory, 4, { name: 'to' });
 * const both = (one, other) => one.executeLocked(() => other.executeLocked(() => {}));
 * both(from, to)
 *   .then(() => both(to, from))
 *   .then(() => {
 *     for (const { edges } of doctor.report().lockOrder) {
 *       console.log(edges.map(({ from, to }) => `${from.name} then ${to.name}`).join(', '));
 *     }
 *     doctor.stop();
 *   });
 * // prints from then to, to then from
 * ```
 */
export function start(options?: DoctorOptions): Doctor;
