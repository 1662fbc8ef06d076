import type { Timeout } from './options';
import type { Store, StoreStats } from './stores';

/**
 * Options of {@link LockManager.requestSync} and {@link LockManager.acquire}. As those of Web Locks, they may be inherited, which those of
 * the other verbs may not.
 */
export interface NamedLockOptions {
  /** `'shared'`: together with others of that mode. Default: `'exclusive'`, alone. */
  mode?: 'exclusive' | 'shared' | undefined;
  /**
   * With `true` nothing waits: a lock that is held, or that others wait for, is `null`. Among processes `null` means that it is
   * held; for a shared request, that it is held, or waited for, in the mode `'exclusive'`. Default: `false`.
   */
  ifAvailable?: boolean | undefined;
  /**
   * Whether to take the lock from all who hold it, before all who wait. Their code goes on, and their requests are rejected. For
   * locks of the process, in the mode `'exclusive'`. Default: `false`.
   */
  steal?: boolean | undefined;
  /** The time to wait, in milliseconds, counted from the call. Zero and less: one try. Default: for ever. */
  timeout?: Timeout | undefined;
  /** Whether the lock gets a number, its {@link HeldLock.fence}. Default: `false`. */
  fence?: boolean | undefined;
}

/** Options of {@link LockManager.request} and {@link LockManager.acquireAsync}. */
export interface AsyncNamedLockOptions extends NamedLockOptions {
  /**
   * Cancels the request when it aborts, or if it has aborted already: the promise is rejected with its `reason`. It may do so
   * until the callback begins, and at least until the end of the turn of the event loop in which the request was made. Not
   * together with `steal` or `ifAvailable`.
   */
  signal?: AbortSignal | undefined;
  /** Whether the pending request keeps the event loop, and so the process, alive. Default: `true`. A lock that is held does not. */
  ref?: boolean | undefined;
}

/** Options of {@link LockManager.close}. */
export interface CloseOptions {
  /** Whether what is held stays held until its callback ends or its `unlock()` is called. Default: `false`. */
  wait?: boolean | undefined;
}

/** Options of the constructor of {@link LockManager}. */
export interface LockManagerOptions {
  /**
   * Among whom the names are: `'process'`, all threads and all copies of this package in the process; or `'machine'`, all
   * processes of this user on this machine. Default: `'process'`, or `'machine'` if there is a `directory`.
   */
  scope?: 'process' | 'machine' | undefined;
  /**
   * The directory of the lock files, for the scope `'machine'`: all processes that can write there share the locks, and no
   * others can lock there, whatever the umask. It is made with the permissions 700 if its parent exists. You may change its
   * owner and permissions, but a directory in which other users may write must be sticky (`chmod 1770`, `chmod 1777`): else
   * they could remove files in use. Two paths to one directory are the same. Default: one that only this user can use, the same
   * whatever the environment says: `/tmp/sablock-<uid>` on Linux, in the folder that macOS has for the user beside the
   * temporary one (`getconf DARWIN_USER_DIR`), in the local application data on Windows. Containers, and services with a
   * private `/tmp`, see another one: give them a `directory` that they share.
   */
  directory?: string | undefined;
  /**
   * The store in which the locks are kept, for all machines that use the same: what `postgres()` of `sablock/postgres`, `redis()`
   * of `sablock/redis`, `mysql()` of `sablock/mysql` or `etcd()` of `sablock/etcd` returns. Instead of `scope` and `directory`.
   */
  store?: Store | undefined;
  /**
   * Whether `requestSync` and `acquire` may block the main thread. Default: `false`, because a blocked main thread handles no
   * events. Means nothing in a worker, which may always block.
   */
  allowMainThread?: boolean | undefined;
  /**
   * Repairs the data after a holder has ended inside. Called with the lock, which is held and {@link HeldLock.abandoned}, by
   * every verb of this manager that gets it so in the mode `'exclusive'`: before the callback, or before the verb returns. It
   * takes the place of the warning `SABLOCK_ABANDONED`. When it returns, or the promise that it returns is fulfilled, the lock
   * is consistent, as after {@link HeldLock.markConsistent}. If it fails, the lock is released, the mark stays for the next,
   * and the verb fails in the same way.
   *
   * For `requestSync` and `acquire` it must not return a promise: that is `ERR_INVALID_ARG_TYPE`.
   */
  onAbandoned?: ((lock: HeldLock) => void | PromiseLike<void>) | undefined;
}

