'use strict';
// Locks among machines, each in a way of its own: `open(face, { kind, url, name }, root)` returns `take()` as in machine-locks.js. And a
// bare round trip of each store's client, which is what no lock can do without.

const path = require('node:path');

/** Long enough that nothing is renewed while it is measured. */
const LEASE_MS = 30_000;
/** At a name that nobody locks. */
const KEY = Buffer.from('bench').toString('base64');

const managerOf = ({ kind, url, options }, root) => {
  const { LockManager } = require(root);
  return new LockManager({ store: require(path.join(root, 'lib', 'stores', `${kind}.js`))[kind](url, options) });
};

/** The client that this package takes. */
const CLIENTS = {
  async postgres(url) {
    const { Client } = require('pg');
    const client = new Client({ connectionString: url });
    await client.connect();
    return { query: (sql, values) => client.query(sql, values), trip: () => client.query('select 1') };
  },
  async redis(url) {
    const { createClient } = require('redis');
    const client = createClient({ url });
    await client.connect();
    return { trip: () => client.sendCommand(['PING']) };
  },
  /** One that is written, as a lock is: etcd answers when it is on disk. */
  async etcd(url, root) {
    const { Gateway } = require(path.join(root, 'lib', 'stores', 'etcd', 'gateway.js'));
    const gateway = new Gateway(url);
    return { trip: () => gateway.call('kv/put', { key: KEY, value: KEY }, LEASE_MS) };
  },
};

const ioredis = (url) => {
  const Redis = require('ioredis');
  return new (Redis.default ?? Redis)(url);
};

const FACES = {
  sablock(store, root) {
    const locks = managerOf(store, root);
    return async () => {
      const lock = await locks.acquireAsync(store.name);
      return { abandoned: lock.abandoned, consistent: () => lock.markConsistent(), unlock: () => lock.unlock() };
    };
  },
  redlock({ url, name }) {
    const Redlock = require('redlock');
    const redlock = new Redlock([ioredis(url)], { retryCount: -1 });
    return () => redlock.lock(name, LEASE_MS);
  },
  'redis-semaphore'({ url, name }) {
    const { Mutex } = require('redis-semaphore');
    const mutex = new Mutex(ioredis(url), name, { lockTimeout: LEASE_MS, acquireTimeout: 10 * LEASE_MS });
    return async () => {
      await mutex.acquire();
      return { unlock: () => mutex.release() };
    };
  },
  pg_advisory_lock({ url, name }) {
    const connected = CLIENTS.postgres(url);
    return async () => {
      const { query } = await connected;
      await query('select pg_advisory_lock(hashtext($1))', [name]);
      return { unlock: () => query('select pg_advisory_unlock(hashtext($1))', [name]) };
    };
  },
};

/** By kind of store: who else locks there. */
const OTHERS = { postgres: ['pg_advisory_lock'], redis: ['redlock', 'redis-semaphore'], etcd: [] };

const open = (face, store, root) => FACES[face](store, root);
const connect = ({ kind, url }, root) => CLIENTS[kind](url, root);

module.exports = { OTHERS, connect, managerOf, open };
