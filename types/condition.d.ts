import type { Lockable } from './lockable';
import type { Mutex } from './mutex';
import type { AsyncLockOptions, LockOptions, Timeout } from './options';
import type { Primitive } from './primitive';
import type { RwLockGuard } from './rwlock';

/** Options of the constructor of {@link Condition}. */
export interface ConditionOptions {
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
}

/**
 * Waiting, with a mutex, until another thread says that something has changed: four bytes of shared memory.
 *
 * A wait unlocks the mutex and queues in one step, so that no notification in between is lost. When it is over, notified or
 * not, the mutex is held again, in the same way: a guard that held it stays valid, and unlocking it during the wait is an
 * error. A wait inside `executeLocked` or `executeLockedSync` is part of it: await it there. If the function ends before, the
 * wait does not lock the mutex again: it stays in the queue, passes a notification that reaches it on to the next, and rejects
 * with `ERR_LOCK_NOT_OWNER`, which need not be handled. Blocked threads and promises wait in one queue, first come, first
 * served. No wait ends without a notification; still, the data may have changed again before the mutex is held, so wait in a
 * loop, or use `waitFor`. A thread that ends before it holds the mutex again passes its notification on.
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
export class Condition extends Primitive {
  /** The number of bytes that a condition takes. */
  static readonly BYTES: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: ConditionOptions);

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
   * @throws `ERR_INVALID_ARG_TYPE` if `mutex` is neither a {@link Mutex} nor `write` of an {@link RwLock}, or `timeout`
   *   neither a number nor an options object.
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
   * @throws `ERR_INVALID_ARG_TYPE` if `predicate` is no function, or returns a promise.
   * @throws As {@link Condition.wait}, and what `predicate` throws.
   */
  waitFor(mutex: Mutex | Lockable<RwLockGuard>, predicate: () => unknown, timeout?: Timeout | LockOptions): boolean;

  /**
   * Waits until `predicate` returns a truthy value, or a promise of one. In any thread; never throws. Waits as
   * {@link Condition.waitAsync}. If it does so at once, there is no wait that a signal could cancel.
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
