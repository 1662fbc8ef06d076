/// <reference lib="es2022" />
/// <reference lib="esnext.disposable" />
/// <reference path="./diagnostics-channels.d.ts" />

/**
 * How long to wait, in milliseconds.
 *
 * `undefined`, `NaN` and `Infinity` wait for ever; zero and less try once and do not wait; fractions count.
 * It becomes one deadline on the monotonic clock when the verb is called, whatever happens in between.
 */
export type Timeout = number;

/** Options of the verbs that block. */
export interface LockOptions {
  /** How long to wait, in milliseconds. Default: for ever. */
  timeout?: Timeout | undefined;
}

/** Options of the methods that return a promise. */
export interface AsyncLockOptions extends LockOptions {
  /**
   * Takes the wait back when it aborts, or has aborted: the promise is rejected with the signal's `reason`.
   * A lock that was granted before is never taken back. Any number of waits may share one signal.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending wait keeps the event loop, and so the process, alive. Default: `true`. */
  ref?: boolean | undefined;
}

/** Options of the constructor of {@link Mutex}. */
export interface MutexOptions {
  /**
   * Whether `lock`, `acquire` and `executeLockedSync` may block the main thread. Default: `false`,
   * since a blocked main thread serves nobody. Means nothing in a worker, which may always block.
   */
  allowMainThread?: boolean | undefined;
  /**
   * What error messages, warnings, `inspect()`, `inspectAll()`, `console.log()` and diagnostics channels call the mutex in
   * this thread. A name is not shared: each thread names its own objects.
   */
  name?: string | undefined;
  /**
   * Repairs what a thread that ended inside has left. Called with the mutex, which is held and {@link Mutex.abandoned}, by
   * every verb of this object that acquires it in that state (also `tryLock`, and locking again after a wait for a
   * {@link Condition}), before the verb returns or its promise settles. It takes the place of the warning
   * `SABLOCK_ABANDONED`. When it returns, the mutex is consistent, as after {@link Mutex.markConsistent}.
   *
   * It must not return a promise: that is `ERR_INVALID_ARG_TYPE`. If it throws, the mutex is unlocked, the mark stays for the
   * next to acquire it, and the verb throws what it threw, or its promise is rejected with that.
   */
  onAbandoned?: ((mutex: Mutex) => void) | undefined;
}

/** Options of the constructor of {@link Condition}. */
export interface ConditionOptions {
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
}

/** One waiter of a {@link MutexInspection}. */
export interface MutexWaiter {
  /** The `threadId` (of `node:worker_threads`) of the thread that waits. */
  threadId: number;
  /** `'blocking'`: the thread sleeps in `lock`. `'async'`: a promise is pending there. */
  kind: 'blocking' | 'async';
  /** How it will hold the mutex. */
  mode: 'exclusive';
  /** For how long it has waited, in milliseconds. */
  waitedMs: number;
}

/** One holder of a {@link MutexInspection}. */
export interface MutexHolder {
  /** The `threadId` (of `node:worker_threads`) of the thread that holds; it may have ended. */
  threadId: number;
  /** How it holds the mutex. */
  mode: 'exclusive';
  /** How many holds it has. */
  count: number;
}

/** What {@link Mutex.inspect} returns. */
export interface MutexInspection {
  /** The name that this thread gave to the mutex; `null` without one. */
  name: string | null;
  /** Whether somebody holds the mutex; also true while its holder's thread has ended and nobody has taken it since. */
  locked: boolean;
  /** The `threadId` of the holder's thread, which may have ended; `null` if nobody holds it, or no sablock wrote the word. */
  ownerThreadId: number | null;
  /** Whether a holder's thread has ended inside, and nobody has called `markConsistent` since. */
  abandoned: boolean;
  /** Who holds it: one, or nobody. */
  holders: MutexHolder[];
  /** Who waits, in the order of the queue. */
  waiters: MutexWaiter[];
}

/** One mutex as {@link inspectAll} returns it. */
export interface QueuedMutexInspection extends MutexInspection {
  /** The class of what it is: also of a lock of a {@link LockTable}. */
  kind: 'Mutex';
  /** Where in its buffer the mutex is. */
  byteOffset: number;
}

/** Anything but a mutex as {@link inspectAll} returns it. */
export interface QueuedPrimitiveInspection extends PrimitiveInspection {
  /** The class of what it is. `'Condition'`: waits for a {@link Condition}, or of {@link wait} and {@link waitAsync} at that place. */
  kind: 'RwLock' | 'Semaphore' | 'Latch' | 'Barrier' | 'ManualResetEvent' | 'AutoResetEvent' | 'Once' | 'Condition';
  /** Where in its buffer it is. */
  byteOffset: number;
}

/**
 * Every lock of the process, and every other primitive, that somebody waits for, each as its `inspect()` shows it, in no order:
 * to find out why a program hangs. In any thread; never blocks, and disturbs no lock. Takes time in proportion to the number of
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

/**
 * A mutual-exclusion lock on four bytes of shared memory.
 *
 * Zeroed memory is an unlocked mutex. Any number of `Mutex` objects, in any threads, may stand for the same four bytes:
 * the lock is the memory, and the objects hold no state. What a thread wrote before it unlocks is seen by the next holder.
 *
 * **Fairness.** Blocked threads and pending promises wait in one queue, first come, first served, with two exceptions:
 * a free mutex may be taken by a running thread before a sleeping one is awake (at most for about a millisecond, after
 * which the mutex is handed over directly), and an event loop that is busy when its turn comes is passed by.
 * The waits of one thread's `lockAsync` are served in the order of the calls. An event loop that comes for the mutex and finds
 * it held may sleep for a moment: see {@link Mutex.lockAsync}.
 *
 * **For one process.** Send the buffer to another thread and make a `Mutex` there; a `Mutex` does not survive `postMessage`,
 * which refuses it with a DataCloneError (Node.js before 22.12 sends an empty object).
 *
 * **Not re-entrant.** The holder is a thread. A second `lock` of a thread that holds the mutex, by itself or by one of its
 * asynchronous tasks, throws a {@link DeadlockError}; a second `lockAsync` waits for the first to be unlocked.
 *
 * **Threads may end anywhere.** If a thread ends while it holds the mutex, however it ends, the next to lock it gets it,
 * is told by a process warning with the code `SABLOCK_ABANDONED`, and sees {@link Mutex.abandoned}. A thread emits at most
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
export class Mutex {
  /** How many bytes a mutex takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /**
   * Stands for the mutex at a place in shared memory; changes nothing there. In any thread.
   *
   * @param buffer Shared memory: a `SharedArrayBuffer` of any realm, growable or not, or the buffer of a shared
   *   `WebAssembly.Memory` (in TypeScript `memory.buffer as unknown as SharedArrayBuffer`). The object keeps it alive.
   * @param byteOffset Where the four bytes begin: 0 or more, a multiple of 4, `byteOffset + 4 <= buffer.byteLength`.
   *   Default: 0. As in `new Int32Array(buffer, byteOffset)`.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if the four bytes do not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: MutexOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the mutex is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /**
   * Locks the mutex. **Blocks** this thread until then; workers only, unless `allowMainThread`.
   *
   * The event loop stands still meanwhile. `worker.terminate()`, `process.exit()` and an uncaught error elsewhere end the
   * wait within 100 ms; the debugger can pause the thread.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever.
   * @returns `true`: locked. `false`: the time was over, and nothing is held.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, locked or not.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end, be it because code that the thread runs during
   *   the wait (a subscriber of `sablock:long-hold`) has locked the mutex.
   * @throws `ERR_LOCK_THREAD_ENDING` if the thread is ending: the callbacks that still run after an uncaught error get it.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote, also if it is overwritten during the wait.
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
   * The event loop goes on meanwhile. When it comes for the mutex and finds it held, it may sleep for a moment, until it is
   * handed the mutex: for at most a tenth of the time that it has waited and at most 10 ms, once in a turn of the loop.
   * Without that, a loop with long turns would hardly ever find the mutex free. It sleeps only for a holder in another
   * thread that can run.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of `true`: locked; or of `false`: the time was over, and nothing is held.
   *   Rejected with the signal's `reason` if it aborts first; with `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE`, or
   *   `ERR_LOCK_NO_THREAD` if the system refuses the background thread that a timeout needs.
   *   If somebody overwrites the memory during the wait, only a timeout or a signal is sure to end it.
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
   * @returns `true`: locked. `false`: somebody holds it, or it is kept for a moment for an event loop on its way.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
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
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
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
   * Whether somebody holds the mutex, or a thread that held it has ended: a snapshot for diagnosis, out of date when you read it.
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
   * Who holds the mutex and who waits for it: a snapshot for people in trouble, which never disturbs the lock.
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

/**
 * One hold of a lock: made by `acquire`, `acquireAsync`, `tryAcquire` and `enter`, and freed once. It belongs to its thread.
 *
 * With `using` (Node 24, or compiled) the hold ends with the block.
 */
