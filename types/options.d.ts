/**
 * The time to wait, in milliseconds.
 *
 * `undefined`, `NaN` and `Infinity`: for ever. Zero or less: one try, without waiting. Fractions count. It becomes one deadline
 * on the monotonic clock when the verb is called, whatever happens in between.
 */
export type Timeout = number;

/**
 * Options of the verbs that block. They have neither a signal, which could not abort a blocked thread, nor `ref`.
 *
 * An options object is an object of any class or realm that is nothing else: an array, an `AbortSignal`, a `Date` or a `Map` in its
 * place is `ERR_INVALID_ARG_TYPE`. Its own properties count, enumerable or not, and no inherited ones. A property that no verb of the
 * package has is passed over, unless it is one edit away from an option (two where the name is longer than four letters), an option
 * with a unit (`timeoutMs`), or what another library calls one (`ttl`, `deadline`, `abortSignal`): `ERR_INVALID_ARG_TYPE` too.
 */
export interface LockOptions {
  /** The time to wait, in milliseconds. Default: for ever. */
  timeout?: Timeout | undefined;
}

/** Options of the methods that return a promise. */
export interface AsyncLockOptions extends LockOptions {
  /**
   * Cancels the wait when it aborts, or if it has aborted already: the promise is rejected with the signal's `reason`. A lock
   * that was granted before is never taken back. Any number of waits may share one signal.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending wait keeps the event loop, and so the process, alive. Default: `true`. */
  ref?: boolean | undefined;
}

/** Options of the constructors of {@link ManualResetEvent}, {@link AutoResetEvent}, {@link Latch}, {@link Once} and {@link Exchanger}. */
export interface PrimitiveOptions {
  /** Whether the verbs that block may block the main thread. Default: `false`. Means nothing in a worker. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.name}. */
  name?: string | undefined;
}

/** Options of the constructor of {@link Barrier}. */
export type SynchronizerOptions = PrimitiveOptions;
