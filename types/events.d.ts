import type { AsyncLockOptions, LockOptions, PrimitiveOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/**
 * A flag on four bytes of shared memory that threads wait for, and that stays set until it is reset.
 *
 * Zeroed memory is an event that is not set. What a thread wrote before `set` is seen by those that pass. Those that wait when
 * it is set pass, even if it is reset at once. A thread that ends while it waits delays no other.
 *
 * @example
 * ```js
 * const { ManualResetEvent } = require('sablock');
 * const ready = new ManualResetEvent(new SharedArrayBuffer(4));
 * setTimeout(() => ready.set(), 10);
 * ready.waitAsync().then(() => console.log('ready'));
 * ```
 */
export class ManualResetEvent extends Primitive {
  /** The number of bytes that an event takes. */
  static readonly BYTES: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** Whether it is set: a snapshot, out of date when you read it. */
  readonly isSet: boolean;

  /**
   * Sets the event: all who wait pass, and all who come, until it is reset. In any thread; never blocks. Changes nothing if
   * it is set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  set(): void;

  /**
   * Resets the event: those that come from now on wait. In any thread; never blocks. Changes nothing if it is not set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  reset(): void;

  /**
   * Waits until the event is set. **Blocks** this thread; workers only, unless `allowMainThread`.
   * The wait can be ended as that of {@link Mutex.lock}.
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
}

/**
 * A flag on four bytes of shared memory that lets one waiter pass each time that it is set, and is reset by that.
 *
 * Zeroed memory is an event that is not set. The first in the queue passes, a blocked thread or a promise; none overtakes. Two
 * sets while none waits count as one; while n wait, n sets let n pass. What a thread wrote before `set` is seen by the one that
 * passes. If the thread that may pass ends before its code knows, the next in line passes, or the event is set again.
 *
 * @example
 * ```js
 * const { AutoResetEvent } = require('sablock');
 * const work = new AutoResetEvent(new SharedArrayBuffer(4));
 * work.waitAsync().then(() => console.log('one passes'));
 * work.set();
 * ```
 */
export class AutoResetEvent extends Primitive {
  /** The number of bytes that an event takes. */
  static readonly BYTES: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** Whether the next to come passes: a snapshot, out of date when you read it. */
  readonly isSet: boolean;

  /**
   * Lets the first in the queue pass; if none waits, the next to come. In any thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  set(): void;

  /**
   * Takes back a `set` that is not used up yet. In any thread; never blocks. Changes nothing if it is not set.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  reset(): void;

  /**
   * Waits for a `set` of its own, and uses it up. **Blocks** this thread; workers only, unless `allowMainThread`. The wait
   * can be ended as that of {@link Mutex.lock}.
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
}