export class LockGuard<M extends Mutex | null = Mutex> {
  protected constructor();
  /** The mutex that it holds, or held; `null` for an {@link RwLockGuard}. */
  readonly mutex: M;
  /** What it holds, or held: the mutex, or `read` or `write` of an {@link RwLock}. */
  readonly lock: Lockable<LockGuard<Mutex | null>>;
  /**
   * Whether it still holds the mutex: `true` also while the hold is away in {@link Condition.waitAsync}; `false` once it is
   * unlocked, or a {@link Condition} could not lock the mutex again.
   */
  readonly locked: boolean;
  /** As {@link Mutex.abandoned}, while it holds the mutex; `false` afterwards. */
  readonly abandoned: boolean;
  /**
   * Unlocks the mutex. Never blocks.
   *
   * @returns `true` the first time; later `false`, and nothing is touched, whoever holds the mutex then. Also `false` if a
   *   {@link Condition} could not lock the mutex again.
   * @throws `ERR_LOCK_NOT_OWNER` while the hold is away in {@link Condition.waitAsync}, whoever holds the mutex then; the guard
   *   stays valid.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  unlock(): boolean;
  /** As `unlock`, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * One set of verbs for everything that is locked and unlocked: {@link Mutex}, and {@link RwLock.read} and {@link RwLock.write} of
 * an {@link RwLock}. `Guard` is what `acquire` returns.
 *
 * A hold belongs to its thread: by itself (`lock`, `lockAsync`, `tryLock`), or by a guard or function, which alone frees it.
 */
export interface Lockable<Guard extends LockGuard<Mutex | null> = LockGuard<Mutex | null>> {
  /**
   * Locks. **Blocks** this thread until then; workers only, unless `allowMainThread`. As {@link Mutex.lock}.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever.
   * @returns `true`: locked. `false`: the time was over, and nothing is held.
   * @throws `ERR_LOCK_MAIN_THREAD`, `ERR_LOCK_DEADLOCK`, `ERR_LOCK_THREAD_ENDING`, `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE`.
   */
  lock(timeout?: Timeout | LockOptions): boolean;
  /**
   * Locks without blocking. In any thread; never throws. As {@link Mutex.lockAsync}.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of `true`: locked; or of `false`: the time was over. Rejected with the signal's `reason`, or with
   *   `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE`, `ERR_LOCK_NO_THREAD`.
   */
  lockAsync(timeout?: Timeout | AsyncLockOptions): Promise<boolean>;
  /**
   * Locks if that is possible at once. In any thread; never blocks.
   *
   * @returns Whether it is locked.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  tryLock(): boolean;
  /**
   * Unlocks what this thread locked with `lock`, `lockAsync` or `tryLock`, once for each. Never blocks.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold it in this way; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  unlock(): void;
  /**
   * Locks and returns a guard that unlocks. **Blocks** as `lock`. As {@link Mutex.acquire}.
   *
   * @throws `ERR_LOCK_TIMEOUT` if the time was over, and as `lock`.
   */
  acquire(timeout?: Timeout | LockOptions): Guard;
  /**
   * Locks without blocking and returns a promise of a guard that unlocks. In any thread; never throws. As
   * {@link Mutex.acquireAsync}: rejected with `ERR_LOCK_TIMEOUT` if the time was over, and as `lockAsync`.
   */
  acquireAsync(timeout?: Timeout | AsyncLockOptions): Promise<Guard>;
  /** As `tryLock`; returns a guard that unlocks, or `null`. In any thread; never blocks. */
  tryAcquire(): Guard | null;
  /**
   * Runs `fn` while it is locked. In any thread; never blocks, never throws. As {@link Mutex.executeLocked}.
   *
   * @returns A promise of what `fn` returns; unlocked before it settles.
   */
  executeLocked<T>(fn: () => T | PromiseLike<T>, options?: AsyncLockOptions): Promise<T>;
  /**
   * Runs `fn` while it is locked. **Blocks** as `lock`. As {@link Mutex.executeLockedSync}.
   *
   * @returns What `fn` returns; unlocked by then, also if `fn` throws.
   */
  executeLockedSync<T>(fn: () => T, options?: LockOptions): T;
  /** Whether this thread holds it, by itself, by a guard, or by one of its asynchronous tasks. */
  readonly isHeldByThisThread: boolean;
}

/** Options of the constructor of {@link RwLock}. */
export interface RwLockOptions {
  /** Whether the verbs that block may block the main thread. Default: `false`. As {@link MutexOptions.allowMainThread}. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
  /**
   * Repairs what a thread that ended while it wrote has left. Called with the lock, held by `write` and marked, by every verb of
   * `write` of this object that acquires it in that state, and by `tryUpgrade`. The rest is as for
   * {@link MutexOptions.onAbandoned}; if it throws in `tryUpgrade`, the hold is shared again. Readers do not call it, and
   * are not warned if it is given.
   */
  onAbandoned?: ((lock: RwLock) => void) | undefined;
}

/** One holder of an {@link RwLockInspection}. */
export interface RwLockHolder {
  /** The `threadId` (of `node:worker_threads`) of the thread that holds; a writer's may have ended. */
  threadId: number;
  /** `'exclusive'`: it writes. `'shared'`: it reads. */
  mode: 'exclusive' | 'shared';
  /** How many holds it has. */
  count: number;
}

/** One waiter of an {@link RwLockInspection}. */
export interface RwLockWaiter {
  /** The `threadId` (of `node:worker_threads`) of the thread that waits. */
  threadId: number;
  /** `'blocking'`: the thread sleeps. `'async'`: a promise is pending there. */
  kind: 'blocking' | 'async';
  /** How it will hold the lock. */
  mode: 'exclusive' | 'shared';
  /** For how long it has waited, in milliseconds. */
  waitedMs: number;
}

/** What {@link RwLock.inspect} returns. */
export interface RwLockInspection {
  /** The name that this thread gave to the lock; `null` without one. */
  name: string | null;
  /** Who holds it: one writer, or any number of readers, or nobody. */
  holders: RwLockHolder[];
  /** Who waits, in the order of the queue. */
  waiters: RwLockWaiter[];
}

/**
 * Many readers or one writer: a lock on eight bytes of shared memory, for data that is read often and written seldom.
 *
 * Zeroed memory is an unlocked lock. What is said of {@link Mutex} of objects, memory and processes holds here too. Readers
 * and writer use one set of verbs, that of {@link RwLock.read} and of {@link RwLock.write}.
 *
 * **Fairness.** Readers and writers wait in one queue. A reader that comes while somebody waits queues behind; readers that wait
 * side by side go in together. Who comes may pass by those who wait within the same bound as for a mutex. Neither side starves.
 *
 * **Not re-entrant.** A blocking wait without a timeout that could never end throws a {@link DeadlockError}: write inside read
 * or write, read inside write, read inside read while a writer without a timeout waits in between (with nobody waiting, read
 * inside read is granted), and circles of threads, through several readers too.
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
export class RwLock {
  /** How many bytes an RwLock takes. */
  static readonly BYTES: 8;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;
  /** How many read holds there can be at the same time; more wait. */
  static readonly MAX_READERS: number;

  /**
   * Stands for the lock at a place in shared memory; changes nothing there. In any thread. As the constructor of {@link Mutex}.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if the eight bytes do not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: RwLockOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the lock is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /** To read, beside other readers. Always the same object. `tryLock` and `tryAcquire` fail while somebody waits. */
  readonly read: Lockable<RwLockGuard>;
  /** To write, alone. Always the same object. */
  readonly write: Lockable<RwLockGuard>;

  /** Whether somebody writes, dead or alive: a snapshot for diagnosis, out of date when you read it. */
  readonly isWriteLocked: boolean;
  /** How many read holds there are: a snapshot. A thread that reads twice counts twice. */
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
   * @returns `true`: this thread writes. `false`: there are other read holds, or somebody waits; it still reads.
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold it in this way; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  tryUpgrade(): boolean;

  /**
   * Who holds the lock, in which mode, and who waits for it: a snapshot, which never disturbs the lock. In any thread; never
   * blocks. Takes time in proportion to the number of threads that have read and of waiters.
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
   * @returns `true`: it writes. `false`: there are other read holds, or somebody waits; it still reads.
   * @throws `ERR_LOCK_NOT_OWNER` in the wrong mode, and once it is spent; nothing changes then.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten while it was held.
   */
  tryUpgrade(): boolean;
}

/**
 * Waiting, with a mutex, until another thread says that something has changed: four bytes of shared memory.
 *
 * To wait is to unlock the mutex and to stand in line in one step, so that no notification in between is lost; when the wait
 * is over, notified or not, the mutex is held again, in the same way: the hold of a guard may wait too, and its guard stays
 * valid (to unlock it meanwhile is an error). A wait inside `executeLocked` or `executeLockedSync` is part of it: await it there. If
 * the function ends before, the wait does not lock the mutex again: it stays in line, passes a notification that reaches it on
 * to the next, and rejects with `ERR_LOCK_NOT_OWNER`, which need not be handled. Blocked threads and promises stand in one line, first come, first served.
 * Nobody is woken without a notification; still, what was true when it came may have changed before the mutex was held
 * again, so wait in a loop, or by `waitFor`. A thread that ends before it holds the mutex again passes its notification on.
 *
 * The bytes hold nothing; {@link notify} of the same bytes wakes the same waiters.
 *
 * @example
 * ```js
 * const notEmpty = new Condition(memory, 4);
 * const guard = mutex.acquire();
 * notEmpty.waitFor(mutex, () => count[0] > 0);
 * count[0] -= 1;
 * guard.unlock();
 * ```
 */
export class Condition {
  /** How many bytes a condition takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: ConditionOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the condition is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /**
   * Unlocks the mutex, waits for a notification, and locks the mutex again. **Blocks** this thread; workers only, unless
   * the mutex has `allowMainThread`.
   *
   * @param mutex The mutex, which this thread holds: a {@link Mutex}, or {@link RwLock.write}.
   * @param timeout How long to wait for the notification, in milliseconds, counted from the call; to lock the mutex again
   *   takes as long as it takes. Default: for ever. Zero or less: does not wait, and keeps the mutex.
   * @returns `true`: notified. `false`: the time was over. The mutex is held either way.
   * @throws `ERR_LOCK_NOT_OWNER` if this thread does not hold the mutex; nothing changes then.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread.
   * @throws `ERR_LOCK_DEADLOCK`, `ERR_LOCK_CORRUPT`, `ERR_LOCK_THREAD_ENDING` if the mutex could not be locked again: it is
   *   not held then, and a guard whose hold it was is spent.
   * @throws `ERR_INVALID_ARG_TYPE` if `mutex` is neither a {@link Mutex} nor `write` of an {@link RwLock}, or `timeout` neither a number nor an options object.
   */
  wait(mutex: Mutex | Lockable<RwLockGuard>, timeout?: Timeout | LockOptions): boolean;

