import type { Store, StoreConnection, StoreOptions } from '../../index.js';

/** Options of {@link postgres}. */
export interface PostgresOptions extends StoreOptions {
  /** The most connections, from 2: one that never waits, up to four that wait, and those that were granted what they waited for. Default: 10. */
  connections?: number | undefined;
  /**
   * The interval at which a connection that holds locks is asked whether it still answers, in milliseconds, from 50. What it holds
   * counts as lost when its last answered query was sent three heartbeats ago; the server frees it after five. Default: 5000.
   */
  heartbeat?: number | undefined;
}

/**
 * Locks that a PostgreSQL server keeps, version 12 or later, as session advisory locks: no table, no extension, no right but
 * `CONNECT`. Connects to nothing by itself. The package `pg` must be installed, unless `connection` has a `module`.
 *
 * Refused when the first lock is asked for, with `ERR_LOCK_STORE`: a standby; a pooler in transaction mode; databases that accept
 * advisory locks and ignore them.
 *
 * @param connection - A URL (`postgres://user:password@host/database`); or the options of `pg`'s `Client`, which are copied; or a pool
 *   or client of `pg` that the program has, whose options are copied (it is not used itself); or `{ module }`, the absolute path of a module whose `connect()` returns a promise of a connected client, with `query()`, `on()`
 *   and `end()`, whose keepalive it sets.
 * @throws `ERR_INVALID_ARG_TYPE` if the connection names no server (no host, no URL with one, no `PGHOST`), or has what cannot be
 *   copied to another thread, like functions; `ERR_INVALID_ARG_TYPE` or `ERR_OUT_OF_RANGE` if an option is wrong.
 *
 * @example
 * <!-- fragment -->
 * ```js
 * const { LockManager } = require('sablock');
 * const { postgres } = require('sablock/postgres');
 *
 * const cluster = new LockManager({ store: postgres('postgres://user@localhost/app') });
 * ```
 */
export declare function postgres(connection: StoreConnection, options?: PostgresOptions): Store;
