import type { AsyncLockOptions, LockOptions, SynchronizerOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/** Options of the constructor of {@link Semaphore}. */
export interface SemaphoreOptions extends SynchronizerOptions {
  /**
   * Whether permits go strictly to the request that came first; see {@link Semaphore}. The same in every thread. Default:
   * `false`.
   */
  fair?: boolean | undefined;
}

/** Options of {@link Semaphore.executeSync}. */
export interface PermitsOptions extends LockOptions {
  /** The number of permits to take: an integer from 1 to {@link Semaphore.MAX_PERMITS}. Default: 1. */
  permits?: number | undefined;
}

/** Options of {@link Semaphore.execute}. */
export interface AsyncPermitsOptions extends AsyncLockOptions {
  /** As {@link PermitsOptions.permits}. */
  permits?: number | undefined;
}

/** The result of {@link Semaphore.inspect}. */
export interface SemaphoreInspection {
  /** The name that this thread gave to the semaphore; `null` without one. */
  name: string | null;
  /** The holders of permits in {@link SemaphorePermits}, in no order. */
  holders: {
    /** The `threadId` (of `node:worker_threads`) of the thread that holds them. */
    threadId: number;
    /** It holds permits. */
    mode: 'permits';
    /** The number of its permits. */
    count: number;
  }[];
  /** The waiters, in the order of the queue. */
  waiters: {
    /** The `threadId` of the thread that waits. */
    threadId: number;
    /** `'blocking'`: the thread sleeps. `'async'`: a promise is pending there. */
    kind: 'blocking' | 'async';
    /** It waits for permits. */
    mode: 'permits';
    /** For how long it has waited, in milliseconds. */
    waitedMs: number;
  }[];
}

/**
 * A number of permits in four bytes of shared memory, which threads take, and give back or use up.
 *
 * Zeroed memory has all permits: the memory holds the difference to the number that each thread gives to the constructor,
 * which must be the same everywhere. With 0 permits it is a semaphore for signalling: {@link Semaphore.release} adds what others
 * wait for. What a thread wrote before it gave permits back, or added some, is seen by those who get them.
 *
 * **Nobody starves.** A running thread may take free permits before a waiting thread is awake, for about a millisecond. After
 * that, permits that come back are handed to the first waiter. For a request for several permits they are gathered, and no
 * later request passes it, not even a small one that could be served; so a request for more permits than there are keeps later
 * ones waiting until permits are added. A busy event loop delays nobody, because permits are gathered for it only after it has
 * come in vain; nor does a blocked thread that the debugger has paused.
 *
 * **`{ fair: true }`: strict order.** Blocked threads and pending promises get permits in the order in which they came, and
 * nobody overtakes. What is granted to an event loop that is busy waits for it, at most until the timeout of its request, and
 * those behind wait longer.
 * Under contention this is many times slower, since each permit waits until the thread that is next has woken up. All threads
 * must give the same option: a request that finds waiters of the other kind gets an `ERR_LOCK_CORRUPT` that names both.
 *
 * **Threads may end anywhere.** Permits that a thread holds in {@link SemaphorePermits} when it ends, however it ends, go
 * back, and to those who wait. Forgotten ones do not. Permits whose object was dropped stay taken until the thread ends.
 *
 * **Not re-entrant, and no deadlocks are found:** any thread may add permits, so no wait is known to last for ever. A thread
 * that waits for permits that it holds itself waits until others release.
 *
 * @example
 * ```js
 * import { Semaphore } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(Semaphore.BYTES);
 * const connections = new Semaphore(memory, 0, 4);
 * await connections.execute(async () => {
 *   console.log(`${connections.available} of 4 are free`);
 * });
 * ```
 */
export class Semaphore extends Primitive {
  /** The number of bytes that a semaphore takes. */
  static readonly BYTES: 4;
  /** No semaphore has more permits available, and no request is for more: 2^29 - 1. */
  static readonly MAX_PERMITS: number;

  /**
   * Makes an object for the semaphore at this place in shared memory. The memory is not changed. In any thread.
   *
   * @param buffer As in the constructor of {@link Mutex}.
   * @param byteOffset As in the constructor of {@link Mutex}.
   * @param permits How many permits there are at first: an integer from 0 to {@link Semaphore.MAX_PERMITS}. The same number in
   *   every thread.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, `permits` is missing, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` for `permits`, and if the four bytes do not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset: number | undefined, permits: number, options?: SemaphoreOptions);

  /** Whether it is strictly first come, first served, as the constructor's options said. */
  readonly fair: boolean;

  /**
   * Takes permits. **Blocks** this thread until there are enough and its turn has come; workers only, unless
   * `allowMainThread`. Ends early as {@link Mutex.lock}.
   *
   * @param permits How many: an integer from 1 to {@link Semaphore.MAX_PERMITS}. Default: 1. It may be more than the constructor's
   *   number: {@link Semaphore.release} may add what is missing.
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, whether there are permits or not.
   * @throws `ERR_LOCK_THREAD_ENDING`, `ERR_LOCK_CORRUPT` as {@link Mutex.lock}; `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` for its
   *   arguments.
   * @example
   * ```js
   * using permits = connections.acquire();
   * query(connection);
   * ```
   */
  acquire(permits?: number, timeout?: Timeout | LockOptions): SemaphorePermits;

  /**
   * Takes permits without blocking. In any thread; never throws.
   *
   * @param permits As {@link Semaphore.acquire}.
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of the permits. Rejected with `ERR_LOCK_TIMEOUT` if the time was over, with the signal's `reason` if it
   *   aborts first, with `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE`, or `ERR_LOCK_NO_THREAD` if the system
   *   refuses the background thread that a timeout needs.
   * @example
   * ```js
   * using permits = await connections.acquireAsync(2, { timeout: 1000 });
   * await query(connection);
   * ```
   */
  acquireAsync(permits?: number, timeout?: Timeout | AsyncLockOptions): Promise<SemaphorePermits>;

  /**
   * Takes permits if there are enough. In any thread; never blocks. Of a fair semaphore only if nobody waits; of any other only if
   * none are being gathered for a request of several.
   *
   * @param permits As {@link Semaphore.acquire}.
   * @returns The permits, or `null`: nothing was taken.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write; `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` for `permits`.
   */
  tryAcquire(permits?: number): SemaphorePermits | null;

  /**
   * Adds permits, which need not have been taken. In any thread; never blocks.
   *
   * @param n How many: an integer of 1 or more. Default: 1.
   * @throws `ERR_OUT_OF_RANGE` if more than {@link Semaphore.MAX_PERMITS} were available then; nothing changes.
   * @throws `ERR_INVALID_ARG_TYPE` if `n` is no number; `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  release(n?: number): void;

  /**
   * Runs `fn` while it holds permits. In any thread; never blocks, never throws.
   *
   * @param fn Called without arguments once the permits are there. If it returns a promise, they are held until that settles.
   * @returns A promise of what `fn` returns. The permits are back before it settles, whatever `fn` does. Rejected with what
   *   `fn` throws, or as {@link Semaphore.acquireAsync} (`fn` is not called then).
   * @example
   * ```js
   * const rows = await connections.execute(() => query(connection), { permits: 1, timeout: 500 });
   * ```
   */
  execute<T>(fn: () => T | PromiseLike<T>, options?: AsyncPermitsOptions): Promise<T>;

  /**
   * Runs `fn` while it holds permits. **Blocks** this thread; workers only, unless `allowMainThread`.
   *
   * @param fn Called without arguments once the permits are there; must return at once.
   * @returns What `fn` returns. The permits are back by then, also if `fn` throws.
   * @throws `ERR_INVALID_ARG_TYPE` if `fn` is no function, or returns a promise (the permits are back then).
   * @throws As {@link Semaphore.acquire}, and what `fn` throws.
   */
  executeSync<T>(fn: () => T, options?: PermitsOptions): T;

  /** The number of permits that are left, 0 or more: a snapshot, out of date when you read it. Permits that are being gathered for
   * a waiter count; those that are kept for an event loop until it comes do not. */
  readonly available: number;

  /**
   * Returns the holders of permits and the waiters: a snapshot for diagnosis, which disturbs no thread. In any thread; never
   * blocks.
   */
  inspect(): SemaphoreInspection;
}

/**
 * Permits that were taken together, by `acquire`, `acquireAsync` or `tryAcquire` of a {@link Semaphore}. They belong to their
 * thread, and each goes back once. With `using` (Node 24, or compiled) they are held until the block ends.
 *
 * @example
 * ```js
 * const permits = jobs.acquire(8);
 * permits.release(3); // five are left
 * permits.forget(); // these were jobs: used up
 * ```
 */
export class SemaphorePermits {
  private constructor();
  /** The semaphore that they are of. */
  readonly semaphore: Semaphore;
  /** The number of permits that it still holds. */
  readonly count: number;
  /**
   * Gives permits back. Never blocks.
   *
   * @param n How many: an integer from 1 to {@link SemaphorePermits.count}. Default: all that are left.
   * @returns `true`: given back. `false`: none was left, and nothing is touched.
   * @throws `ERR_OUT_OF_RANGE`, `ERR_INVALID_ARG_TYPE` for `n`; nothing changes then. `ERR_OUT_OF_RANGE` too if more than
   *   {@link Semaphore.MAX_PERMITS} were available then, since others were added meanwhile.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while they were held.
   */
  release(n?: number): boolean;
  /** Gives nothing back: the permits that are left count as used up, and belong to no thread. Never blocks. */
  forget(): void;
  /** As `release`, for `using`. */
  [Symbol.dispose](): void;
}
