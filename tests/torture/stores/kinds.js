// The stores of a run: how their servers start, what is done to them, and what must be left when all is over.

const servers = require('../../../__test__/helpers/servers.js');

/** A tenth of what users have, and less: a lease, or three heartbeats. In milliseconds. */
const LIMIT = 2000;

const revokeSome = async (server, random) => {
  const { leases = [] } = await server.call('lease/leases', {});
  for (const { ID } of leases) if (random.next() < 0.3) await server.call('lease/revoke', { ID }).catch(() => {});
};

const killSome = (text) => async (server, random) => {
  const sessions = await server.query('select id from information_schema.processlist where id <> connection_id()');
  for (const { id } of sessions) if (random.next() < 0.3) await server.query(text, [id]).catch(() => {});
};

const keysOf = async (server) => {
  const [key, range_end] = ['sablock/', 'sablock0'].map((text) => Buffer.from(text).toString('base64'));
  const { kvs = [] } = await server.call('kv/range', { key, range_end });
  return kvs.map((each) => ({ key: each.key, text: Buffer.from(each.key, 'base64').toString('latin1') }));
};

const REDIS = {
  store: 'redis',
  isThere: servers.hasRedis,
  start: servers.startRedis,
  settings: { lease: LIMIT },
  take: {
    'CLIENT KILL': (server, random) => {
      const type = random.next() < 0.5 ? 'normal' : 'pubsub';
      return server.run('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    },
    'SCRIPT FLUSH': (server) => server.run('SCRIPT', 'FLUSH'),
  },
  async left(server) {
    const keys = await server.run('KEYS', '*:line');
    const counts = await Promise.all(keys.map((key) => server.run('ZCARD', key)));
    return counts.reduce((sum, number) => sum + Number(number), 0);
  },
};

const HOUR = 3_600_000;

/** Not loaded in processes that ask for locks but by the kind's `preload`: it changes what they run. */
const stepClock = (server, ms) => require('./server-clock.js').stepClock(server, ms);

/** Some steps are shorter than a lease, and some are longer than anything. */
const stepSomewhere = (server, random) => {
  const longest = random.pick([LIMIT / 2, 2 * LIMIT, HOUR]);
  return stepClock(server, random.below(2 * longest) - longest);
};

/** Longer than any run. */
const NEVER = HOUR;

/** The faults that end what some hold, or have asked for, with a lease only. */
const HEALED_BY_LEASES = new Set(['FLUSHALL', 'lease revoke', 'delete keys', 'pg_cancel_backend', 'KILL QUERY']);

/** A kind whose delays are watched: leases are longer than the run, and nothing is done that only their end heals. */
function delaysOf(kind) {
  const take = Object.entries(kind.take).filter(([name]) => !HEALED_BY_LEASES.has(name));
  const settings = kind.settings.lease === undefined ? kind.settings : { lease: NEVER, connectTimeout: LIMIT };
  return { ...kind, settings, take: Object.fromEntries(take), hasEndingClient: false, watchesDelays: true };
}

/**
 * `store`: what it is a kind of. `canShare`: false if it has no shared mode. `preload`: a file that its processes load first.
 * `take`: an administrator takes what some hold; `atLast`: what it does when the storm is over. `left`: how many requests the server
 * knows. `watchesDelays`: see delays.js.
 */
const KINDS = {
  mysql: {
    store: 'mysql',
    isThere: servers.hasMysql,
    start: () => servers.startMysql({ 'plugin-load-add': 'metadata_lock_info' }),
    settings: { heartbeat: LIMIT / 3 },
    canShare: false,
    take: {
      KILL: killSome('kill ?'),
      'KILL QUERY': killSome('kill query ?'),
    },
    left: async (server) => {
      const rows = await server.query(
        "select count(*) as count from information_schema.metadata_lock_info where lock_type = 'User lock'",
      );
      return Number(rows[0].count);
    },
  },
  postgres: {
    store: 'postgres',
    isThere: servers.hasPostgres,
    start: servers.startPostgres,
    settings: { heartbeat: LIMIT / 3 },
    take: {
      pg_terminate_backend: (server) =>
        server.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sablock' and random() < 0.3",
        ),
      pg_cancel_backend: (server) =>
        server.query(
          "select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'sablock' and random() < 0.3",
        ),
    },
    left: async (server) =>
      Number((await server.query("select count(*) from pg_locks where locktype = 'advisory'"))[0].count),
  },
  redis: { ...REDIS, take: { ...REDIS.take, FLUSHALL: (server) => server.run('FLUSHALL') } },
  // The server's knowledge is kept on a disk: one that has lost its counters, and whose clock was set back, gives fences out
  // again.
  'redis-clock': {
    ...REDIS,
    start: () => servers.startRedis(['--appendonly', 'yes', '--appendfsync', 'always']),
    preload: require.resolve('./server-clock.js'),
    take: { 'clock stepped': stepSomewhere },
    atLast: (server) => stepClock(server, -HOUR),
  },
  etcd: {
    store: 'etcd',
    // It has none that a module could give.
    hasEndingClient: false,
    isThere: servers.hasEtcd,
    start: servers.startEtcd,
    settings: { lease: LIMIT },
    take: {
      'lease revoke': revokeSome,
      async 'delete keys'(server, random) {
        for (const { key } of await keysOf(server))
          if (random.next() < 0.3) await server.call('kv/deleterange', { key });
      },
      async compaction(server) {
        const { header } = await server.call('kv/range', { key: Buffer.from('x').toString('base64') });
        await server.call('kv/compaction', { revision: header.revision });
      },
    },
    left: async (server) => (await keysOf(server)).filter(({ text }) => !text.endsWith(':held')).length,
  },
};

for (const kind of ['redis', 'etcd', 'postgres', 'mysql']) KINDS[`${kind}-delays`] = delaysOf(KINDS[kind]);

exports.KINDS = KINDS;
exports.LIMIT = LIMIT;
