import type { AsyncLockOptions, LockOptions, PrimitiveOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/**
 * A place, on eight bytes of shared memory, where two calls meet, and each goes on with the value that the other brought: an
 * integer of 32 bits, such as the index of a buffer that changes hands. As Java's `Exchanger`. What either wrote before it came is
 * seen by the other.
 *
 * Zeroed memory is a new exchanger. The calls may be of any threads, blocking or awaited, also of one thread. A call that finds
 * another waiting meets it at once, so that at most one waits. A value goes to one partner or to none: a call that times out,
 * is aborted, or whose thread ends before another comes takes its value with it. Once two have met, each has the other's value,
 * even if the thread of one ends before its code knows.
 *
 * @example
 * ```js
 * import { Exchanger } from 'sablock';
 *
 * const place = new Exchanger(new SharedArrayBuffer(Exchanger.BYTES));
 * const first = place.exchangeAsync(1);
 * console.log(await place.exchangeAsync(2), await first); // 1 2
 * ```
 */
export class Exchanger extends Primitive {
  /** The number of bytes that an exchanger takes. */
  static readonly BYTES: 8;

  /** As the constructor of {@link Mutex}, for eight bytes. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /**
   * Meets another call and swaps values with it. **Blocks** this thread until one comes; workers only, unless
   * `allowMainThread`. Ends early as {@link Mutex.lock}; no call gets the value then.
   *
   * @param value What the other gets: an integer from -2^31 to 2^31 - 1.
   * @param timeout How long to wait, in milliseconds, counted from the call, or options. Default: for ever. With zero or less
   *   it meets only a call that waits already.
   * @returns The value that the other brought.
   * @throws `ERR_LOCK_TIMEOUT` if no other call came in time.
   * @throws `ERR_OUT_OF_RANGE` if `value` is no such integer.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread.
   * @throws `ERR_LOCK_THREAD_ENDING`, `ERR_LOCK_CORRUPT`, `ERR_INVALID_ARG_TYPE` as {@link Mutex.lock}.
   */
  exchange(value: number, timeout?: Timeout | LockOptions): number;

  /**
   * Meets another call without blocking. In any thread; never throws.
   *
   * @param value As {@link Exchanger.exchange}.
   * @param timeout As {@link Exchanger.exchange}, or options.
   * @returns A promise of what {@link Exchanger.exchange} returns. Rejected with the signal's `reason` if it aborts before
   *   another call comes, with `ERR_LOCK_NO_THREAD` if the system refuses the background thread that a timeout needs, or as
   *   `exchange` throws.
   */
  exchangeAsync(value: number, timeout?: Timeout | AsyncLockOptions): Promise<number>;
}
