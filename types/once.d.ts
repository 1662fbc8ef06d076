import type { PrimitiveInspection } from './inspection';
import type { AsyncLockOptions, LockOptions, PrimitiveOptions, Timeout } from './options';
import type { Primitive } from './primitive';

/**
 * Something that is done once among all threads, on four bytes of shared memory: the first to come does it, all others wait for it.
 *
 * Zeroed memory is not done. One function runs at a time; what it wrote is seen by all whose `run` or `runSync` has returned.
 * If it fails, or its thread ends, the next in the queue runs its own function, in strict order: blocked threads and promises
 * wait in one queue. A turn that comes to an event loop waits for it, at most until the timeout of its `run`, so that a busy
 * loop delays those behind it. Once it is done, `run` costs a load.
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
export class Once extends Primitive {
  /** The number of bytes that it takes. */
  static readonly BYTES: 4;

  /** As the constructor of {@link Mutex}. */
  constructor(buffer: SharedArrayBuffer, byteOffset?: number, options?: PrimitiveOptions);

  /** Whether it is done; if so, for ever. */
  readonly isDone: boolean;

  /**
   * Runs `fn`, unless another call has; while another one runs its own, waits until that is done. In any thread; never blocks,
   * never throws.
   *
   * A `run` inside the function of another one of the same thread waits for that: do not await it there.
   *
   * @param fn Called with {@link OnceNotes}. If it returns a promise, it is done when that is fulfilled.
   * @param options How long to wait for the turn, in milliseconds, counted from the call, or options. Default: for ever. What
   *   runs is ended by neither timeout nor signal.
   * @returns A promise of `true`: this call has run `fn`; or of `false`: another one has run its own. Rejected with what `fn`
   *   throws: then it is not done, and the next in line runs. Rejected with `ERR_LOCK_TIMEOUT` if the time was over, or as
   *   {@link Mutex.lockAsync}.
   */
  run(fn: (notes: OnceNotes) => unknown, options?: Timeout | AsyncLockOptions): Promise<boolean>;

  /**
   * Runs `fn`, unless another call has; while another one runs its own, waits until that is done. **Blocks** this thread;
   * workers only, unless `allowMainThread`. The wait can be ended as that of {@link Mutex.lock}.
   *
   * @param fn Called with {@link OnceNotes}; must be done when it returns.
   * @param timeout How long to wait for the turn, in milliseconds, counted from the call, or options. Default: for ever.
   * @returns `true`: this call has run `fn`. `false`: another one has run its own.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over; `fn` is not called then.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end: the `run` or `runSync` that is at work is
   *   this thread's own, or its thread waits for this one. Also if a `run` of this thread without a timeout waits ahead: it could get
   *   the turn, which its event loop could not take.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread, done or not.
   * @throws `ERR_INVALID_ARG_TYPE` if `fn` is no function, or returns a promise (it is not done then, and the next in line runs).
   * @throws As {@link Mutex.lock}, and what `fn` throws.
   */
  runSync(fn: (notes: OnceNotes) => unknown, timeout?: Timeout | LockOptions): boolean;

  /** Returns who runs (as the holder, `'exclusive'`) and who waits: a snapshot. In any thread; never blocks. */
  inspect(): PrimitiveInspection;
}

/** The argument of the function of {@link Once.run}. */
export interface OnceNotes {
  /**
   * Whether a thread has ended while it ran an earlier function, so that its work may be half done. Stays so for all who run
   * until it is done, also if one of them fails. There is no process warning; `sablock:abandoned` reports the first of them.
   */
  abandoned: boolean;
}
