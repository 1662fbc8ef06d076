/**
 * The time was over: from `acquire`, `acquireAsync`, `executeLocked` and `executeLockedSync`, from `execute` and `executeSync` of a
 * {@link Semaphore}, and from the verbs of a {@link Barrier} or an {@link Exchanger}. The message says which verb waited, for what, and what stands in its
 * way now (of a mutex, which thread holds it). The stack shows the async functions that await the verb's promise;
 * of `.then()` chains there are none.
 */
export class TimeoutError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'TimeoutError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_TIMEOUT';
}

/**
 * A lock ended while it was held: what keeps it has given it away, or may have. Locks of the process and of the machine do not
 * end so. The reason of {@link HeldLock.signal}, and the error of the request once its callback has ended; what that failed with
 * is the `cause`. Published on the channel `sablock:lost`.
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
   * `'unreachable'`: its store did not answer for so long that it may have given the lock away. `'taken'`: the store says that it
   * is not held any more. `'closed'`: its manager was closed. `'worker'`: the thread that kept it has ended.
   */
  readonly reason: 'unreachable' | 'taken' | 'closed' | 'worker';
  /** For how long it was held, in milliseconds. */
  readonly heldMs: number;
}

/**
 * A blocking wait without a timeout could never end: the thread holds the mutex itself (or another environment of Node.js that
 * runs on it does), or a circle of threads, all blocked without timeouts, wait for each other. Exactly one thread of the
 * circle gets it. The message names threads and mutexes.
 */
export class DeadlockError extends Error {
  private constructor();
  /** The name of the class. */
  readonly name: 'DeadlockError';
  /** The code of the error. */
  readonly code: 'ERR_LOCK_DEADLOCK';
  /** Who waits for what: each thread waits for a lock that the next one holds, the last for one that the first holds. */
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