/** A request that waits, as {@link LockManager.query} shows it. */
export interface NamedLockRequest {
  /** The name. */
  name: string;
  /** The mode in which it will hold it. */
  mode: 'exclusive' | 'shared';
  /**
   * Whose it is: `node-<pid>-<threadId>`. Of a holder elsewhere that a store knows: `redis-<host>-<pid>-<session>`,
   * `etcd-<host>-<pid>-<lease>`, `postgres-<pid>` or `mysql-<id>`.
   */
  clientId: string;
}

/** A lock that is held, as {@link LockManager.query} shows it. */
export interface NamedLockHolder extends NamedLockRequest {
  /** The process. Of a holder elsewhere that a store knows, -1, but of PostgreSQL the server's process that serves it. */
  pid: number;
  /** The `threadId` of the thread; -1 of a holder elsewhere that a store knows. */
  threadId: number;
  /** For how long it has been held, in milliseconds; -1 of a holder elsewhere that a store knows. */
  heldMs: number;
}

/**
 * The result of {@link LockManager.query}: who holds and who waits at one moment, in the order in which they came. In the scope
 * `'machine'` that is so for this process; after its own locks come those that other processes hold in the mode
 * `'exclusive'`, by what they have written. Who shares a lock, or waits, in another process, is not shown.
 */
export interface LockManagerSnapshot {
  /** The locks that are held. */
  held: NamedLockHolder[];
  /** The requests that wait. */
  pending: NamedLockRequest[];
}

/**
 * Locks that have names: the Web Locks API (W3C), among all threads of the process, and what that lacks.
 *
 * **Names** are strings of any 16-bit units; what is no string becomes one. Those that begin with `-` are refused. A name
 * takes memory only while it is held, waited for, or marked abandoned.
 *
 * **Several names** at once: an array of names in the place of a name. The request gets all of them or none. They are locked
 * one after the other, in an order that is the same for all, so that two such requests never wait for each other. It keeps
 * those that it already has, though {@link LockManager.query} still shows it as waiting for them. If one of these is stolen, or
 * lost in a store, before all are there, the request fails with that once they are, without its code. There is one timeout for all,
 * and a name that is given twice is locked once. (In a browser an array is one name.)
 *
 * **Order.** First come, first served, for each name, event loops included: nobody is overtaken, and a thread whose event loop is
 * busy delays those behind it, at most until the timeout of its request. Shared requests next to each other go in together.
 *
 * **Threads may end anywhere.** What a thread held goes to the next; what it asked for is withdrawn. If it held the lock in the
 * mode `'exclusive'`, the next sees {@link HeldLock.abandoned}. {@link LockManagerOptions.onAbandoned} is called, or else a
 * process warning with the code `SABLOCK_ABANDONED` is emitted; no warning comes if the callback calls
 * {@link HeldLock.markConsistent} in its first turn of the event loop.
 *
 * **Among processes.** `new LockManager({ scope: 'machine' })` has the locks of all processes of this user on this machine,
 * `new LockManager({ directory })` those of all processes that can write in a directory. The kernel keeps each as a lock of a
 * file: a process that is killed frees it at once, and one that is stopped, sleeps or is busy keeps it. There are no times
 * after which a lock counts as stale. An exclusive holder that ends inside (killed, by `process.exit()`, an uncaught error, the
 * end of its thread) leaves a mark, which the next one sees as `abandoned`, in whatever process; it stays until
 * `markConsistent()` is called. If it is not sure how a holder has ended, the lock is marked. `steal` is refused, since nothing
 * can stop a holder elsewhere. Order is strict in each process; between processes one is next, the others take turns. Deadlocks
 * are found within a process only. The files stay; do not remove them while processes use them: a holder whose file was removed
 * gets a warning when it unlocks (`SABLOCK_LOCK_FILE_REMOVED`). While a process uses a name it has a shared `flock` of the directory,
 * which keeps cleaners like systemd-tmpfiles away.
 *
 * **Not re-entrant.** A request inside the callback of one for the same name waits for that for ever; a blocking one without
 * a timeout throws a {@link DeadlockError}.
 *
 * @example
 * ```js
 * import { locks } from 'sablock';
 *
 * const total = await locks.request('account 7', async (lock) => {
 *   return lock.name.length;
 * });
 * console.log(total); // prints 9
 * ```
 *
 * @example
 * ```js
 * import { LockManager } from 'sablock';
 *
 * const machine = new LockManager({ scope: 'machine' });
 * await machine.request('an example of sablock', { timeout: 60_000 }, (lock) => {
 *   if (lock.abandoned) lock.markConsistent(); // after a look at what the last holder left
 *   console.log('one process at a time'); // prints one process at a time
 * });
 * ```
 */
