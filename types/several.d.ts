import type { Lockable } from './lockable';
import type { AsyncLockOptions, LockOptions, Timeout } from './options';

/**
 * Locks several locks, or none. **Blocks** this thread until it has all; workers only, unless all of them have
 * `allowMainThread`.
 *
 * They are taken in the order of their addresses in memory, whatever the order of the list, so that two calls never deadlock
 * with each other. Those that it has are held while it waits for the next. If it does not get all (the time is over, the
 * thread ends), it gives back what it had, unmarked. A lock that is named several times counts once, whichever objects name it.
 * However many locks there are, it is one call into the native code.
 *
 * @param lockables The locks: {@link Mutex} objects, of tables too, and `read` and `write` of {@link RwLock} objects; both of
 *   one RwLock count as `write`. An empty list: a guard that holds nothing.
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
 * A lock that this thread holds already, by another of its tasks, is waited for. If a signal aborts, or the thread ends, what
 * it has is given back, unmarked.
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
   * The locks of these, as they were named, whose holder's thread ended inside, until `markConsistent` of the mutex or the RwLock:
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
