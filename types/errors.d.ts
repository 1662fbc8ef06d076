/**
 * The timeout of a wait is over: thrown by `acquire`, `acquireAsync`, `executeLocked` and `executeLockedSync`, by `execute` and
 * `executeSync` of a {@link Semaphore}, by {@link Once}, {@link lockAll}, {@link LockManager}, and the verbs of a
 * {@link Barrier} or an {@link Exchanger}. The message says which verb waited, for what, and why it is not free (of a mutex,
 * which thread holds it). The stack shows the async functions that await the verb's promise; it shows none for `.then()`
 * chains.
 */
export class TimeoutError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'TimeoutError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_TIMEOUT';
}

/**
 * A lock of a store was lost while it was held: the store has given it to another holder, or may have. Locks of the process and
 * of the machine are never lost. {@link HeldLock.signal} aborts with it, and the request rejects with it once its callback has
 * ended; if that has failed, its error is the `cause`. Published on the channel `sablock:lost`.
 */
export class LockLostError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'LockLostError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_LOST';
  /** The name of the lock. */
  readonly lockName: string;
  /** As {@link HeldLock.fence}. */
  readonly fence: bigint | null;
  /**
   * `'unreachable'`: its store did not answer for so long that it may have given the lock away. `'taken'`: the store says that
   * it is no longer held. `'closed'`: its manager was closed. `'worker'`: the thread that kept it has ended.
   */
  readonly reason: 'unreachable' | 'taken' | 'closed' | 'worker';
  /** For how long it was held, in milliseconds. */
  readonly heldMs: number;
}

/**
 * A blocking wait without a timeout could never end: the thread holds the mutex itself (or another environment of Node.js that
 * runs on it does), or a circle of threads, all blocked without timeouts, wait for each other. Exactly one thread of the
 * circle gets it. The message names threads and mutexes. What a promise for several locks has that has a timeout is in no circle:
 * it goes back when the time is over, whatever its thread does.
 */
export class DeadlockError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'DeadlockError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_DEADLOCK';
  /**
   * The threads of the cycle: each waits for a lock that the next one holds, the last for one that the first holds. Of more than
   * 28 threads, the first 28.
   */
  readonly cycle: ReadonlyArray<{
    /** The `threadId` of the thread that waits. */
    threadId: number;
    /** The byte offset of the lock that it waits for; -1 for one of a {@link LockManager}. */
    byteOffset: number;
    /** The name of that, if it is one of a {@link LockManager}. */
    name?: string;
  }>;
}

/** The {@link Barrier} is broken, or broke during the wait: not all parties will come. See {@link Barrier.reset}. */
export class BrokenBarrierError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'BrokenBarrierError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_BROKEN';
}