export class LockManager {
  /**
   * Makes an object for the locks of a scope. Every manager of the process scope has the same locks, and so has every manager
   * of one directory.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if an option is wrong.
   * @throws `ERR_LOCK_DIRECTORY` if locks cannot be kept in the directory: it is missing, and its parent too; it is no directory;
   *   its file system is NFS, SMB, 9p, FUSE or AFS; others may write in it and it is not sticky;
   *   the default one belongs to others, has other permissions than 700, or is a link.
   *   Requests fail with it too, if a file there cannot be opened or locked; and with `ERR_LOCK_NO_THREAD` if the system
   *   refuses the background thread that waits for another process.
   * @throws `ERR_LOCK_THREAD_ENDING` for the machine scope if the thread is ending, as {@link Mutex.lock}.
   */
  constructor(options?: LockManagerOptions);

  /**
   * Runs `callback` while it holds the lock of this name. Never blocks, never throws; `callback` never runs inside the call.
   *
   * @param name The name. What is no string becomes one, but for `undefined`, which is refused.
   * @param callback Called with the lock; with `null` if `ifAvailable` is given and it is not free. The lock is held until what
   *   it returns is settled, or until {@link HeldLock.unlock}. Keeps its AsyncLocalStorage.
   * @returns A promise of what `callback` returns, settled once the lock is released, also if `callback` unlocks before. Rejected
   *   with what it throws, with the `reason` of the signal, with `ERR_LOCK_TIMEOUT` if the time was over (of a store that has not
   *   answered by then, with `ERR_LOCK_STORE`), with an `AbortError`
   *   (a `DOMException`) if the lock was stolen, with a `NotSupportedError` (a `DOMException`) for options that exclude each other
   *   and names that begin with `-`, with `ERR_INVALID_ARG_TYPE` for other wrong arguments.
   */
  request<T>(name: string, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(
    name: string,
    options: AsyncNamedLockOptions & { ifAvailable?: false | undefined },
    callback: (lock: HeldLock) => T,
  ): Promise<Awaited<T>>;
  request<T>(name: string, options: AsyncNamedLockOptions, callback: (lock: HeldLock | null) => T): Promise<Awaited<T>>;
  /**
   * The same for several names: all or none. `callback` gets an array of their locks, in the order of `names`. Not with `steal`.
   *
   * @example
   * ```js
   * import { locks } from 'sablock';
   *
   * const moved = await locks.request(['account 7', 'account 3'], { timeout: 1000 }, ([from, to]) => `${from.name} to ${to.name}`);
   * console.log(moved); // prints account 7 to account 3
   * ```
   */
  request<T>(names: readonly string[], callback: (locks: HeldLock[]) => T): Promise<Awaited<T>>;
  request<T>(
    names: readonly string[],
    options: AsyncNamedLockOptions & { ifAvailable?: false | undefined; steal?: false | undefined },
    callback: (locks: HeldLock[]) => T,
  ): Promise<Awaited<T>>;
  request<T>(
    names: readonly string[],
    options: AsyncNamedLockOptions & { steal?: false | undefined },
    callback: (locks: HeldLock[] | null) => T,
  ): Promise<Awaited<T>>;

  /**
   * As {@link LockManager.request}, without a callback: for `using`. Never blocks, never throws.
   *
   * @returns A promise of the lock, which is held until its `unlock`; of `null` if `ifAvailable` is given and it is not free.
   *   Rejected as that of `request`, except for what concerns the callback.
   *
   * @example
   * ```js
   * import { locks } from 'sablock';
   *
   * const lock = await locks.acquireAsync('report', { timeout: 5000 });
   * try {
   *   console.log(lock.mode); // prints exclusive
   * } finally {
   *   lock.unlock();
   * }
   * ```
   */
  acquireAsync(name: string, options?: AsyncNamedLockOptions & { ifAvailable?: false | undefined }): Promise<HeldLock>;
  acquireAsync(name: string, options: AsyncNamedLockOptions): Promise<HeldLock | null>;
  /** The same for several names: all or none. Not with `steal`. */
  acquireAsync(
    names: readonly string[],
    options?: AsyncNamedLockOptions & { ifAvailable?: false | undefined; steal?: false | undefined },
  ): Promise<HeldLocks>;
  acquireAsync(
    names: readonly string[],
    options: AsyncNamedLockOptions & { steal?: false | undefined },
  ): Promise<HeldLocks | null>;

  /**
   * Runs `fn` while it holds the lock of this name. **Blocks** this thread; workers only, unless `allowMainThread`. The wait
   * can be ended as that of {@link Mutex.lock}.
   *
   * @param fn Called with the lock; with `null` if `ifAvailable` is given and it is not free. Must be done when it returns.
   * @returns What `fn` returns.
   * @throws `ERR_LOCK_TIMEOUT` if the time was over; `fn` is not called then.
   * @throws `ERR_LOCK_DEADLOCK` if the wait has no timeout and could never end: this thread holds the lock, or threads wait for
   *   each other in a circle, for names and for other locks.
   * @throws `ERR_LOCK_MAIN_THREAD` on the main thread.
   * @throws `ERR_INVALID_ARG_TYPE` if an argument is wrong, or `fn` returns a promise (the lock is released then).
   * @throws An `AbortError` (a `DOMException`), after `fn`, if the lock was stolen meanwhile; else what `fn` throws.
   * @throws A `NotSupportedError` (a `DOMException`) as `request`. `ERR_INVALID_ARG_TYPE` for `signal`, which could not abort a
   *   blocked thread, and for `ref`.
   */
  requestSync<T>(name: string, fn: (lock: HeldLock) => T): T;
  requestSync<T>(
    name: string,
    options: NamedLockOptions & { ifAvailable?: false | undefined },
    fn: (lock: HeldLock) => T,
  ): T;
  requestSync<T>(name: string, options: NamedLockOptions, fn: (lock: HeldLock | null) => T): T;
  /** The same for several names: all or none. `fn` gets an array of their locks, in the order of `names`. Not with `steal`. */
  requestSync<T>(names: readonly string[], fn: (locks: HeldLock[]) => T): T;
  requestSync<T>(
    names: readonly string[],
    options: NamedLockOptions & { ifAvailable?: false | undefined; steal?: false | undefined },
    fn: (locks: HeldLock[]) => T,
  ): T;
  requestSync<T>(
    names: readonly string[],
    options: NamedLockOptions & { steal?: false | undefined },
    fn: (locks: HeldLock[] | null) => T,
  ): T;

  /**
   * Takes the lock of this name. **Blocks** this thread; workers only, unless `allowMainThread`.
   *
   * @returns The lock, which is held until its `unlock`; `null` if `ifAvailable` is given and it is not free.
   * @throws As {@link LockManager.requestSync}, except for what concerns `fn`.
   */
  acquire(name: string, options?: NamedLockOptions & { ifAvailable?: false | undefined }): HeldLock;
  acquire(name: string, options: NamedLockOptions): HeldLock | null;
  /** The same for several names: all or none. Not with `steal`. */
  acquire(
    names: readonly string[],
    options?: NamedLockOptions & { ifAvailable?: false | undefined; steal?: false | undefined },
  ): HeldLocks;
  acquire(names: readonly string[], options: NamedLockOptions & { steal?: false | undefined }): HeldLocks | null;

  /**
   * A promise of who holds which name and who waits, in all threads, at the moment of the call. Who holds in other processes
   * is read on a thread in the background, soon after; such a holder is shown unless its process has surely ended, and those
   * who share are not shown. Never blocks: a list of thousands is made in several turns of the event loop, and keeps it alive
   * meanwhile. With a store, holders elsewhere are shown, in either mode, but only of names that this process holds or asks for.
   */
  query(): Promise<LockManagerSnapshot>;
  /**
   * For a manager with a store: rejects pending and later requests with `ERR_LOCK_CLOSED`, and releases what it holds: at once, so
   * that the signals of those locks abort with a {@link LockLostError} of the reason `'closed'`; or, with `{ wait: true }`, when
   * their callbacks end and their `unlock()` is called. Called once more without it, it does not wait any longer. The connection
   * ends with the last manager of the store in this process. Other managers have nothing to close. Never blocks.
   *
   * A lock that is released at once is unlocked: the next holder sees no mark, though code may be inside still.
   *
   * @returns A promise that is fulfilled once the releases are on their way, within a second of the last, though the store may
   *   be silent: then what it still keeps ends with its lease, or its connection. Rejected with `ERR_INVALID_ARG_TYPE` if the
   *   options are none.
   */
  close(options?: CloseOptions): Promise<void>;
  /** As `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  /**
   * Whether the store answers, for health checks. Never blocks.
   *
   * @returns A promise of how long it took, in milliseconds; it rejects with `ERR_LOCK_STORE` if it does not answer, and with a
   *   NotSupportedError if this manager has no store.
   */
  check(): Promise<{
    /** For how long the store took to answer, in milliseconds. */
    roundTripMs: number;
  }>;
  /** A promise of counts; rejects as `check`. */
  stats(): Promise<StoreStats>;
}

/** The locks of the process: one {@link LockManager} for all threads, and all copies of this package. */
export const locks: LockManager;

/** Several locks of a {@link LockManager} that were acquired together. Every member is for the thread that got them. */
export class HeldLocks {
  private constructor();
  /** The locks, in the order in which they were asked for, each name once. */
  readonly locks: readonly HeldLock[];
  /** Whether one of them is held. */
  readonly locked: boolean;
  /** The locks of these that are {@link HeldLock.abandoned}. */
  readonly abandoned: HeldLock[];
  /** Releases those that are held. Returns whether there were any. */
  unlock(): boolean;
  /** As `unlock`, for `using`. */
  [Symbol.dispose](): void;
}

/** A lock of a {@link LockManager} that is held, or was. Every member is for the thread that got it. */
export class HeldLock {
  private constructor();
  /** The name. */
  readonly name: string;
  /** The mode in which it is held. */
  readonly mode: 'exclusive' | 'shared';
  /** Whether this still holds it, as far as this thread knows. */
  readonly locked: boolean;
  /**
   * While this holds it: whether an earlier holder's thread ended inside, or the lock was stolen, or lost (Redis, etcd) otherwise than by
   * its own {@link LockManager.close}, so that what it guards may be half done; until {@link HeldLock.markConsistent} is called.
   */
  readonly abandoned: boolean;
  /**
   * With the option `fence`, a number that grows with each grant of this name: hand it to the resource that the lock guards, which
   * refuses smaller ones. `null` without that option. In the process it is at least the time in microseconds since 1970, so that
   * a process that begins again does not repeat numbers.
   */
  readonly fence: bigint | null;
  /** The key of a lock of etcd that has a fence; its create revision is the fence. Else `null`. */
  readonly key: string | null;
  /**
   * Aborts when the lock is stolen, with an AbortError, or lost, with a {@link LockLostError}. A busy thread learns of it
   * later.
   */
  readonly signal: AbortSignal;

  /**
   * Removes the mark of abandonment: what the lock guards is sound again.
   *
   * @throws `ERR_LOCK_NOT_OWNER` if this does not hold it any more, or in the mode `'shared'`.
   */
  markConsistent(): void;
  /**
   * Releases the lock. Never blocks.
   *
   * @returns `true` if this held it; `false` if it was unlocked before, stolen, or lost.
   */
  unlock(): boolean;
  /** As `unlock`, for `using`. */
  [Symbol.dispose](): void;
}
