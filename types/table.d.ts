import type { LockGuard } from './lockable';
import type { Mutex, MutexInspection } from './mutex';
import type { AsyncLockOptions, LockOptions, Timeout } from './options';
import type { LockAllGuard } from './several';

/** Options of the constructor of {@link LockTable}. */
export interface LockTableOptions {
  /** As {@link MutexOptions.allowMainThread}, for all locks of the table. */
  allowMainThread?: boolean | undefined;
  /** As {@link MutexOptions.maySleep}, for all locks of the table. */
  maySleep?: boolean | undefined;
  /** As {@link MutexOptions.name}; messages add the lock's number. */
  name?: string | undefined;
  /** As {@link MutexOptions.onAbandoned}, with the table and the number of the lock. */
  onAbandoned?: ((table: LockTable, index: number) => void) | undefined;
}

/**
 * Many mutexes in a row, of four bytes each, which are locked by their numbers: a lock for each row of a table, or, by
 * {@link LockTable.indexFor}, for each key. A million of them are one object; zeroed memory is a table of unlocked locks.
 *
 * Each lock is a mutex, with the guarantees of {@link Mutex}: `table.at(index)` is the same lock as an object, and so is
 * `new Mutex(buffer, byteOffset + 4 * index)`. The verbs are those of the mutex, with the number first. To hold several,
 * use {@link LockTable.lockAll}: two keys may have one lock, and locks that are taken one by one may deadlock.
 *
 * All verbs throw `ERR_OUT_OF_RANGE` (a RangeError) if the table has no lock `index`, and `ERR_INVALID_ARG_TYPE` if `index`
 * is no number; those that return a promise reject.
 *
 * @example
 * ```js
 * import { LockTable } from 'sablock';
 *
 * const memory = new SharedArrayBuffer(LockTable.bytes(1000));
 * const locks = new LockTable(memory, 0, 1000);
 * const index = locks.indexFor('user:42');
 * if (await locks.lockAsync(index, { timeout: 1000 })) {
 *   console.log(`lock ${index} is held`);
 *   locks.unlock(index);
 * }
 * ```
 */
export class LockTable {
  /** The number of bytes that one lock takes. */
  static readonly BYTES: 4;
  /** The number that the table's byte offset must be a multiple of. */
  static readonly ALIGN: 4;

  /**
   * Returns the number of bytes that a table of `length` locks takes.
   *
   * @throws `ERR_INVALID_ARG_TYPE`, `ERR_OUT_OF_RANGE` if `length` is no integer of 1 or more.
   */
  static bytes(length: number): number;

  /**
   * Makes an object for the table at this place in shared memory. The memory is not changed. In any thread.
   *
   * @param buffer As for {@link Mutex}.
   * @param byteOffset Where the first lock is: 0 or more, a multiple of 4.
   * @param length How many locks there are: an integer of 1 or more, the same in every thread that uses `indexFor`.
   * @throws `ERR_INVALID_ARG_TYPE` if `buffer` is not shared memory, or another argument has the wrong type.
   * @throws `ERR_OUT_OF_RANGE` if `length` is no such integer, or the table does not lie aligned inside the buffer.
   */
  constructor(buffer: SharedArrayBuffer, byteOffset: number | undefined, length: number, options?: LockTableOptions);

  /** The buffer given to the constructor. */
  readonly buffer: SharedArrayBuffer;
  /** The byte offset of the first lock in the buffer. */
  readonly byteOffset: number;
  /** The number of locks in the table. */
  readonly length: number;
  /** The name given to the constructor; `null` without one. */
  readonly name: string | null;

  /** Locks the lock `index`. **Blocks** as {@link Mutex.lock}, and returns and throws as that does. */
  lock(index: number, timeout?: Timeout | LockOptions): boolean;
  /** Locks the lock `index`, as {@link Mutex.lockAsync}. */
  lockAsync(index: number, options?: Timeout | AsyncLockOptions): Promise<boolean>;
  /** Locks the lock `index` if that is possible at once, as {@link Mutex.tryLock}. */
  tryLock(index: number): boolean;
  /** Unlocks the lock `index`, as {@link Mutex.unlock}. */
  unlock(index: number): void;
  /** Locks the lock `index` and returns its guard. **Blocks** as {@link Mutex.acquire}. */
  acquire(index: number, options?: Timeout | LockOptions): LockGuard;
  /** Locks the lock `index`, as {@link Mutex.acquireAsync}. */
  acquireAsync(index: number, options?: Timeout | AsyncLockOptions): Promise<LockGuard>;
  /** Locks the lock `index` if that is possible at once, as {@link Mutex.tryAcquire}. */
  tryAcquire(index: number): LockGuard | null;
  /** Runs `fn` while it holds the lock `index`, as {@link Mutex.executeLocked}. */
  executeLocked<T>(index: number, fn: () => T | PromiseLike<T>, options?: AsyncLockOptions): Promise<T>;
  /** Runs `fn` while it holds the lock `index`. **Blocks** as {@link Mutex.executeLockedSync}. */
  executeLockedSync<T>(index: number, fn: () => T, options?: LockOptions): T;
  /** Whether this thread holds the lock `index`. Never blocks. */
  isHeldByThisThread(index: number): boolean;

  /**
   * The lock `index` as an object: for a {@link Condition}, for {@link lockAll}, for `markConsistent`. A new object each
   * time, for the same lock. Never blocks.
   */
  at(index: number): Mutex;

  /**
   * The number of the lock that a key has: the same in every thread, version, runtime and process, for tables of the same
   * length. Keys are equal if they are the same string, by its UTF-16 code units, or the same number: `1` and `1n` are one
   * key, so are `0` and `-0`, and `'1'` is another. Several keys may have one lock. Never blocks.
   *
   * It is MurmurHash3 (x86, 32 bits, unsigned) modulo `length`. What is hashed is the key's text, in UTF-16 code units of two bytes
   * each, the low byte first, with the seed 0 for a string and 1 for a number or bigint. The text of an integer is its
   * decimal digits, that of another number is `String(key)`.
   *
   * @throws `ERR_INVALID_ARG_TYPE` if `key` is no string, number or bigint.
   */
  indexFor(key: string | number | bigint): number;

  /** Returns the holder of the lock `index` and its waiters, as {@link Mutex.inspect}. */
  inspect(index: number): MutexInspection;

  /** Locks several locks of the table, or none. **Blocks** as {@link lockAll}. */
  lockAll(indices: Iterable<number>, options?: Timeout | LockOptions): LockAllGuard<Mutex>;
  /** Locks several locks of the table, or none, as {@link lockAllAsync}. */
  lockAllAsync(indices: Iterable<number>, options?: Timeout | AsyncLockOptions): Promise<LockAllGuard<Mutex>>;
}