  /**
   * Unlocks the mutex, waits for a notification, and locks the mutex again as {@link Mutex.lockAsync} does. In any thread;
   * never throws.
   *
   * @param mutex The mutex, which this thread holds.
   * @param options How long to wait for the notification, as {@link Condition.wait}, or options.
   * @returns A promise of what {@link Condition.wait} returns. Rejected with the signal's `reason` if it aborts before
   *   the notification: the mutex is held again then too, as after a timeout. Rejected with `ERR_LOCK_NO_THREAD` if the
   *   system refuses the background thread that a timeout needs: the mutex is held. Rejected with `ERR_LOCK_NOT_OWNER` also when
   *   it is over, if it was begun inside an `executeLocked` or `executeLockedSync` that has ended since. Else rejected as
   *   `wait` throws.
   */
  waitAsync(mutex: Mutex | Lockable<RwLockGuard>, options?: Timeout | AsyncLockOptions): Promise<boolean>;

  /**
   * Waits until `predicate` returns a truthy value. **Blocks** as {@link Condition.wait}.
   *
   * @param mutex The mutex, which this thread holds.
   * @param predicate Called with the mutex held: at once, after each notification, and when the time is over.
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever.
   * @returns Whether the predicate holds. `false`: the time was over. The mutex is held either way, also if `predicate` throws.
   * @throws As {@link Condition.wait}, and what `predicate` throws.
   */
  waitFor(mutex: Mutex | Lockable<RwLockGuard>, predicate: () => unknown, timeout?: Timeout | LockOptions): boolean;

  /**
   * Waits until `predicate` returns a truthy value, or a promise of one. In any thread; never throws. Waits as
   * {@link Condition.waitAsync}.
   * If it does so at once, there is no wait that a signal could take back.
   *
   * @param mutex The mutex, which this thread holds.
   * @param predicate As {@link Condition.waitFor}, but may return a promise.
   * @param options How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of what {@link Condition.waitFor} returns. Rejected as {@link Condition.waitAsync} or `predicate`.
   */
  waitForAsync(
    mutex: Mutex | Lockable<RwLockGuard>,
    predicate: () => unknown,
    options?: Timeout | AsyncLockOptions,
  ): Promise<boolean>;

  /**
   * Wakes the first waiters in line. In any thread, with the mutex or without; never blocks.
   *
   * @param count How many: 0 or more. Default: all.
   * @returns How many were woken.
   * @throws `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` if `count` is no number, or negative, or `NaN`.
   */
  notify(count?: number): number;
  /** `notify(1)`. */
  notifyOne(): number;
  /** `notify(Infinity)`. */
  notifyAll(): number;
}

/** Options of the constructors of {@link ManualResetEvent}, {@link AutoResetEvent}, {@link Latch} and {@link Once}. */
export interface PrimitiveOptions {
  /** Whether the verbs that block may block the main thread. Default: `false`. Means nothing in a worker. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
}

/** How somebody holds, or waits for, what is no mutex; `'passage'`: it only waits to pass. */
export type HoldMode = 'exclusive' | 'shared' | 'permits' | 'entry' | 'member' | 'passage';

/** The holds of one thread, in one mode, as {@link PrimitiveInspection} shows them. */
export interface PrimitiveHolder {
  /** The thread's `threadId`. */
  threadId: number;
  /** What kind of holds these are. */
  mode: HoldMode;
  /** How many holds the thread has in this mode. */
  count: number;
}

/** One wait, as {@link PrimitiveInspection} shows it. */
export interface PrimitiveWaiter {
  /** The `threadId` of the thread that waits. */
  threadId: number;
  /** Whether the thread is blocked, or its event loop waits for a promise. */
  kind: 'blocking' | 'async';
  /** What kind of hold it waits for. */
  mode: HoldMode;
  /** For how many milliseconds it has waited. */
  waitedMs: number;
}

/** Who holds a primitive and who waits for it. */
export interface PrimitiveInspection {
  /** The name that this thread gave to it; `null` without one. */
  name: string | null;
  /** Who holds it. */
  holders: PrimitiveHolder[];
  /** Who waits, in the order of the queue. */
  waiters: PrimitiveWaiter[];
}

/**
 * A flag on four bytes of shared memory that threads wait for, and that stays set until somebody resets it.
 *
 * Zeroed memory is an event that is not set. What a thread wrote before `set` is seen by whoever passes. Whoever waits when it is
 * set passes, though it is reset at once. A thread that ends while it waits is in nobody's way.
 *
 * @example
 * ```js
 * const { ManualResetEvent } = require('sablock');
 * const ready = new ManualResetEvent(new SharedArrayBuffer(4));
 * setTimeout(() => ready.set(), 10);
 * ready.waitAsync().then(() => console.log('ready'));
 * ```
 */
export class ManualResetEvent {
  /** How many bytes an event takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the event is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;
  /** Whether it is set: a snapshot, out of date when you read it. */
  readonly isSet: boolean;

  /**
   * Sets the event: all who wait pass, and all who come, until it is reset. In any thread; never blocks. Changes nothing if it is set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  set(): void;

  /**
   * Resets the event: whoever comes from now on waits. In any thread; never blocks. Changes nothing if it is not set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  reset(): void;

  /**
   * Waits until the event is set. **Blocks** this thread; workers only, unless `allowMainThread`. Ended as {@link Mutex.lock} is.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever. Zero or less: one look.
   * @returns `true`: it was set. `false`: the time was over.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, set or not.
   * @throws `ERR_LOCK_THREAD_ENDING`, `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE` as {@link Mutex.lock}.
   */
  wait(timeout?: Timeout | LockOptions): boolean;

  /**
   * Waits until the event is set. In any thread; never blocks, never throws.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of what {@link ManualResetEvent.wait} returns. Rejected as {@link Mutex.lockAsync}.
   */
  waitAsync(timeout?: Timeout | AsyncLockOptions): Promise<boolean>;

  /** Who waits: a snapshot for people in trouble. In any thread; never blocks. */
  inspect(): PrimitiveInspection;
}

/**
 * A flag on four bytes of shared memory that lets one waiter pass each time that it is set, and is reset by that.
 *
 * Zeroed memory is an event that is not set. The first in line passes, be it a blocked thread or a promise; nobody overtakes. Two
 * sets while nobody waits are one; while n wait, n sets let n pass. What a thread wrote before `set` is seen by the one that passes.
 * If the thread that may pass ends before its code knows, the next in line passes, or the event is set again.
 *
 * @example
 * ```js
 * const { AutoResetEvent } = require('sablock');
 * const work = new AutoResetEvent(new SharedArrayBuffer(4));
 * work.waitAsync().then(() => console.log('one passes'));
 * work.set();
 * ```
 */
export class AutoResetEvent {
  /** How many bytes an event takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the event is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;
  /** Whether the next to come passes: a snapshot, out of date when you read it. */
  readonly isSet: boolean;

  /**
   * Lets the first in line pass; if nobody waits, the next to come. In any thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  set(): void;

  /**
   * Takes back a `set` that nobody has used yet. In any thread; never blocks. Changes nothing if it is not set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  reset(): void;

  /**
   * Waits for a `set` of its own, and uses it up. **Blocks** this thread; workers only, unless `allowMainThread`. Ended as
   * {@link Mutex.lock} is.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever. Zero or less: one try.
   * @returns `true`: it has passed. `false`: the time was over, and no `set` was used up.
   * @throws As {@link ManualResetEvent.wait}.
   */
  wait(timeout?: Timeout | LockOptions): boolean;

  /**
   * Waits for a `set` of its own, and uses it up. In any thread; never blocks, never throws.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of what {@link AutoResetEvent.wait} returns. Rejected as {@link Mutex.lockAsync}; then no `set` was used up.
   */
  waitAsync(timeout?: Timeout | AsyncLockOptions): Promise<boolean>;

  /** Who waits: a snapshot for people in trouble. In any thread; never blocks. */
  inspect(): PrimitiveInspection;
}

/**
 * A count on four bytes of shared memory that threads wait for to be zero. Reusable, as Go's `WaitGroup`.
 *
 * Zeroed memory is a latch that is open: its count is zero. Whoever waits when it opens passes, though it closes again at once.
 * What a thread wrote before it counted down is seen by whoever passes. What `add` has added stays until somebody counts it down; what
 * `enter` has added is counted down at the latest when its thread ends, however it ends, so that nobody waits for the dead.
 *
 * @example
 * ```js
 * const { Latch } = require('sablock');
 * const busy = new Latch(new SharedArrayBuffer(4));
 * busy.add(2);
 * setTimeout(() => busy.countDown(), 10);
 * setTimeout(() => busy.countDown(), 20);
 * busy.waitAsync().then(() => console.log('both are done'));
 * ```
 */
export class Latch {
  /** How many bytes a latch takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the latch is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;
  /** The count, from 0 to 2^29 - 1: a snapshot, out of date when you read it. */
  readonly count: number;

  /**
   * Adds to the count. In any thread; never blocks.
   *
   * @param n How much: an integer of 1 or more. Default: 1.
   * @throws `ERR_OUT_OF_RANGE` if `n` is none, or the count would be 2^29 or more; nothing changes then.
   * @throws `ERR_INVALID_ARG_TYPE` if `n` is no number.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  add(n?: number): void;

  /**
   * Counts down; at zero all who wait pass. In any thread; never blocks.
   *
   * @param n By how much: an integer of 1 or more. Default: 1.
   * @returns What is left.
   * @throws As {@link Latch.add}; `ERR_OUT_OF_RANGE` also if the count would be less than zero.
   */
  countDown(n?: number): number;

  /**
   * Adds one to the count that is counted down by the entry, or when this thread ends. In any thread; never blocks.
   *
   * @throws `ERR_OUT_OF_RANGE` if the count would be 2^29; `ERR_LOCK_CORRUPT` as {@link Latch.add}.
   * @example
   * ```js
   * using entry = latch.enter();
   * work();
   * ```
   */
  enter(): LatchEntry;

