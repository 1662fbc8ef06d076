import type { Store, StoreConnection, StoreOptions } from '../../index.js';

/** Options of {@link mysql}. */
export interface MysqlOptions extends StoreOptions {
  /** The most connections, from 2: one that never waits, up to four that wait, and those that were granted what they waited for. Default: 10. */
  connections?: number | undefined;
  /**
   * The interval at which a connection is asked whether it still answers, in milliseconds, from 50. What it holds counts as lost
   * when its last
   * answered query was sent three heartbeats ago; the server ends it after five (`wait_timeout`), and frees its locks. Default: 5000.
   */
  heartbeat?: number | undefined;
}

/**
 * Locks that a MySQL server keeps, version 5.7.5 or later, or a MariaDB server, version 10.0.2 or later, by `GET_LOCK()`: no table, no
 * right but to connect. Connects to nothing by itself. The package `mysql2`, version 3 or later, must be installed, unless
 * `connection` has a `module`.
 *
 * There is no shared mode: a request with `mode: 'shared'` is refused with a `NotSupportedError`.
 *
 * Refused when the first lock is asked for, with `ERR_LOCK_STORE`: a server that is read-only, as a replica is; a proxy that shares
 * connections among clients. Locks are not replicated: all must connect to the same server, also of a Galera cluster or a
 * replication group.
 *
 * The fence is `UUID_SHORT()` of the server: it grows as long as the clock and the `server_id` of the server do, over restarts too
 * that are a second apart. It may need all 64 bits: a column for it is `bigint unsigned`.
 *
 * @param connection - A URL (`mysql://user:password@host/database`); or the options of a connection of `mysql2`, which are copied; or a
 *   pool or connection of `mysql2` that the program has, whose options are copied (it is not used itself); or `{ module }`, the
 *   absolute path of a module whose `connect()` returns a promise of a connection of `mysql2/promise`, or of what has its `query()`,
 *   `on()` and `end()`.
 * @throws `ERR_INVALID_ARG_TYPE` if the connection names no server (no host, no URL with one, no `socketPath`), or has what cannot be
 *   copied to another thread, like functions; `ERR_INVALID_ARG_TYPE` or `ERR_OUT_OF_RANGE` if an option is wrong.
 *
 * @example
 * <!-- fragment -->
 * ```js
 * const { LockManager } = require('sablock');
 * const { mysql } = require('sablock/mysql');
 *
 * const cluster = new LockManager({ store: mysql('mysql://user@localhost/app') });
 * ```
 */
export declare function mysql(connection: StoreConnection, options?: MysqlOptions): Store;
