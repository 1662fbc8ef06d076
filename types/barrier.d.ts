import type { AsyncLockOptions, LockOptions, SynchronizerOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/** The result of {@link Barrier.inspect}. */
export interface BarrierInspection {
  /** The name that this thread gave to the barrier; `null` without one. */
  name: string | null;
  /** The threads that have members, in no order. */
  holders: {
    /** The `threadId` (of `node:worker_threads`) of the members' thread. */
    threadId: number;
    /** It is a member. */
    mode: 'member';
    /** The number of its memberships. */
    count: number;
  }[];
  /** The threads that have come and wait, in that order. */
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
 * Zeroed memory is a new barrier. A party is a call of {@link Barrier.wait} or {@link Barrier.waitAsync}, of whatever thread.
 * The last to come lets all pass, and the barrier is new for the next round.
 *
 * **Broken.** A round that cannot be completed does not hang: if a party that waits times out (it gets the
 * {@link TimeoutError}), is aborted (it gets the signal's reason), or its thread ends, all others that wait and all that come
 * later get a {@link BrokenBarrierError}, until {@link Barrier.reset} is called. The end of a thread that has not come yet
 * breaks nothing, unless it has called {@link Barrier.join}. Once the last has come, all others pass, even if the thread of one
 * ends before its code knows.
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
export class Barrier extends Primitive {
  /** The number of bytes that a barrier takes. */
  static readonly BYTES: 8;

  /**
   * Makes an object for the barrier at this place in shared memory. The memory is not changed. In any thread.
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

  /** The number of parties given to the constructor. */
  readonly parties: number;
  /** The number that have come and wait: a snapshot, out of date when you read it. */
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
   *   does not stay. It breaks nothing if those who wait named another number of parties.
   * @returns A promise of what {@link Barrier.wait} returns. Rejected with the signal's `reason` if it aborts first, with
   *   `ERR_LOCK_NO_THREAD` if the system refuses the background thread that a timeout needs, or as `wait` throws.
   */
  waitAsync(timeout?: Timeout | AsyncLockOptions): Promise<number>;

  /**
   * Makes the barrier new: those who wait get a {@link BrokenBarrierError}, and the next to come is the first of a new round.
   * In any thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if the memory holds a value that sablock did not write.
   */
  reset(): void;

  /**
   * Announces that this thread will come: if it ends before {@link BarrierMember.leave}, the barrier breaks, also if none waits
   * yet. Changes neither `parties` nor who waits. In any thread; never blocks.
   *
   * @throws `ERR_LOCK_CORRUPT` if a thread waits there for another kind of lock.
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

  /** Returns the members and the waiters: a snapshot for diagnosis, which disturbs no thread. In any thread; never blocks. */
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
