import type { Mutex } from './mutex';
import type { AsyncLockOptions, LockOptions, Timeout } from './options';

/**
 * One hold of a lock: made by `acquire`, `acquireAsync`, `tryAcquire` and `enter`, and freed once. It belongs to its thread.
 *
 * With `using` (Node 24, or compiled) the hold ends with the block.
 */
export class LockGuard<M extends Mutex | null = Mutex> {
  protected constructor();
  /** The mutex that it holds, or held; `null` for an {@link RwLockGuard}. */
  readonly mutex: M;
  /** The lock that it holds, or held: the mutex, or `read` or `write` of an {@link RwLock}. */
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
   * Locks while the event loop goes on; when the loop comes for a lock that is held, it may block its thread for up to 10 ms
   * (`maySleep: false`: never). In any thread; never throws. As {@link Mutex.lockAsync}.
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
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
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
