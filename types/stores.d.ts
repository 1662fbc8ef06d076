/** Where locks among machines are kept. Two that are described alike are one store in this process. */
export interface Store {
  /** Its kind. */
  readonly kind: 'etcd' | 'postgres' | 'redis';
}

/** How a store is reached: a URL, the options of its client or a client that has some, or a module whose `connect()` returns a client. */
export type StoreConnection =
  | string
  | {
      /** The absolute path of a module, which is loaded in the thread that keeps the locks. */
      readonly module: string;
    }
  | { readonly [option: string]: unknown }
  /** A client or pool of the program. */
  | object;

/** What all stores have in common. */
export interface StoreOptions {
  /** Names of different namespaces are different locks. Default: `'sablock'`. */
  namespace?: string | undefined;
  /** How long connecting may take, and an answer of Redis or etcd, in milliseconds. Default: 5000. */
  connectTimeout?: number | undefined;
}

/** What {@link LockManager.stats} returns, for this process and its store. */
export interface StoreStats {
  /** How often it has connected. */
  connects: number;
  /** How many locks it was granted. */
  grants: number;
  /** How many renewals were answered; of PostgreSQL, questions whether it still answers. */
  renewals: number;
  /** How many of the locks were lost while they were held. */
  losses: number;
  /** How many connections it has. */
  connections: number;
  /** The last round trip, in milliseconds; `null` before the first. */
  roundTripMs: number | null;
}