  /**
   * Waits until the count is zero. **Blocks** this thread; workers only, unless `allowMainThread`. Ended as {@link Mutex.lock} is.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call. Default: for ever. Zero or less: one look.
   * @returns `true`: the count was zero. `false`: the time was over.
   * @throws As {@link ManualResetEvent.wait}.
   */
  wait(timeout?: Timeout | LockOptions): boolean;

  /**
   * Waits until the count is zero. In any thread; never blocks, never throws.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns A promise of what {@link Latch.wait} returns. Rejected as {@link Mutex.lockAsync}.
   */
  waitAsync(timeout?: Timeout | AsyncLockOptions): Promise<boolean>;

  /** Who has entered (the threads of entries, not of `add`) and who waits: a snapshot. In any thread; never blocks. */
  inspect(): PrimitiveInspection;
}

/** One of a latch's count, made by {@link Latch.enter} and counted down once. It belongs to its thread. */
export class LatchEntry {
  private constructor();
  /** The latch that it has entered. */
  readonly latch: Latch;
  /**
   * Counts the latch down by one. Never blocks.
   *
   * @returns `true` the first time; later `false`, and nothing is touched. Also `false` if others had counted it down: entries are
   *   not told apart, so that it counts nothing down if the count is zero.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten; the entry stays valid.
   */
  leave(): boolean;
  /** As `leave`, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * Something that is done once among all threads, on four bytes of shared memory: the first to come does it, all others wait for it.
 *
 * Zeroed memory is not done. Whoever runs does so alone; what it wrote is seen by all whose `run` or `runSync` has returned. If it
 * fails, or its thread ends, the next in line runs its own function, in strict order: blocked threads and promises in one line. A
 * turn that comes to an event loop stays with it, so that a busy loop delays those behind it. Once it is done, `run` costs a load.
 *
 * @example
 * ```js
 * const { Once } = require('sablock');
 * const memory = new SharedArrayBuffer(8);
 * const once = new Once(memory, 0);
 * const table = new Int32Array(memory, 4, 1);
 * once.run(() => { table[0] = 42; }).then((ran) => console.log(ran, table[0]));
 * ```
 */
export class Once {
  /** How many bytes it takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer it is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;
  /** Whether it is done; if so, for ever. */
  readonly isDone: boolean;

  /**
   * Runs `fn`, unless somebody has done so; else waits until it is done. In any thread; never blocks, never throws.
   *
   * A `run` inside the function of another one of the same thread waits for that: do not await it there.
   *
   * @param fn Called with what it has to know. If it returns a promise, it is done when that is fulfilled.
   * @param options How long to wait for the turn, in milliseconds, counted from the call, or options. Default: for ever. What runs is
   *   ended by neither timeout nor signal.
   * @returns A promise of `true`: this call has run `fn`; or of `false`: another one has run its own. Rejected with what `fn` throws:
   *   then it is not done, and the next in line runs. Rejected with `ERR_LOCK_TIMEOUT` if the time was over, or as {@link Mutex.lockAsync}.
   */
  run(fn: (notes: OnceNotes) => unknown, options?: Timeout | AsyncLockOptions): Promise<boolean>;

  /**
   * Runs `fn`, unless somebody has done so; else waits until it is done. **Blocks** this thread; workers only, unless
   * `allowMainThread`. Ended as {@link Mutex.lock} is.
   *
   * @param fn Called with what it has to know; must be done when it returns.
   * @param timeout How long to wait for the turn, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns `true`: this call has run `fn`. `false`: another one has run its own.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over; `fn` is not called then.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end: the `run` or `runSync` that is at work is this thread's
   *   own, or its thread waits for this one.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, done or not.
   * @throws `ERR_INVALID_ARG_TYPE` if `fn` is no function, or returns a promise (it is not done then, and the next in line runs).
   * @throws As {@link Mutex.lock}, and what `fn` throws.
   */
  runSync(fn: (notes: OnceNotes) => unknown, timeout?: Timeout | LockOptions): boolean;

