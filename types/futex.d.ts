/** Options of {@link waitAsync}. */
export interface WaitAsyncOptions {
  /**
   * Cancels the wait when it aborts: the promise is rejected with the signal's `reason`. A wait that was notified before is
   * fulfilled all the same, since its notification was counted.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending wait keeps the event loop, and so the process, alive. Default: `true`. */
  ref?: boolean | undefined;
}

/**
 * `Atomics.wait` with this package's queues: **blocks** this thread until a {@link notify} for the element, if the element
 * holds `value`. Workers only.
 *
 * Arguments are checked and converted in the order and with the errors that ECMAScript specifies. Waiters of `wait` and
 * `waitAsync` share one queue for each element; only `notify` wakes them, never a change of the value. `terminate()`,
 * `process.exit()` and uncaught errors end the wait within 100 ms, and the debugger can pause it. If the thread ends before its
 * code learns of a notification, the next in line is notified, if it waited at that time.
 *
 * @param typedArray A view of shared memory.
 * @param timeout How long to wait, in milliseconds, counted from the call. `undefined`, `NaN`: for ever. Zero or less: does not
 *   wait. Options in its place are refused, though ECMAScript has them wait for ever.
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

/** The end of a {@link wait}. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out';

/**
 * `Atomics.notify` with this package's queues: wakes the first who wait for the element. In any thread; never blocks.
 *
 * Wakes neither those who wait for a lock, nor those of `Atomics.wait`; nor does `Atomics.notify` wake those who wait here.
 *
 * @param count How many, at most. Default: all.
 * @returns How many were woken; 0 for memory that is not shared.
 * @throws `ERR_INVALID_ARG_TYPE` (a TypeError), `ERR_OUT_OF_RANGE` (a RangeError), and what a conversion throws.
 */
export function notify(typedArray: Int32Array | BigInt64Array, index?: number, count?: number): number;

/**
 * `Atomics.waitAsync` with this package's queues, with one argument more. In any thread; never blocks.
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

/** The result of {@link waitAsync}. */
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
