import type { Store, StoreConnection, StoreOptions } from '../../index.js';

/** Options of {@link redis}. */
export interface RedisOptions extends StoreOptions {
  /**
   * For how long the server keeps a lock, or a place in the queue, that is not renewed, in milliseconds, from 100. Default:
   * 30,000.
   */
  lease?: number | undefined;
  /**
   * The interval at which each lock, or place in the queue, is renewed, in milliseconds, from 10 to half of `lease`. Default: a
   * third of `lease`.
   */
  renew?: number | undefined;
  /**
   * The number of replicas that must have a lock before it counts as granted (`WAIT`, for half of `renew` at most); else it is
   * given back, and the request begins again. Then fewer locks are granted twice at a failover. Default: 0.
   */
  replicas?: number | undefined;
}

/**
 * Locks that a Redis server keeps, version 6.2 or later, or a Valkey server: strictly first come, first served, by a lease for each
 * request that a hidden thread renews. Connects to nothing by itself. The package `redis` or `ioredis` must be installed, unless
 * `connection` has a `module`.
 *
 * A server that evicts keys when its memory is full (a `maxmemory-policy` other than `noeviction`) evicts locks too: the process is
 * warned of it with the first request, once (`SABLOCK_STORE_EVICTS`).
 *
 * @param connection - A URL (`redis://user:password@host:6379`), for whichever client is installed; or the options of a client, which
 *   are copied and say whose they are (`{ url }`, `{ socket }` of `redis`, `{ host }`, `{ path }` of `ioredis`); or a client that the
 *   program has, whose options are copied (it is not used itself); or `{ module }`, the absolute path of a module whose `connect()` returns a promise of a connected client, a new one each time,
 *   whose keepalive it sets: for Sentinel, Cluster and tokens.
 * @throws `ERR_INVALID_ARG_TYPE` if the connection names no server, is a Cluster or Sentinel client, or has what cannot be copied to
 *   another thread, like functions; `ERR_INVALID_ARG_TYPE` or `ERR_OUT_OF_RANGE` if an option is wrong.
 *
 * @example
 * <!-- fragment -->
 * ```js
 * const { LockManager } = require('sablock');
 * const { redis } = require('sablock/redis');
 *
 * const cluster = new LockManager({ store: redis('redis://localhost:6379', { lease: 10_000 }) });
 * ```
 */
export declare function redis(connection: StoreConnection, options?: RedisOptions): Store;
