import type { Store, StoreConnection, StoreOptions } from '../../index.js';

/** Options of {@link etcd}. */
export interface EtcdOptions extends StoreOptions {
  /**
   * For how long the cluster keeps the locks of a process that does not renew its lease, in milliseconds, from 2000; rounded up
   * to whole seconds. Default: 30,000.
   */
  lease?: number | undefined;
  /** The interval at which the lease is renewed, in milliseconds, from 10 to half of `lease`. Default: a third of `lease`. */
  renew?: number | undefined;
}

/**
 * Locks that an etcd cluster keeps, version 3.4 or later: strictly first come, first served, by a lease for each process that a hidden
 * thread renews. A lock's fence is the revision that made its key. Connects to nothing by itself, and needs no client: it speaks to the
 * JSON gateway that each member has on its client port.
 *
 * @param connection - A URL (`https://user:password@host:2379`), or the URLs of several members with commas in between; or
 *   `{ endpoints, username, password }`, where `endpoints` is an array of URLs, with the options of `tls.connect()` that can be copied
 *   (`ca`, `cert`, `key`, ...). A member that cannot be reached is passed over. `{ module }` is not for this store.
 * @throws `ERR_INVALID_ARG_TYPE` or `ERR_OUT_OF_RANGE` if an option is wrong.
 *
 * @example
 * <!-- fragment -->
 * ```js
 * const { LockManager } = require('sablock');
 * const { etcd } = require('sablock/etcd');
 *
 * const cluster = new LockManager({ store: etcd('http://localhost:2379', { lease: 10_000 }) });
 * ```
 */
export declare function etcd(connection: StoreConnection, options?: EtcdOptions): Store;
