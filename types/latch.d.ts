import type { PrimitiveInspection } from './inspection';
import type { AsyncLockOptions, LockOptions, PrimitiveOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/**
 * A count on four bytes of shared memory that threads wait for to be zero. Reusable, as Go's `WaitGroup`.
 *
 * Zeroed memory is a latch that is open: its count is zero. Threads that wait when it opens pass, even if it closes again at
 * once. What a thread wrote before it counted down is seen by those that pass. What `add` has added stays until it is counted
 * down; what `enter` has added is counted down at the latest when its thread ends, however it ends, so that no thread waits for
 * one that has ended.
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
export class Latch extends Primitive {
  /** The number of bytes that a latch takes. */
  static readonly BYTES: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** The count, from 0 to 2^29 - 1: a snapshot, out of date when you read it. */
  readonly count: number;

  /**
   * Adds to the count. In any thread; never blocks.
   *
   * @param n How much: an integer of 1 or more. Default: 1.
   * @throws `ERR_OUT_OF_RANGE` if `n` is no such integer, or the count would be 2^29 or more; nothing changes then.
   * @throws `ERR_INVALID_ARG_TYPE` if `n` is no number.
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
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
   * Waits until the count is zero. **Blocks** this thread; workers only, unless `allowMainThread`.
   * The wait can be ended as that of {@link Mutex.lock}.
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

  /** Returns the threads that have entered (with entries, not by `add`) and that wait: a snapshot. In any thread; never blocks. */
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
   *   not distinguished, so that it counts nothing down if the count is zero.
   * @throws `ERR_LOCK_CORRUPT` if the memory was overwritten; the entry stays valid.
   */
  leave(): boolean;
  /** As `leave`, for `using`. */
  [Symbol.dispose](): void;
}
