import type { LockGuard } from './lockable';
import type { AsyncLockOptions, LockOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/** Options of the constructor of {@link Mutex}. */
export interface MutexOptions {
  /**
   * Whether `lock`, `acquire` and `executeLockedSync` may block the main thread. Default: `false`, because a blocked main
   * thread handles no events. Means nothing in a worker, which may always block.
   */
  allowMainThread?: boolean | undefined;
  /**
   * Whether an event loop that awaits the mutex may sleep for a moment when it comes for it and finds it held: see
   * {@link Mutex.lockAsync}. Default: `true`. With `false`, no wait of this object ever delays other work of its thread.
   * Instead, once the event loop has come in vain, the mutex is kept free for it: for a twentieth of the time that it has
   * waited, from 1 to 256 ms, but for at most 10 ms in all while a thread is blocked for it. An event loop whose turns are
   * longer than that may come in vain for many turns. The waits of `lockAllAsync` may still sleep.
   */
  maySleep?: boolean | undefined;
  /**
   * The name by which error messages, warnings, `inspect()`, `inspectAll()`, `console.log()` and diagnostics channels call the
   * mutex in this thread. A name is not shared: each thread names its own objects.
   */
  name?: string | undefined;
  /**
   * Repairs the data after a thread has ended while it held the mutex. Called with the mutex, which is held and
   * {@link Mutex.abandoned}, by every verb of this object that acquires it in that state (also `tryLock`, and locking again
   * after a wait for a {@link Condition}), before the verb returns or its promise settles. It takes the place of the warning
   * `SABLOCK_ABANDONED`. When it returns, the mutex is consistent, as after {@link Mutex.markConsistent}.
   *
   * It must not return a promise: that is `ERR_INVALID_ARG_TYPE`. If it throws, the mutex is unlocked, the mark stays for the
   * next holder, and the verb throws or rejects with the same error.
   */
  onAbandoned?: ((mutex: Mutex) => void) | undefined;
}

/** One waiter of a {@link MutexInspection}. */
export interface MutexWaiter {
  /** The `threadId` (of `node:worker_threads`) of the thread that waits. */
  threadId: number;
  /** `'blocking'`: the thread sleeps in `lock`. `'async'`: a promise is pending there. */
  kind: 'blocking' | 'async';
  /** The mode in which it will hold the mutex. */
  mode: 'exclusive';
  /** For how long it has waited, in milliseconds. */
  waitedMs: number;
}

/** One holder of a {@link MutexInspection}. */
export interface MutexHolder {
  /** The `threadId` (of `node:worker_threads`) of the thread that holds; it may have ended. */
  threadId: number;
  /** The mode in which it holds the mutex. */
  mode: 'exclusive';
  /** The number of its holds. */
  count: number;
}

/** The result of {@link Mutex.inspect}. */
export interface MutexInspection {
  /** The name that this thread gave to the mutex; `null` without one. */
  name: string | null;
  /** Whether a thread holds the mutex; also true after the holder's thread has ended, until another takes it. */
  locked: boolean;
  /**
   * The `threadId` of the holder's thread, which may have ended; `null` if no thread holds it, or sablock did not write the
   * word.
   */
  ownerThreadId: number | null;
  /** Whether a thread has ended while it held the mutex, and `markConsistent` has not been called since. */
  abandoned: boolean;
  /** The holder: one thread, or none. */
  holders: MutexHolder[];
  /** The waiters, in the order of the queue. */
  waiters: MutexWaiter[];
}

/**
 * A mutual-exclusion lock on four bytes of shared memory.
 *
 * Zeroed memory is an unlocked mutex. Any number of `Mutex` objects, in any threads, may be made on the same four bytes: the
 * lock is the memory, and the objects hold no state. What a thread wrote before it unlocks is seen by the next holder.
 *
 * **Fairness.** Blocked threads and pending promises wait in one queue, first come, first served, with two exceptions:
 * a free mutex may be taken by a running thread before a sleeping one is awake (at most for about a millisecond, after
 * which the mutex is handed over directly), and an event loop that is busy when its turn comes is passed by. While an idle
 * event loop wakes up, one blocked thread behind it may pass it, and several where holds are shorter than a wake-up.
 * The waits of one thread's `lockAsync` are served in the order of the calls. An event loop that comes for the mutex and finds
 * it held may sleep for a moment: see {@link Mutex.lockAsync}.
 *
 * **For one process.** Send the buffer to another thread and make a `Mutex` there; a `Mutex` does not survive `postMessage`,
 * which refuses it with a DataCloneError (Node.js before 22.12 sends an empty object).
 *
 * **Not re-entrant.** The holder is a thread. A second `lock` of a thread that holds the mutex, by itself or by one of its
 * asynchronous tasks, throws a {@link DeadlockError}; a second `lockAsync` waits for the first to be unlocked.
 *
 * **Threads may end anywhere.** If a thread ends while it holds the mutex, however it ends, the next thread to lock it gets
 * it, sees {@link Mutex.abandoned}, and emits a process warning with the code `SABLOCK_ABANDONED`. A thread emits at most
 * five of these warnings in a second, then one line for the rest. {@link MutexOptions.onAbandoned} takes their place.
 *
 * @example
 * ```js
 * import { Mutex } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(8);
 * const mutex = new Mutex(memory, 0);
 * const total = new Int32Array(memory, 4, 1);
 * await mutex.executeLocked(() => {
 *   total[0] += 1;
 * });
 * ```
 */
export class Mutex extends Primitive {
  /** The number of bytes that a mutex takes. */
  static readonly BYTES: 4;

  /**
   * Makes an object for the mutex at this place in shared memory. The memory is not changed. In any thread.
   *
   * @param buffer Shared memory: a `SharedArrayBuffer` of any realm, growable or not, or the buffer of a shared
   *   `WebAssembly.Memory` (in TypeScript `memory.buffer as unknown as SharedArrayBuffer`). The object keeps it alive.
   * @param byteOffset Where the four bytes begin: 0 or more, a multiple of 4, `byteOffset + 4 <= buffer.byteLength`.
   *   Default: 0. As in `new Int32Array(buffer, byteOffset)`.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if the four bytes do not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: MutexOptions);

  /**
   * Locks the mutex. **Blocks** this thread until then; workers only, unless `allowMainThread`.
   *
   * The event loop stands still meanwhile. `worker.terminate()`, `process.exit()` and an uncaught error elsewhere end the
   * wait within 100 ms; the debugger can pause the thread.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever.
   * @returns `true`: locked. `false`: the time was over, and nothing is held.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, locked or not.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end, also where code that the thread runs during the
   *   wait (a subscriber of `sablock:long-hold`) has locked the mutex.
   * @throws `ERR_LOCK_THREAD_ENDING` if the thread is ending: microtasks that still run after an uncaught error get it.
   *   Listeners of `'exit'` run before that, and wait.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write, also if it is overwritten during the wait.
   * @throws `ERR_INVALID_ARG_TYPE` if `timeout` is neither a number nor an options object.
   * @example
   * ```js
   * if (mutex.lock(50)) {
   *   try {
   *     table[0] += 1;
   *   } finally {
   *     mutex.unlock();
   *   }
   * }
   * ```
   */
  lock(timeout?: Timeout | LockOptions): boolean;

  /**
   * Locks the mutex, and returns a promise of that at once. In any thread; never throws.
   *
   * The event loop goes on meanwhile, but may block its thread for up to 10 ms ({@link MutexOptions.maySleep} `false`: never): when it
   * comes for the mutex and finds it held, it may sleep until it is handed the mutex, for at most a tenth of the time that it has
   * waited and at most 10 ms, once in a turn of the loop.
   * Without that, a loop with long turns would hardly ever find the mutex free. It sleeps only for a holder in another
   * thread that can run.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of `true`: locked; or of `false`: the time was over, and nothing is held. Rejected with the signal's
   *   `reason` if it aborts first; with `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE`, or `ERR_LOCK_NO_THREAD` if the system
   *   refuses the background thread that a timeout needs. If the memory is overwritten during the wait, only a timeout or a
   *   signal is sure to end it.
   * @example
   * ```js
   * if (await mutex.lockAsync({ timeout: 1000, signal })) {
   *   try {
   *     await save(table);
   *   } finally {
   *     mutex.unlock();
   *   }
   * }
   * ```
   */
  lockAsync(timeout?: Timeout | AsyncLockOptions): Promise<boolean>;

  /**
   * Locks the mutex if that is possible at once, even if others wait for it. In any thread; never blocks.
   *
   * @returns `true`: locked. `false`: a thread holds it, or it is kept for a moment for an event loop that is about to take it.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  tryLock(): boolean;

  /**
   * Unlocks what this thread locked with `lock`, `lockAsync` or `tryLock`. Never blocks.
   *
   * A hold of `acquire*`, `executeLocked*` or `enter` belongs to a guard, and is freed by that guard only.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold the mutex in this way; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  unlock(): void;

  /**
   * Runs `fn` while it holds the mutex. In any thread; never throws. Waits as {@link Mutex.lockAsync}.
   *
   * @param fn Called without arguments once the mutex is held. If it returns a promise, the mutex is held until that settles.
   * @returns A promise of what `fn` returns. The mutex is unlocked before it settles, whatever `fn` does; a
   *   {@link Condition.waitAsync} that `fn` has not awaited does not lock it again. Rejected with what `fn` throws, with
   *   `ERR_LOCK_TIMEOUT` if the time was over (`fn` is not called then), or as {@link Mutex.lockAsync}.
   * @example
   * ```js
   * const rows = await mutex.executeLocked(() => readRows(table), { timeout: 500 });
   * ```
   */
  executeLocked<T>(fn: () => T | PromiseLike<T>, options?: AsyncLockOptions): Promise<T>;

  /**
   * Runs `fn` while it holds the mutex. **Blocks** this thread; workers only, unless `allowMainThread`.
   *
   * @param fn Called without arguments once the mutex is held; must not return a promise.
   * @returns What `fn` returns. The mutex is unlocked by then, also if `fn` throws, and a {@link Condition.waitAsync} that `fn`
   *   has begun does not lock it again.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over; `fn` is not called then.
   * @throws `ERR_INVALID_ARG_TYPE` if `fn` is no function, or returns a promise (the mutex is unlocked then).
   * @throws As {@link Mutex.lock}, and what `fn` throws.
   */
  executeLockedSync<T>(fn: () => T, options?: LockOptions): T;

  /**
   * Locks the mutex and returns a guard that unlocks it. **Blocks** this thread; workers only, unless `allowMainThread`.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over (`null` would let a `using` block run unlocked).
   * @throws As {@link Mutex.lock}.
   * @example
   * ```js
   * using guard = mutex.acquire();
   * table[0] += 1;
   * ```
   */
  acquire(timeout?: Timeout | LockOptions): LockGuard;

  /**
   * Locks the mutex, and returns a promise of a guard that unlocks it. In any thread; never throws. Waits as
   * {@link Mutex.lockAsync}.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of the guard. Rejected with `ERR_LOCK_TIMEOUT` if the time was over, or as {@link Mutex.lockAsync}.
   * @example
   * ```js
   * using guard = await mutex.acquireAsync({ timeout: 1000 });
   * await save(table);
   * ```
   */
  acquireAsync(timeout?: Timeout | AsyncLockOptions): Promise<LockGuard>;

  /**
   * Locks the mutex if that is possible at once, and returns a guard that unlocks it. In any thread; never blocks.
   *
   * @returns The guard, or `null` where {@link Mutex.tryLock} returns `false`.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  tryAcquire(): LockGuard | null;

  /**
   * The callback style: waits as {@link Mutex.lockAsync} does, then calls `callback` with a token. In any thread.
   *
   * The callback never runs inside `enter` or `leave`. The hold stays with the token until it is given to `leave`, also if
   * the callback throws, which is an uncaught error. If the mutex cannot be had (`ERR_LOCK_CORRUPT`), the callback is never
   * called, and that is an unhandled rejection.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `callback` is no function.
   * @example
   * ```js
   * mutex.enter((token) => {
   *   table[0] += 1;
   *   setTimeout(() => mutex.leave(token), 10);
   * });
   * ```
   */
  enter(callback: (token: LockGuard) => void): void;

  /**
   * Frees the hold of a token of {@link Mutex.enter}. On the thread that got it; never blocks.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if `token` is anything but the token of the current hold; nothing changes then.
   */
  leave(token: LockGuard): void;

  /**
   * Whether a thread holds the mutex, or has ended while it held it: a snapshot for diagnosis, out of date when you read it.
   */
  readonly isLocked: boolean;

  /** Whether this thread holds the mutex, by itself, by a guard, or by one of its asynchronous tasks. */
  readonly isHeldByThisThread: boolean;

  /**
   * Whether this thread holds the mutex and an earlier holder's thread ended inside, so that the data may be half-written.
   * Stays so, for later holders too, until {@link Mutex.markConsistent}. One mark too many is possible (a thread that ends
   * in the instant in which it gets the lock), one too few is not.
   */
  readonly abandoned: boolean;

  /**
   * Says that the guarded data is sound again: `abandoned` is `false` from now on. For the holder only; never blocks.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold the mutex.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  markConsistent(): void;

  /**
   * Returns the holder of the mutex and its waiters: a snapshot for diagnosis, which never disturbs the lock.
   * In any thread; never blocks. Takes time in proportion to the number of waiters.
   *
   * @throws `ERR_LOCK_THREAD_ENDING` if the thread is ending, as {@link Mutex.lock}.
   * @example
   * ```js
   * console.table(mutex.inspect().waiters);
   * ```
   */
  inspect(): MutexInspection;
}
