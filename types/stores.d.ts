/** A store keeps locks among machines. Two that are described alike are one store in this process. */
export interface Store {
  /** Its kind. */
  readonly kind: 'etcd' | 'mysql' | 'postgres' | 'redis';
}

/**
 * A way to reach a store: a URL, the options of its client or a client that has some, or a module whose `connect()` returns a
 * client.
 */
export type StoreConnection =
  | string
  | {
      /** The absolute path of a module, which is loaded in the thread that keeps the locks. */
      readonly module: string;
    }
  | { readonly [option: string]: unknown }
  /** A client or pool of the program. */
  | object;

/** The options that all stores have. */
export interface StoreOptions {
  /** Names of different namespaces are different locks. Default: `'sablock'`. */
  namespace?: string | undefined;
  /** The time that connecting may take, and an answer of Redis or etcd, in milliseconds. Default: 5000. */
  connectTimeout?: number | undefined;
}

/** The result of {@link LockManager.stats}, for this process and its store. */
export interface StoreStats {
  /** The number of times that it has connected. */
  connects: number;
  /** The number of locks that it was granted. */
  grants: number;
  /** The number of renewals that were answered; of PostgreSQL, questions whether it still answers. */
  renewals: number;
  /** The number of locks that were lost while they were held. */
  losses: number;
  /** The number of its connections. */
  connections: number;
  /** The last round trip, in milliseconds; `null` before the first. */
  roundTripMs: number | null;
}
