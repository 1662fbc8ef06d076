import type { Lockable, LockGuard } from './lockable';
import type { Primitive } from './primitive';

/** Options of the constructor of {@link RwLock}. */
export interface RwLockOptions {
  /** Whether the verbs that block may block the main thread. Default: `false`. As {@link MutexOptions.allowMainThread}. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.maySleep}, for waits behind a writer. */
  maySleep?: boolean | undefined;
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
  /**
   * Repairs the data after a thread has ended while it wrote. Called with the lock, held by `write` and marked, by every verb
   * of `write` of this object that acquires it in that state, and by `tryUpgrade`. The rest is as for
   * {@link MutexOptions.onAbandoned}; if it throws in `tryUpgrade`, the hold is shared again. Readers do not call it, and are
   * not warned if it is given.
   */
  onAbandoned?: ((lock: RwLock) => void) | undefined;
}

/** One holder of an {@link RwLockInspection}. */
export interface RwLockHolder {
  /** The `threadId` (of `node:worker_threads`) of the thread that holds; a writer's may have ended. */
  threadId: number;
  /** `'exclusive'`: it writes. `'shared'`: it reads. */
  mode: 'exclusive' | 'shared';
  /** The number of its holds. */
  count: number;
}

/** One waiter of an {@link RwLockInspection}. */
export interface RwLockWaiter {
  /** The `threadId` (of `node:worker_threads`) of the thread that waits. */
  threadId: number;
  /** `'blocking'`: the thread sleeps. `'async'`: a promise is pending there. */
  kind: 'blocking' | 'async';
  /** The mode in which it will hold the lock. */
  mode: 'exclusive' | 'shared';
  /** For how long it has waited, in milliseconds. */
  waitedMs: number;
}

/** The result of {@link RwLock.inspect}. */
export interface RwLockInspection {
  /** The name that this thread gave to the lock; `null` without one. */
  name: string | null;
  /** The holders: one writer, any number of readers, or no thread. */
  holders: RwLockHolder[];
  /** The waiters, in the order of the queue. */
  waiters: RwLockWaiter[];
}

/**
 * Many readers or one writer: a lock on eight bytes of shared memory, for data that is read often and written seldom.
 *
 * Zeroed memory is an unlocked lock. What {@link Mutex} says about objects, memory and processes holds here too. Readers
 * and writer use one set of verbs, that of {@link RwLock.read} and of {@link RwLock.write}.
 *
 * **Fairness.** Readers and writers wait in one queue. A reader that comes while others wait queues behind them; readers that
 * are next to each other in the queue go in together. A newcomer may overtake those who wait within the same bound as for a
 * mutex. Neither side starves, however long holds are: a writer that waits gets in after the readers that are inside, and a
 * reader after at most two turns of writers that came later. An event loop that is busy when the lock is offered to it is
 * passed by, even by the readers that wait behind its write; one that is idle may be passed while it wakes up, as for a mutex.
 *
 * **Not re-entrant.** A blocking wait without a timeout that could never end throws a {@link DeadlockError}: write inside read
 * or write, read inside write, read inside read while a writer without a timeout waits in between (with nobody waiting, read
 * inside read is granted), and circles of threads, through several readers too. A pending write with a signal counts as one
 * without an end while its thread is blocked without a timeout: then no signal can abort it.
 *
 * **Threads may end anywhere.** The read holds of a thread that ends go back by themselves, unmarked. A thread that ends while
 * it writes leaves the lock {@link RwLock.abandoned} until `markConsistent`; the next to get in is warned, as for a mutex.
 *
 * There are no optimistic reads: JavaScript has no fence with which plain reads of shared memory could be validated.
 *
 * @example
 * ```js
 * import { RwLock } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(16);
 * const lock = new RwLock(memory, 0);
 * const rates = new Float64Array(memory, 8, 1);
 * await lock.write.executeLocked(() => {
 *   rates[0] = 1.25;
 * });
 * const rate = await lock.read.executeLocked(() => rates[0]);
 * ```
 */
export class RwLock extends Primitive {
  /** The number of bytes that an RwLock takes. */
  static readonly BYTES: 8;
  /** The number of read holds that there can be at the same time; more wait. */
  static readonly MAX_READERS: number;

  /**
   * Makes an object for the lock at this place in shared memory, as the constructor of {@link Mutex} does. The memory is not
   * changed. In any thread.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if the eight bytes do not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: RwLockOptions);

  /** To read, beside other readers. Always the same object. `tryLock` and `tryAcquire` fail while any thread waits. */
  readonly read: Lockable<RwLockGuard>;
  /** To write, alone. Always the same object. */
  readonly write: Lockable<RwLockGuard>;

  /**
   * Whether a thread holds `write`, or has ended with it and none has locked since: a snapshot, out of date when you read it.
   */
  readonly isWriteLocked: boolean;
  /** The number of read holds: a snapshot. A thread that reads twice counts twice. */
  readonly readers: number;
  /**
   * Whether this thread holds the lock, in either mode, and the thread of an earlier writer ended inside, so that the data may be
   * half-written. Stays so until {@link RwLock.markConsistent}.
   */
  readonly abandoned: boolean;

  /**
   * Says that the guarded data is sound again. For the holder of `write` only; never blocks.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not write.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  markConsistent(): void;

  /**
   * Turns what this thread locked by `write.lock`, `write.lockAsync` or `write.tryLock` into a hold of `read`, in one step; readers
   * at the head of the queue go in. Never blocks. A guard has {@link RwLockGuard.downgrade}.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold it in this way; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  downgrade(): void;

  /**
   * Turns what this thread locked by `read.lock`, `read.lockAsync` or `read.tryLock` into a hold of `write`, in one step. Never
   * blocks. A guard has {@link RwLockGuard.tryUpgrade}.
   *
   * @returns `true`: this thread writes. `false`: there are other read holds, or a thread waits; it still reads.
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold it in this way; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  tryUpgrade(): boolean;

  /**
   * Returns the holders of the lock, in which mode, and its waiters: a snapshot, which never disturbs the lock. In any thread;
   * never blocks. Takes time in proportion to the number of threads that have read and of waiters.
   */
  inspect(): RwLockInspection;
}

/**
 * One hold of an {@link RwLock}: made by `acquire`, `acquireAsync` and `tryAcquire` of `read` and `write`, and freed once.
 *
 * @example
 * ```js
 * const guard = lock.write.acquire();
 * table[0] += 1;
 * guard.downgrade();
 * const sum = table[0] + table[1];
 * guard.unlock();
 * ```
 */
export class RwLockGuard extends LockGuard<null> {
  private constructor();
  /** `'shared'` while it reads, `'exclusive'` while it writes; once it is spent, what it was last. */
  readonly mode: 'shared' | 'exclusive';
  /** `read` or `write` of its {@link RwLock}, as the mode says. */
  readonly lock: Lockable<RwLockGuard>;
  /**
   * Turns the exclusive hold into a shared one, in one step; readers at the head of the queue go in. Never blocks.
   *
   * @throws `ERR_LOCK_NOT_OWNER` in the wrong mode, once it is spent, and while the hold is away in
   *   {@link Condition.waitAsync}; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  downgrade(): void;
  /**
   * Turns the shared hold into an exclusive one if it is the only one. Never blocks.
   *
   * @returns `true`: it writes. `false`: there are other read holds, or a thread waits; it still reads.
   * @throws `ERR_LOCK_NOT_OWNER` in the wrong mode, and once it is spent; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  tryUpgrade(): boolean;
}
