import type { MutexInspection } from './mutex';

/** One mutex as {@link inspectAll} returns it. */
export interface QueuedMutexInspection extends MutexInspection {
  /** The class of what it is: also of a lock of a {@link LockTable}. */
  kind: 'Mutex';
  /** The byte offset of the mutex in its buffer. */
  byteOffset: number;
}

/** Anything but a mutex as {@link inspectAll} returns it. */
export interface QueuedPrimitiveInspection extends PrimitiveInspection {
  /**
   * The class of what it is. `'Condition'`: waits for a {@link Condition}, or of {@link wait} and {@link waitAsync} at that place.
   * `'HeldLock'`: a name of a {@link LockManager}, with those of this process who hold it or wait.
   */
  kind:
    | 'RwLock'
    | 'Semaphore'
    | 'Latch'
    | 'Barrier'
    | 'Exchanger'
    | 'ManualResetEvent'
    | 'AutoResetEvent'
    | 'Once'
    | 'Condition'
    | 'HeldLock';
  /** The byte offset in its buffer; -1 for a name. */
  byteOffset: number;
}

/**
 * Every lock of the process, and every other primitive, that has waiters, each as its `inspect()` shows it, in no order: to
 * find out why a program hangs. In any thread; never blocks, and disturbs no lock. Takes time in proportion to the number of
 * waiters. Each is seen at one instant, but not all at the same. Names are those that this thread gave.
 *
 * @throws `ERR_LOCK_THREAD_ENDING` if the thread is ending, as {@link Mutex.lock}.
 * @example
 * ```js
 * const { inspectAll } = require('sablock');
 * setInterval(() => {
 *   for (const { kind, name, byteOffset, holders, waiters } of inspectAll()) {
 *     console.log(`${kind} ${name ?? byteOffset}: ${holders.length} threads hold it, ${waiters.length} wait`);
 *   }
 * }, 1000).unref();
 * ```
 */
export function inspectAll(): (QueuedMutexInspection | QueuedPrimitiveInspection)[];

/** The way in which a thread holds, or waits for, anything but a mutex; `'passage'`: it only waits to pass. */
export type HoldMode = 'exclusive' | 'shared' | 'permits' | 'entry' | 'member' | 'passage';

/** The holds of one thread, in one mode, as {@link PrimitiveInspection} shows them. */
export interface PrimitiveHolder {
  /** The thread's `threadId`. */
  threadId: number;
  /** The kind of these holds. */
  mode: HoldMode;
  /** The number of holds that the thread has in this mode. */
  count: number;
}

/** One wait, as {@link PrimitiveInspection} shows it. */
export interface PrimitiveWaiter {
  /** The `threadId` of the thread that waits. */
  threadId: number;
  /** Whether the thread is blocked, or its event loop waits for a promise. */
  kind: 'blocking' | 'async';
  /** The kind of hold that it waits for. */
  mode: HoldMode;
  /** For how many milliseconds it has waited. */
  waitedMs: number;
}

/** The holders of a primitive and its waiters. */
export interface PrimitiveInspection {
  /** The name that this thread gave to it; `null` without one. */
  name: string | null;
  /** The holders. */
  holders: PrimitiveHolder[];
  /** The waiters, in the order of the queue. */
  waiters: PrimitiveWaiter[];
}

/** The result of {@link stats}: plain numbers, of all threads of the process. All but the last two only grow. */
export interface Stats {
  /**
   * Acquisitions that had to wait in the queue, including those of threads that ended at that moment, or whose time was over before
   * their event loop came for it.
   */
  contended: number;
  /** The number of them that were handed straight to a blocked thread, asleep or about to be, instead of waking one to try. */
  handovers: number;
  /** The number of times that a free lock was kept for an event loop that was too busy to come in time. */
  passedBy: number;
  /** Waits that ended because their time was over; one try that fails is no wait. */
  timeouts: number;
  /** Waits that a signal cancelled. */
  aborts: number;
  /** Deadlocks found: one for each {@link DeadlockError}. */
  deadlocks: number;
  /**
   * Acquisitions that found that a thread had ended inside: one for each warning `SABLOCK_ABANDONED`, and for each turn of a
   * {@link Once} that found so.
   */
  abandoned: number;
  /**
   * Ended threads whose holds went back unmarked: read holds, permits, entries, memberships. Each thread counts once for each
   * primitive that it held.
   */
  ended: number;
  /**
   * The longest of the waits in `contended`, in milliseconds, of those that ended after the first call of `stats` in the
   * process: before, no clock is read for it.
   */
  longestWaitMs: number;
  /** The number of threads that are blocked in such a wait now. */
  blocked: number;
  /** The number of promises of such a wait that are pending now. */
  pending: number;
}

/**
 * Counts of all waits for locks, permits and turns of a {@link Once} in the process, since it began: subtract an earlier result
 * to get those of a time between. In any thread; never blocks. Takes some ten microseconds. Only waits are counted: to lock
 * what is free, even after a few microseconds of spinning, costs nothing and is not counted. Waits for notifications, events,
 * latches, barriers and exchangers are not counted either.
 *
 * @example
 * ```js
 * const { stats } = require('sablock');
 * const before = stats();
 * setTimeout(() => console.log(stats().contended - before.contended, 'waits in a second'), 1000);
 * ```
 */
export function stats(): Stats;