  /** Who runs (as the holder, `'exclusive'`) and who waits: a snapshot. In any thread; never blocks. */
  inspect(): PrimitiveInspection;
}

/** What the function of {@link Once.run} has to know. */
export interface OnceNotes {
  /**
   * Whether the thread of one before ended while it ran, so that its work may be half done. Stays so for all who run until it is
   * done, also if one of them fails. There is no process warning; `sablock:abandoned` tells the first of them.
   */
  abandoned: boolean;
}

/** Options of the constructors of {@link Semaphore} and {@link Barrier}. */
export interface SynchronizerOptions {
  /** Whether the verbs that block may block the main thread. Default: `false`. Means nothing in a worker. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
}

/** Options of {@link Semaphore.executeSync}. */
export interface PermitsOptions extends LockOptions {
  /** How many permits to take: an integer from 1 to {@link Semaphore.MAX_PERMITS}. Default: 1. */
  permits?: number | undefined;
}

/** Options of {@link Semaphore.execute}. */
export interface AsyncPermitsOptions extends AsyncLockOptions {
  /** As {@link PermitsOptions.permits}. */
  permits?: number | undefined;
}

/** What {@link Semaphore.inspect} returns. */
export interface SemaphoreInspection {
  /** The name that this thread gave to the semaphore; `null` without one. */
  name: string | null;
  /** Who holds permits in {@link SemaphorePermits}, in no order. */
  holders: {
    /** The `threadId` (of `node:worker_threads`) of the thread that holds them. */
    threadId: number;
    /** What it holds. */
    mode: 'permits';
    /** How many permits it has. */
    count: number;
  }[];
  /** Who waits, in the order of the queue. */
  waiters: {
    /** The `threadId` of the thread that waits. */
    threadId: number;
    /** `'blocking'`: the thread sleeps. `'async'`: a promise is pending there. */
    kind: 'blocking' | 'async';
    /** What it waits for. */
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
 * **Strict order.** Blocked threads and pending promises get permits in the order in which they came, and nobody overtakes:
 * a large request at the head of the queue keeps small ones waiting, also if there are permits enough for these. A grant to
 * an event loop is final: if that is busy, the permits wait for it, and those behind wait longer.
 *
 * **Threads may end anywhere.** Permits that a thread holds in {@link SemaphorePermits} when it ends, however it ends, go
 * back, and to those who wait. Forgotten ones do not. Permits whose object was dropped stay taken until the thread ends.
 *
 * **Not re-entrant, and no deadlocks are found:** anybody may add permits, so that no wait is known to last for ever. A thread that
 * waits for permits that it holds itself waits until others release.
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
export class Semaphore {
  /** How many bytes a semaphore takes. */
  static readonly BYTES: 4;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;
  /** No semaphore has more permits available, and no request is for more: 2^29 - 1. */
  static readonly MAX_PERMITS: number;

  /**
   * Stands for the semaphore at a place in shared memory; changes nothing there. In any thread.
   *
   * @param buffer As in the constructor of {@link Mutex}.
   * @param byteOffset As in the constructor of {@link Mutex}.
   * @param permits How many permits there are at first: an integer from 0 to {@link Semaphore.MAX_PERMITS}. The same number in
   *   every thread.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, `permits` is missing, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` for `permits`, and if the four bytes do not lie aligned inside the buffer.
   */
  constructor(
    buffer: SharedArrayBuffer,
    byteOffset: number | undefined,
    permits: number,
    options?: SynchronizerOptions,
  );

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the semaphore is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

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
   * Takes permits if there are enough and nobody waits for any. In any thread; never blocks.
   *
   * @param permits As {@link Semaphore.acquire}.
   * @returns The permits, or `null`: nothing was taken.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote; `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` for `permits`.
   */
  tryAcquire(permits?: number): SemaphorePermits | null;

  /**
   * Adds permits, which need not have been taken. In any thread; never blocks.
   *
   * @param n How many: an integer of 1 or more. Default: 1.
   * @throws `ERR_OUT_OF_RANGE` if more than {@link Semaphore.MAX_PERMITS} were available then; nothing changes.
   * @throws `ERR_INVALID_ARG_TYPE` if `n` is no number; `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
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

  /** How many permits are left, 0 or more: a snapshot, out of date when you read it. They may be kept for those who wait. */
  readonly available: number;

  /** Who holds permits and who waits: a snapshot for people, which disturbs nobody. In any thread; never blocks. */
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
  /** How many it still holds. */
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
  /** Gives nothing back: what is left is used up, and nobody's from now on. Never blocks. */
  forget(): void;
  /** As `release`, for `using`. */
  [Symbol.dispose](): void;
}

/** What {@link Barrier.inspect} returns. */
export interface BarrierInspection {
  /** The name that this thread gave to the barrier; `null` without one. */
  name: string | null;
  /** Whose threads are members, in no order. */
  holders: {
    /** The `threadId` (of `node:worker_threads`) of the members' thread. */
    threadId: number;
    /** What it is. */
    mode: 'member';
    /** How many members it has. */
    count: number;
  }[];
  /** Who has come and waits, in that order. */
  waiters: {
    /** The `threadId` of the thread that waits. */
    threadId: number;
    /** `'blocking'`: the thread sleeps. `'async'`: a promise is pending there. */
    kind: 'blocking' | 'async';
    /** It waits to pass. */
    mode: 'passage';
    /** For how long it has waited, in milliseconds. */
    waitedMs: number;
  }[];
}

/**
 * A place, on eight bytes of shared memory, where a number of parties wait for each other, round after round: threads that
 * block and event loops that await. What each wrote before it came is seen by all once they have passed.
 *
 * Zeroed memory is a new barrier. A party is a call of {@link Barrier.wait} or {@link Barrier.waitAsync}, of whatever thread. The last to come lets
 * all pass, and the barrier is new for the next round.
 *
 * **Broken.** A round that cannot be complete is not to hang: if a party that waits times out (it gets the {@link TimeoutError}), is
 * aborted (it gets the signal's reason), or its thread ends, all others that wait and all that come later get a
 * {@link BrokenBarrierError}, until somebody calls {@link Barrier.reset}. A thread that has not come yet is not missed when it ends, unless it
 * has called {@link Barrier.join}.
 *
 * @example
 * ```js
 * import { Barrier } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(Barrier.BYTES);
 * const step = new Barrier(memory, 0, 2);
 * const first = step.waitAsync();
 * console.log(await step.waitAsync(), await first); // 0 1
 * ```
 */
export class Barrier {
  /** How many bytes a barrier takes. */
  static readonly BYTES: 8;
  /** What its byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /**
   * Stands for the barrier at a place in shared memory; changes nothing there. In any thread.
   *
   * @param buffer As in the constructor of {@link Mutex}.
   * @param byteOffset As in the constructor of {@link Mutex}, for eight bytes.
   * @param parties For how many parties a round is: an integer of 1 or more (at most 2^28 - 1). The same number in every thread.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, `parties` is missing, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` for `parties`, and if the eight bytes do not lie aligned inside the buffer.
   */
  constructor(
    buffer: SharedArrayBuffer,
    byteOffset: number | undefined,
    parties: number,
    options?: SynchronizerOptions,
  );

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the barrier is. */
  readonly byteOffset: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;
  /** The number of parties given to the constructor. */
  readonly parties: number;
  /** How many have come and wait: a snapshot, out of date when you read it. */
  readonly waiting: number;
  /** Whether it is broken: a snapshot, out of date when you read it. */
  readonly broken: boolean;

  /**
   * Comes to the barrier. **Blocks** this thread until all parties have come; workers only, unless `allowMainThread`. Ends
   * early as {@link Mutex.lock}, which breaks the barrier.
   *
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever. With zero or less,
   *   only the last party passes; any other breaks the barrier.
   * @returns The index of the arrival: `parties - 1` for the first party of the round, 0 for the last.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over: the barrier is broken then.
   * @throws `ERR_LOCK_BROKEN` if the barrier is broken, or breaks during the wait.
   * @throws `ERR_OUT_OF_RANGE` if those who wait named another number of parties; nothing breaks.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread.
   * @throws `ERR_LOCK_THREAD_ENDING`, `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE` as {@link Mutex.lock}.
   * @example
   * ```js
   * for (let step = 0; step < steps; step++) {
   *   compute(step);
   *   if (barrier.wait() === 0) console.log(`the last has done step ${step}`);
   * }
   * ```
   */
  wait(timeout?: Timeout | LockOptions): number;

  /**
   * Comes to the barrier without blocking. In any thread; never throws.
   *
   * @param timeout As {@link Barrier.wait}, or options. A signal that has aborted before breaks the barrier too: this party
   *   does not stay.
   * @returns A promise of what {@link Barrier.wait} returns. Rejected with the signal's `reason` if it aborts first, with
   *   `ERR_LOCK_NO_THREAD` if the system refuses the background thread that a timeout needs, or as `wait` throws.
   */
  waitAsync(timeout?: Timeout | AsyncLockOptions): Promise<number>;

  /**
   * Makes the barrier new: those who wait get a {@link BrokenBarrierError}, and who comes later is the first. In any
   * thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds what no sablock wrote.
   */
  reset(): void;

  /**
   * Says that this thread will come: if it ends before {@link BarrierMember.leave}, the barrier breaks, also if nobody waits
   * yet. Changes neither `parties` nor who waits. In any thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if somebody waits there for another kind of lock.
   * @example
   * ```js
   * using member = barrier.join();
   * for (let step = 0; step < steps; step++) {
   *   compute(step);
   *   barrier.wait();
   * }
   * ```
   */
  join(): BarrierMember;

  /** Who is a member and who waits: a snapshot for people, which disturbs nobody. In any thread; never blocks. */
  inspect(): BarrierInspection;
}

/** A membership of a {@link Barrier}, made by {@link Barrier.join}. It belongs to its thread. */
export class BarrierMember {
  private constructor();
  /** The barrier that it is a member of, or was. */
  readonly barrier: Barrier;
  /**
   * Ends the membership: the thread's end breaks nothing any more. Never blocks.
   *
   * @returns `true` the first time, `false` later.
   */
  leave(): boolean;
  /** As `leave`, for `using`. */
  [Symbol.dispose](): void;
}
/** Options of the constructor of {@link LockTable}. */
export interface LockTableOptions {
  /** As {@link MutexOptions.allowMainThread}, for all locks of the table. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.name}; messages add the lock's number. */
  name?: string | undefined;
  /** As {@link MutexOptions.onAbandoned}, with the table and the number of the lock. */
  onAbandoned?: ((table: LockTable, index: number) => void) | undefined;
}

/**
 * Many mutexes in a row, of four bytes each, which are locked by their numbers: a lock for each row of a table, or, by
 * {@link LockTable.indexFor}, for each key. A million of them are one object; zeroed memory is a table of unlocked locks.
 *
 * Each lock is a mutex, with the guarantees of {@link Mutex}: `table.at(index)` is the same lock as an object, and so is
 * `new Mutex(buffer, byteOffset + 4 * index)`. The verbs are those of the mutex, with the number first. To hold several,
 * use {@link LockTable.lockAll}: two keys may have one lock, and locks that are taken one by one may deadlock.
 *
 * All verbs throw `ERR_OUT_OF_RANGE` (a RangeError) if the table has no lock `index`, and `ERR_INVALID_ARG_TYPE` if `index`
 * is no number; those that return a promise reject.
 *
 * @example
 * ```js
 * import { LockTable } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(LockTable.bytes(1000));
 * const locks = new LockTable(memory, 0, 1000);
 * const index = locks.indexFor('user:42');
 * if (await locks.lockAsync(index, { timeout: 1000 })) {
 *   console.log(`lock ${index} is held`);
 *   locks.unlock(index);
 * }
 * ```
 */
export class LockTable {
  /** How many bytes one lock takes. */
  static readonly BYTES: 4;
  /** What the table's byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /**
   * How many bytes a table of `length` locks takes.
   *
   * @throws `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` if `length` is no integer of 1 or more.
   */
  static bytes(length: number): number;

  /**
   * Stands for the table at a place in shared memory; changes nothing there. In any thread.
   *
   * @param buffer As for {@link Mutex}.
   * @param byteOffset Where the first lock is: 0 or more, a multiple of 4.
   * @param length How many locks there are: an integer of 1 or more, the same in every thread that uses `indexFor`.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if `length` is no such integer, or the table does not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset: number | undefined, length: number, options?: LockTableOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** Where in the buffer the first lock is. */
  readonly byteOffset: number;
  /** How many locks the table has. */
  readonly length: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /** Locks the lock `index`. **Blocks** as {@link Mutex.lock}, and returns and throws as that does. */
  lock(index: number, timeout?: Timeout | LockOptions): boolean;
  /** Locks the lock `index`, as {@link Mutex.lockAsync}. */
  lockAsync(index: number, options?: Timeout | AsyncLockOptions): Promise<boolean>;
  /** Locks the lock `index` if that is possible at once, as {@link Mutex.tryLock}. */
  tryLock(index: number): boolean;
  /** Unlocks the lock `index`, as {@link Mutex.unlock}. */
  unlock(index: number): void;
  /** Locks the lock `index` and returns its guard. **Blocks** as {@link Mutex.acquire}. */
  acquire(index: number, options?: Timeout | LockOptions): LockGuard;
  /** Locks the lock `index`, as {@link Mutex.acquireAsync}. */
  acquireAsync(index: number, options?: Timeout | AsyncLockOptions): Promise<LockGuard>;
  /** Locks the lock `index` if that is possible at once, as {@link Mutex.tryAcquire}. */
  tryAcquire(index: number): LockGuard | null;
  /** Runs `fn` while it holds the lock `index`, as {@link Mutex.executeLocked}. */
  executeLocked<T>(index: number, fn: () => T | PromiseLike<T>, options?: AsyncLockOptions): Promise<T>;
  /** Runs `fn` while it holds the lock `index`. **Blocks** as {@link Mutex.executeLockedSync}. */
  executeLockedSync<T>(index: number, fn: () => T, options?: LockOptions): T;
  /** Whether this thread holds the lock `index`. Never blocks. */
  isHeldByThisThread(index: number): boolean;

  /**
   * The lock `index` as an object: for a {@link Condition}, for {@link lockAll}, for `markConsistent`. A new object each
   * time, for the same lock. Never blocks.
   */
  at(index: number): Mutex;

  /**
   * The number of the lock that a key has: the same in every thread, version, runtime and process, for tables of the same
   * length. Keys are equal if they are the same string, by its UTF-16 code units, or the same number: `1` and `1n` are one
   * key, so are `0` and `-0`, and `'1'` is another. Several keys may have one lock. Never blocks.
   *
   * It is MurmurHash3 (x86, 32 bits, unsigned) modulo `length`. What is hashed is the key's text, in UTF-16 code units of two bytes
   * each, the low byte first, with the seed 0 for a string and 1 for a number or bigint. The text of an integer is its
   * decimal digits, that of another number is `String(key)`.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `key` is no string, number or bigint.
   */
  indexFor(key: string | number | bigint): number;

  /** Who holds the lock `index` and who waits for it, as {@link Mutex.inspect}. */
  inspect(index: number): MutexInspection;

  /** Locks several locks of the table, or none. **Blocks** as {@link lockAll}. */
  lockAll(indices: Iterable<number>, options?: Timeout | LockOptions): LockAllGuard<Mutex>;
  /** Locks several locks of the table, or none, as {@link lockAllAsync}. */
  lockAllAsync(indices: Iterable<number>, options?: Timeout | AsyncLockOptions): Promise<LockAllGuard<Mutex>>;
}

/**
 * Locks several locks, or none. **Blocks** this thread until it has all; workers only, unless all of them have
 * `allowMainThread`.
 *
 * They are taken in the order of their addresses in memory, whatever the order of the list, so that two calls never deadlock
 * with each other. Those that it has are held while it waits for the next. If it does not get all (the time is over, the
 * thread ends), it gives back what it had, unmarked. A lock that is named several times counts once, whichever objects name it.
 * However many locks there are, it is one call into the native code.
 *
 * @param lockables The locks: {@link Mutex} objects, of tables too, and `read` and `write` of {@link RwLock} objects; both of one
 *   RwLock count as `write`. None: the guard is one of nothing.
 * @param options How long to wait for all of them together, in milliseconds, counted from the call, or options. Default:
 *   for ever.
 * @throws `ERR_LOCK_TIMEOUT` if the time was over; the message names the lock that could not be had.
 * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end: this thread holds one of the locks already, or
 *   threads wait for each other in a circle.
 * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, if one of the locks must not block it.
 * @throws `ERR_LOCK_CORRUPT`, `ERR_LOCK_THREAD_ENDING` as {@link Mutex.lock}, and what `onAbandoned` of a lock throws.
 * @throws `ERR_INVALID_ARG_TYPE` if `lockables` is not iterable, or one of them is no lock; nothing is locked then.
 *   After any error none of the locks is held by this call.
 * @example
 * ```js
 * using guard = lockAll([from.lock, to.lock], { timeout: 1000 });
 * from.balance -= 10;
 * to.balance += 10;
 * ```
 */
export function lockAll<Lock extends Lockable>(
  lockables: Iterable<Lock>,
  options?: Timeout | LockOptions,
): LockAllGuard<Lock>;

/**
 * Locks several locks, or none, as {@link lockAll}, without blocking. In any thread; never throws.
 *
 * A lock that this thread holds already, by another of its tasks, is waited for. A signal that aborts gives back what it has.
 * The end of the thread does so too, unmarked.
 *
 * @returns A promise of the guard. Rejected as `lockAll` throws, with the signal's `reason`, or with `ERR_LOCK_NO_THREAD` as
 *   {@link Mutex.lockAsync}. After a rejection none of the locks is held by this call.
 * @example
 * ```js
 * const guard = await lockAllAsync([from.lock, to.lock], { signal });
 * try {
 *   await transfer(from, to, 10);
 * } finally {
 *   guard.unlock();
 * }
 * ```
 */
export function lockAllAsync<Lock extends Lockable>(
  lockables: Iterable<Lock>,
  options?: Timeout | AsyncLockOptions,
): Promise<LockAllGuard<Lock>>;

/**
 * A hold of several locks: made by {@link lockAll} and {@link lockAllAsync}, and freed once. It belongs to its thread. `Lock` is
 * what they are: {@link Mutex}, or `read` and `write` of {@link RwLock}.
 */
export class LockAllGuard<Lock extends Lockable = Lockable> {
  private constructor();
  /** Whether it still holds any of its locks, as {@link LockGuard.locked}. */
  readonly locked: boolean;
  /**
   * Those of its locks, as they were named, whose holder's thread ended inside, until `markConsistent` of the mutex or the RwLock:
   * see {@link Mutex.abandoned}.
   */
  readonly abandoned: Lock[];
  /**
   * Unlocks all of its locks. Never blocks.
   *
   * @returns `true` if it held any; later `false`, and nothing is touched.
   * @throws As {@link LockGuard.unlock}. The other locks are unlocked all the same; call it again for the one that was not.
   */
  unlock(): boolean;
  /** As `unlock`, for `using`. */
  [Symbol.dispose](): void;
}

/** Options of {@link LockManager.requestSync} and {@link LockManager.acquire}. */
export interface NamedLockOptions {
  /** `'shared'`: together with others of that mode. Default: `'exclusive'`, alone. */
  mode?: 'exclusive' | 'shared' | undefined;
  /** Whether not to wait: what cannot be had at once, since others hold it or came before, is `null`. Default: `false`. */
  ifAvailable?: boolean | undefined;
  /**
   * Whether to take the lock from all who hold it, before all who wait. Their code goes on, and their requests are rejected. For
   * locks of the process, in the mode `'exclusive'`. Default: `false`.
   */
  steal?: boolean | undefined;
  /** How long to wait, in milliseconds, counted from the call. Zero and less: one try. Default: for ever. */
  timeout?: Timeout | undefined;
}

/** Options of {@link LockManager.request} and {@link LockManager.acquireAsync}. */
export interface AsyncNamedLockOptions extends NamedLockOptions {
  /**
   * Takes the request back when it aborts, or has aborted: the promise is rejected with its `reason`. It may do so until the
   * callback begins, and at least until the end of the turn of the event loop in which the request was made. Not together with
   * `steal` or `ifAvailable`.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending request keeps the event loop, and so the process, alive. Default: `true`. A lock that is held does not. */
  ref?: boolean | undefined;
}

/** Options of the constructor of {@link LockManager}. */
export interface LockManagerOptions {
  /**
   * Among whom the names are: `'process'`, all threads and all copies of this package in the process; or `'machine'`, all
   * processes of this user on this machine. Default: `'process'`, or `'machine'` if there is a `directory`.
   */
  scope?: 'process' | 'machine' | undefined;
  /**
   * The directory of the lock files, for the scope `'machine'`: all processes that can write there. It is made if its parent
   * exists; its owner and permissions are your business. Two paths to one directory are the same. Default: one that only this user
   * can use, the same whatever the environment says: `/tmp/sablock-<uid>` on Linux, in the user's own temporary folder on macOS,
   * in the local application data on Windows. Containers, and services with a private `/tmp`, see another one: give them a
   * `directory` that they share.
   */
  directory?: string | undefined;
  /**
   * Whether `requestSync` and `acquire` may block the main thread. Default: `false`, since a blocked main thread serves nobody.
   * Means nothing in a worker, which may always block.
   */
  allowMainThread?: boolean | undefined;
}

/** A request that waits, as {@link LockManager.query} shows it. */
export interface NamedLockRequest {
  /** The name. */
  name: string;
  /** How it will hold it. */
  mode: 'exclusive' | 'shared';
  /** Whose it is: `node-<pid>-<threadId>`. */
  clientId: string;
}

/** A lock that is held, as {@link LockManager.query} shows it. */
export interface NamedLockHolder extends NamedLockRequest {
  /** The process. */
  pid: number;
  /** The `threadId` of the thread. */
  threadId: number;
  /** For how long it has been held, in milliseconds. */
  heldMs: number;
}

/**
 * What {@link LockManager.query} returns: who holds and who waits at one moment, in the order in which they came. In the scope
 * `'machine'` that is so for this process; behind its own locks stand those that other processes hold in the mode
 * `'exclusive'`, by what they have written. Who shares a lock, or waits, in another process, is not shown.
 */
export interface LockManagerSnapshot {
  /** The locks that are held. */
  held: NamedLockHolder[];
  /** The requests that wait. */
  pending: NamedLockRequest[];
}

/**
 * Locks that have names: the Web Locks API (W3C), among all threads of the process, and what that lacks.
 *
 * **Names** are strings of any 16-bit units; what is no string becomes one. Those that begin with `-` are refused. A name takes memory
 * only while it is held, waited for, or marked abandoned.
 *
 * **Order.** First come, first served, for each name, event loops included: nobody is overtaken, and a thread whose event loop is
 * busy delays those behind it. Shared requests next to each other go in together.
 *
 * **Threads may end anywhere.** What a thread held goes to the next, what it asked for is withdrawn. If it held the lock in the mode
 * `'exclusive'`, the next is told by a process warning with the code `SABLOCK_ABANDONED`, and sees {@link HeldLock.abandoned}.
 *
 * **Among processes.** `new LockManager({ scope: 'machine' })` has the locks of all processes of this user on this machine,
 * `new LockManager({ directory })` those of all processes that can write in a directory. The kernel keeps each as a lock of a file: a
 * process that is killed frees it at once, and one that is stopped, sleeps or is busy keeps it. There are no times after which a
 * lock counts as stale. An exclusive holder that ends inside (killed, by `process.exit()`, an uncaught error, the end of its thread)
 * leaves a mark, which the next one sees as `abandoned`, in whatever process; it stays until somebody calls `markConsistent()`. In
 * doubt a lock is marked. `steal` is refused, since nothing can stop a holder elsewhere. Order is strict in each process; between
 * processes one is next, the others take turns. Deadlocks are found within a process only. The files stay; do not remove them
 * while processes use them: a holder whose file was removed is told by a warning when it unlocks (`SABLOCK_LOCK_FILE_REMOVED`).
 *
 * **Not re-entrant.** A request inside the callback of one for the same name waits for that for ever; a blocking one without a timeout
 * throws a {@link DeadlockError}.
 *
 * @example
 * ```js
 * import { locks } from 'sablock';
 *
 * const total = await locks.request('account 7', async (lock) => {
 *   return lock.name.length;
 * });
 * console.log(total); // prints 9
 * ```
 *
 * @example
 * ```js
 * import { LockManager } from 'sablock';
 *
 * const machine = new LockManager({ scope: 'machine' });
 * await machine.request('an example of sablock', { timeout: 60_000 }, (lock) => {
 *   if (lock.abandoned) lock.markConsistent(); // after a look at what the last holder left
 *   console.log('one process at a time'); // prints one process at a time
 * });
 * ```
 */
export class LockManager {
  /**
   * Stands for the locks of a scope; those of the process, and of one directory, are the same for every manager.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if an option is wrong.
   * @throws `ERR_LOCK_DIRECTORY` if locks cannot be kept in the directory: it is missing, and its parent too; it is no directory;
   *   its file system is NFS, SMB, 9p, FUSE or AFS; the default one belongs to others, may be written by others, or is a link.
   *   Requests fail with it too, if a file there cannot be opened or locked.
   */
  constructor(options?: LockManagerOptions);

  /**
   * Runs `callback` while it holds the lock of this name. Never blocks, never throws; `callback` never runs inside the call.
   *
   * @param name The name.
   * @param callback Called with the lock; with `null` if it was to be available and is not. The lock is held until what it
   *   returns is settled, or until {@link HeldLock.unlock}. Keeps its AsyncLocalStorage.
   * @returns A promise of what `callback` returns, settled once the lock is released, also if `callback` unlocks before. Rejected
   *   with what it throws, with the `reason` of the signal, with `ERR_LOCK_TIMEOUT` if the time was over, with an `AbortError`
   *   (a `DOMException`) if the lock was stolen, with a `NotSupportedError` (a `DOMException`) for options that exclude each other
   *   and names that begin with `-`, with `ERR_INVALID_ARG_TYPE` for other wrong arguments.
   */
  request<T>(name: string, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: AsyncNamedLockOptions & { ifAvailable?: false | undefined },
    callback: (lock: HeldLock) => T,
  ): Promise<Awaited<T>>;
  request<T>(name: string, options: AsyncNamedLockOptions, callback: (lock: HeldLock | null) => T): Promise<Awaited<T>>;

  /**
   * As {@link LockManager.request}, without a callback: for `using`. Never blocks, never throws.
   *
   * @returns A promise of the lock, which is held until its `unlock`; of `null` if it was to be available and is not. Rejected as
   *   that of `request`, but for what is about the callback.
   *
   * @example
   * ```js
   * import { locks } from 'sablock';
   *
   * const lock = await locks.acquireAsync('report', { timeout: 5000 });
   * try {
   *   console.log(lock.mode); // prints exclusive
   * } finally {
   *   lock.unlock();
   * }
   * ```
   */
  acquireAsync(name: string, options?: AsyncNamedLockOptions & { ifAvailable?: false | undefined }): Promise<HeldLock>;
  acquireAsync(name: string, options: AsyncNamedLockOptions): Promise<HeldLock | null>;

  /**
   * Runs `fn` while it holds the lock of this name. **Blocks** this thread; workers only, unless `allowMainThread`. Ended as
   * {@link Mutex.lock} is.
   *
   * @param fn Called with the lock; with `null` if it was to be available and is not. Must be done when it returns.
   * @returns What `fn` returns.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over; `fn` is not called then.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end: this thread holds the lock, or threads wait for
   *   each other in a circle, for names and for other locks.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread.
   * @throws `ERR_INVALID_ARG_TYPE` if an argument is wrong, or `fn` returns a promise (the lock is released then).
   * @throws An `AbortError` (a `DOMException`), after `fn`, if the lock was stolen meanwhile; else what `fn` throws.
   * @throws A `NotSupportedError` (a `DOMException`) as `request`, and if there is a `signal`, for which nobody would listen.
   */
  requestSync<T>(name: string, fn: (lock: HeldLock) => T): T;
  requestSync<T>(
    name: string,
    options: NamedLockOptions & { ifAvailable?: false | undefined },
    fn: (lock: HeldLock) => T,
  ): T;
  requestSync<T>(name: string, options: NamedLockOptions, fn: (lock: HeldLock | null) => T): T;

  /**
   * Takes the lock of this name. **Blocks** this thread; workers only, unless `allowMainThread`.
   *
   * @returns The lock, which is held until its `unlock`; `null` if it was to be available and is not.
   * @throws As {@link LockManager.requestSync}, but for what is about `fn`.
   */
  acquire(name: string, options?: NamedLockOptions & { ifAvailable?: false | undefined }): HeldLock;
  acquire(name: string, options: NamedLockOptions): HeldLock | null;

  /** A promise of who holds which name and who waits, in all threads, at the moment of the call. Never blocks. */
  query(): Promise<LockManagerSnapshot>;
}

/** The locks of the process: one {@link LockManager} for all threads, and all copies of this package. */
export const locks: LockManager;

/** A lock of a {@link LockManager} that is held, or was. Every member is for the thread that got it. */
export class HeldLock {
  private constructor();
  /** The name. */
  readonly name: string;
  /** How it is held. */
  readonly mode: 'exclusive' | 'shared';
  /** Whether this still holds it, for all that this thread knows. */
  readonly locked: boolean;
  /**
   * While this holds it: whether an earlier holder's thread ended inside, or the lock was stolen, so that what it guards may be
   * half done; until somebody calls {@link HeldLock.markConsistent}.
   */
  readonly abandoned: boolean;
  /** Aborts when the lock is stolen. A thread that is busy learns of that later. */
  readonly signal: AbortSignal;

  /**
   * Takes the mark of abandonment off: all is well.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this does not hold it any more, or in the mode `'shared'`.
   */
  markConsistent(): void;
  /**
   * Releases the lock. Never blocks.
   *
   * @returns `true` if this held it; `false` if it was unlocked before, or stolen.
   */
  unlock(): boolean;
  /** As `unlock`, for `using`. */
  [Symbol.dispose](): void;
}

/** An object that lives in shared memory. */
export interface LayoutObject {
  /** Where in its buffer it begins, in bytes. */
  readonly byteOffset: number;
}

/** A class of this package whose objects live in shared memory. */
export interface LayoutClass {
  // biome-ignore lint/suspicious/noExplicitAny: whatever follows the buffer.
  new (buffer: SharedArrayBuffer, ...rest: any[]): LayoutObject;
  /** How many bytes it takes. */
  readonly BYTES: number;
  /** What its byte offset must be a multiple of. */
  readonly ALIGN: number;
}

/** A class of typed arrays. */
export interface LayoutArrayClass {
  new (buffer: SharedArrayBuffer, byteOffset?: number, length?: number): ArrayBufferView;
  /** How many bytes an element takes. */
  readonly BYTES_PER_ELEMENT: number;
}

/** One field of a {@link layout}: a class, or an array that begins with one. */
export type LayoutField = LayoutClass | LayoutArrayClass | readonly [LayoutClass | LayoutArrayClass, ...unknown[]];

/** What may follow a class in a field of a {@link layout}: its arguments after the offset, or a number of elements. */
export type LayoutArguments<Class> = Class extends LayoutArrayClass
  ? [length?: number]
  : Class extends LayoutClass
    ? ConstructorParameters<Class> extends [unknown?, unknown?, ...infer Rest]
      ? Rest
      : never
    : never;

/** The field as it may be written, by what its class takes. */
export type CheckedLayoutField<Field> = Field extends readonly [infer Class, ...unknown[]]
  ? readonly [Class, ...LayoutArguments<Class>]
  : [] extends LayoutArguments<Field>
    ? Field
    : never;

/** The object that a field of a {@link layout} becomes. */
export type LayoutInstance<Field> = Field extends readonly [infer Class, ...unknown[]]
  ? LayoutInstance<Class>
  : Field extends new (
        ...args: never[]
      ) => infer Instance
    ? Instance
    : never;

/** Places in shared memory for the fields of a {@link layout}. */
export interface Layout<Fields> {
  /** How many bytes it takes, rounded up, so that another may follow it in one buffer. */
  readonly byteLength: number;
  /** New, zeroed shared memory of `byteLength`: all of its locks are free. */
  create(): SharedArrayBuffer;
  /**
   * An object with an instance for each field, in `buffer` from `byteOffset` on (default: 0). Changes nothing in memory.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or `byteOffset` no number.
   * @throws `ERR_OUT_OF_RANGE` if the layout does not lie inside the buffer, aligned to the largest alignment of its fields.
   */
  on(buffer: SharedArrayBuffer, byteOffset?: number): { [Name in keyof Fields]: LayoutInstance<Fields[Name]> };
}

/**
 * Places for several primitives and typed arrays in one buffer, in the order given, each aligned: no offsets to count by
 * hand. The same fields are at the same places in every thread, version and runtime. In any thread; never blocks.
 *
 * @param fields By name a class, or an array that begins with one: what follows are the arguments of its constructor after the offset,
 *   or the length of a typed array (default: 1).
 * @throws `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` if a field is nothing of the kind.
 * @example
 * ```js
 * import { layout, LockTable, Mutex } from 'sablock';
 *
 * const places = layout({ lock: Mutex, rows: [LockTable, 1000], total: Int32Array, prices: [Float64Array, 1000] });
 * const memory = places.create(); // to be sent to other threads, which have the same layout
 * const { lock, rows, total, prices } = places.on(memory);
 * await lock.executeLocked(() => {
 *   total[0] += prices[rows.indexFor('a')];
 * });
 * ```
 */
export function layout<Fields extends Record<string, LayoutField>>(
  fields: Fields & { [Name in keyof Fields]: CheckedLayoutField<Fields[Name]> },
): Layout<Fields>;

/** Options of {@link waitAsync}. */
export interface WaitAsyncOptions {
  /**
   * Takes the wait back when it aborts: the promise is rejected with the signal's `reason`. A wait that was notified
   * before is fulfilled all the same, since its notification was counted.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending wait keeps the event loop, and so the process, alive. Default: `true`. */
  ref?: boolean | undefined;
}

/**
 * `Atomics.wait` on this package's lines: **blocks** this thread until a {@link notify} for the element, if the element
 * holds `value`. Workers only.
 *
 * Arguments are checked and converted in the order and with the errors that ECMAScript specifies. Waiters of `wait` and
 * `waitAsync` stand in one line for each byte of the buffer; only `notify` wakes them, never a change of the value.
 * `terminate()`, `process.exit()` and uncaught errors end the wait within 100 ms, and the debugger gets through. If the
 * thread ends before its code learns of a notification, the next in line is notified, if it waited at that time.
 *
 * @param typedArray A view of shared memory.
 * @param timeout How long to wait, in milliseconds, counted from the call. `undefined`, `NaN`: for ever. Zero or less: not.
 * @returns `'ok'`: notified. `'not-equal'`: the element holds another value. `'timed-out'`: the time was over.
 * @throws `ERR_LOCK_MAIN_THREAD` (a TypeError) on the main thread, although Node allows `Atomics.wait` there.
 * @throws `ERR_LOCK_THREAD_ENDING` if the thread is ending, as {@link Mutex.lock}.
 * @throws `ERR_INVALID_ARG_TYPE` (a TypeError), `ERR_OUT_OF_RANGE` (a RangeError), and what a conversion throws.
 * @example
 * ```js
 * while (Atomics.load(array, 0) === 0) wait(array, 0, 0);
 * ```
 */
export function wait(typedArray: Int32Array, index: number, value: number, timeout?: number): WaitResult;
export function wait(typedArray: BigInt64Array, index: number, value: bigint, timeout?: number): WaitResult;

/** How a {@link wait} ended. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out';

/**
 * `Atomics.notify` on this package's lines: wakes the first who wait for the element. In any thread; never blocks.
 *
 * Wakes neither those who wait for a lock, nor those of `Atomics.wait`; nor does `Atomics.notify` wake those who wait here.
 *
 * @param count How many, at most. Default: all.
 * @returns How many were woken; 0 for memory that is not shared.
 * @throws `ERR_INVALID_ARG_TYPE` (a TypeError), `ERR_OUT_OF_RANGE` (a RangeError), and what a conversion throws.
 */
export function notify(typedArray: Int32Array | BigInt64Array, index?: number, count?: number): number;

/**
 * `Atomics.waitAsync` on this package's lines, with one argument more. In any thread; never blocks.
 *
 * A pending wait keeps the event loop alive (unless `ref: false`), and nothing is left of a settled one.
 *
 * @param options Checked after everything else was converted. With a signal that has aborted, `value` is a rejected promise.
 * @returns `{ async: false, value }` if it need not wait, else `{ async: true, value }` with a promise.
 * @throws As {@link wait}, but not on the main thread; `ERR_LOCK_NO_THREAD` if the system refuses the background thread
 *   that a timeout needs.
 * @example
 * ```js
 * const { async, value } = waitAsync(array, 0, 0, 1000, { signal });
 * if (async) await value;
 * ```
 */
export function waitAsync(
  typedArray: Int32Array,
  index: number,
  value: number,
  timeout?: number,
  options?: WaitAsyncOptions,
): WaitAsyncResult;
export function waitAsync(
  typedArray: BigInt64Array,
  index: number,
  value: bigint,
  timeout?: number,
  options?: WaitAsyncOptions,
): WaitAsyncResult;

/** What {@link waitAsync} returns. */
export type WaitAsyncResult =
  | {
      /** There is nothing to wait for. */
      async: false;
      /** The outcome. */
      value: 'not-equal' | 'timed-out';
    }
  | {
      /** The wait is pending. */
      async: true;
      /** Fulfilled with the outcome; rejected with the signal's `reason` if it aborts first. */
      value: Promise<'ok' | 'timed-out'>;
    };

/** What {@link stats} returns: plain numbers, of all threads of the process. All but the last two only grow. */
export interface Stats {
  /** Acquisitions that had to wait in the queue, of threads that ended at that moment too. */
  contended: number;
  /** Those of them that were handed straight to a blocked thread, asleep or about to be, instead of waking one to try. */
  handovers: number;
  /** How often a free mutex was kept for an event loop that was too busy to come in time. */
  passedBy: number;
  /** Waits that ended because their time was over; one try that fails is no wait. */
  timeouts: number;
  /** Waits that a signal took back. */
  aborts: number;
  /** Deadlocks found: one for each {@link DeadlockError}. */
  deadlocks: number;
  /** Acquisitions that found that a thread had ended inside: one for each warning `SABLOCK_ABANDONED`. */
  abandoned: number;
  /**
   * The longest of the waits in `contended`, in milliseconds, of those that ended after the first call of `stats` in the
   * process: before, no clock is read for it.
   */
  longestWaitMs: number;
  /** How many threads are blocked in the queue of a mutex now. */
  blocked: number;
  /** How many promises for a mutex are pending now. */
  pending: number;
}

/**
 * Counts of all waits for mutexes in the process, since it began: subtract an earlier result to get those of a time between.
 * In any thread; never blocks. Takes some ten microseconds. What is counted is what waits: locking what is free, by a few
 * microseconds of spinning too, costs nothing and counts nothing, and neither do waits for notifications.
 *
 * @example
 * ```js
 * const { stats } = require('sablock');
 * const before = stats();
 * setTimeout(() => console.log(stats().contended - before.contended, 'waits in a second'), 1000);
 * ```
 */
export function stats(): Stats;

/** What the messages of all channels say: which lock it was. */
export interface DiagnosticsSubject {
  /** The lock, or other primitive, as the object that this thread used: of `read` and `write` their {@link RwLock}. */
  lock: Mutex | RwLock | Semaphore | Latch | Barrier | Once | HeldLock;
  /** The class of `lock`. A lock of a {@link LockTable} is a {@link Mutex}. */
  lockKind: 'Mutex' | 'RwLock' | 'Semaphore' | 'Latch' | 'Barrier' | 'Once' | 'HeldLock';
  /** The same as `lock` if that is a mutex, else `null`. */
  mutex: Mutex | null;
  /** Its name; `null` without one. */
  name: string | null;
  /** Its byte offset; -1 for a lock of a {@link LockManager}. */
  byteOffset: number;
}

/**
 * What is published on the channels of `node:diagnostics_channel`, by the channel's name.
 *
 * Published at once in the thread that waited or found it: subscribe in each thread that you are interested in, before or
 * after this package is loaded there. Without subscribers no message is made, and no clock is read. A subscriber runs
 * between the lock and the code that waits for it (for `sablock:long-hold` in a thread that is blocked, even inside its
 * sleep), so let it be short, and never lock in it: a thread that is blocked could not unlock, and gets a {@link DeadlockError}
 * instead of the lock. What it throws becomes an uncaught error; the lock does not mind.
 * It runs in the asynchronous context of the code that waits, so that AsyncLocalStorage returns there what it returns in
 * that code (of several waits of a thread for one lock, `sablock:long-hold` takes the first).
 *
 * With the types of Node.js, `subscribe` and `unsubscribe` of `node:diagnostics_channel` know these messages.
 *
 * @example
 * ```js
 * const { subscribe } = require('node:diagnostics_channel');
 * subscribe('sablock:contended', ({ byteOffset, ownerThreadId, waitedMs }) => {
 *   if (waitedMs > 10) console.warn(`waited ${waitedMs} ms at ${byteOffset} for thread ${ownerThreadId}`);
 * });
 * ```
 */
export interface DiagnosticsMessages {
  /**
   * A wait for a lock, for permits or for the turn of a {@link Once} is over, unless by an error. Published to who was subscribed
   * when it began. Waits for latches, events, barriers and conditions are not: they wait for something to happen, not for others.
   */
  'sablock:contended': DiagnosticsSubject & {
    /** `'blocking'`: this thread has slept. `'async'`: a promise was pending. */
    kind: 'blocking' | 'async';
    /**
     * The `threadId` of the thread that held the lock alone when the wait began; `null` if none did: it was free, on its way to
     * somebody, or others read, or it is permits that were waited for.
     */
    ownerThreadId: number | null;
    /** How long the wait took, in milliseconds. */
    waitedMs: number;
    /** How it ended; after `'acquired'` this thread holds the lock while the message is published. */
    outcome: 'acquired' | 'timed-out' | 'aborted';
  };
  /**
   * One and the same hold that shuts all others out was seen to last for 100 ms by a thread that waits for the lock (or in a
   * `Condition.wait` with it, while others wait for it); published again each time that this has doubled, for as long as the
   * thread waits. Each waiting thread that has subscribers publishes its own. Read holds and permits have none.
   */
  'sablock:long-hold': DiagnosticsSubject & {
    /** The `threadId` of the holder's thread: perhaps this one's, if another of its tasks holds the lock. */
    ownerThreadId: number;
    /**
     * For how long this thread has seen it, in milliseconds. The hold is older: by the time before this thread
     * waited, and by up to 25 ms, which is how often it looks (a busy event loop looks later).
     */
    heldAtLeastMs: number;
  };
  /**
   * A thread has ended with a hold. Of a hold that shut others out, it is published in the thread that gets it next, as the
   * warning `SABLOCK_ABANDONED`. Read holds, permits, entries and memberships have gone back, and nothing is in doubt: published in
   * the thread of the next waiter that gets in, or, if nobody waits, by the next call on that primitive that cannot be served by its
   * word alone. Each is published once (if a thousand such threads end and nobody comes, only for some; if the memory is freed
   * meanwhile, perhaps for what comes to its place).
   */
  'sablock:abandoned': DiagnosticsSubject & {
    /** The `threadId` of the thread that ended. */
    ownerThreadId: number;
    /** How that held it. */
    mode: Exclude<HoldMode, 'passage'>;
  };
  /** This thread is about to get a {@link DeadlockError}; `lock` is what it would have waited for. */
  'sablock:deadlock': DiagnosticsSubject & {
    /** As {@link DeadlockError.cycle}, which begins with this thread. */
    cycle: DeadlockError['cycle'];
    /**
     * Of a deadlock of tasks, which only the lock doctor (`sablock/doctor`) finds: whether none of its waits can end, or that only
     * seems so.
     */
    certainty?: 'certain' | 'possible';
    /** Of a deadlock of tasks: its waits, with the call sites of who waits and who holds. */
    waits?: import('./doctor.js').DeadlockWait[];
  };
}

/** Who subscribes to the channel of that name. */
export type DiagnosticsListener<Name extends keyof DiagnosticsMessages> = (
  message: DiagnosticsMessages[Name],
  name: string | symbol,
) => void;

/**
 * The time was over: from `acquire`, `acquireAsync`, `executeLocked` and `executeLockedSync`, from `execute` and `executeSync` of a
 * {@link Semaphore}, and from the verbs of a {@link Barrier}. The message says which verb waited, for what, and what stands in its
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
 * A blocking wait without a timeout could never end: the thread holds the mutex itself (or another environment of Node.js that
 * runs on it does), or a circle of threads, all blocked without timeouts, wait for each other. Exactly one thread of the circle gets it. The message names threads and mutexes.
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
