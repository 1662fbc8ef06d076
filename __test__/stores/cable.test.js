// A cable that is cut, in a network namespace: each holder learns of it before the server gives its lock to another.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { LockManager } = require('../..');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { layCable, noCable } = require('../helpers/cable.js');
const { createFolder } = require('../helpers/folder.js');
const servers = require('../helpers/servers.js');
const { startMachine } = require('../helpers/store-processes.js');

/** The number of locks that are cut off at once; with `SABLOCK_STORE_SCALE=100` a thousand. */
const NAMES = 10 * Number(process.env.SABLOCK_STORE_SCALE ?? 1);
const HEARTBEAT = 300;
const LEASE = 3000;

const KINDS = {
  mysql: {
    isThere: servers.hasMysql,
    make: mysql,
    settings: { heartbeat: HEARTBEAT },
    async start() {
      const server = await servers.startMysql({ 'bind-address': '0.0.0.0' });
      await server.query("create user 'root'@'%'");
      await server.query("grant all on *.* to 'root'@'%'");
      return server;
    },
  },
  postgres: {
    isThere: servers.hasPostgres,
    make: postgres,
    settings: { heartbeat: HEARTBEAT },
    async start(t) {
      const folder = createFolder(t);
      fs.chmodSync(folder, 0o755);
      const rules = path.join(folder, 'hba');
      fs.writeFileSync(rules, 'host all all all trust\n', { mode: 0o644 });
      return servers.startPostgres({ listen_addresses: '*', hba_file: rules });
    },
  },
  redis: {
    isThere: servers.hasRedis,
    make: redis,
    settings: { lease: LEASE },
    start: () => servers.startRedis(['--bind', '0.0.0.0', '--protected-mode', 'no']),
  },
  etcd: {
    isThere: servers.hasEtcd,
    make: etcd,
    // It answers once it has written to the disk, and half of a lease is the time for that.
    settings: { lease: 2 * LEASE },
    start: () => servers.startEtcd((port) => ({ 'listen-client-urls': `http://0.0.0.0:${port}` })),
  },
};

for (const [kind, { isThere, make, settings, start }] of Object.entries(KINDS)) {
  const skip = isThere ? noCable() : `the server of ${kind} is not installed`;
  test(`${kind}: a cable is cut: each of ${NAMES} holders learns of it before another is granted`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const server = await start(t);
    t.after(() => server.stop());
    const cable = layCable();
    t.after(() => cable.remove());
    const names = Array.from({ length: NAMES }, (_, index) => `cut off ${index}`);
    const far = await startMachine(t, { execPath: 'ip', execArgv: [...cable.exec, process.execPath] });
    const url = server.url.replace('127.0.0.1', cable.address);
    const held = await far.do(
      async (here, own, own_url, more, all) => {
        const manager = new here.sablock.LockManager({ store: here.open(own, own_url, more) });
        here.locks = await Promise.all(all.map((name) => manager.acquireAsync(name, { fence: true })));
        // The clock is that of the machine.
        here.told = Promise.all(
          here.locks.map(
            (lock) =>
              new Promise((resolve) => {
                const note = () => resolve([String(process.hrtime.bigint()), lock.signal.reason.reason]);
                lock.signal.addEventListener('abort', note);
              }),
          ),
        );
        return here.locks.map(({ fence }) => String(fence));
      },
      kind,
      url,
      settings,
      names,
    );
    const near = new LockManager({ store: make(server.url, settings) });
    t.after(() => near.close());
    const waits = names.map(async (name) => {
      const lock = await near.acquireAsync(name, { fence: true });
      return { at: process.hrtime.bigint(), lock };
    });
    while ((await near.query()).pending.length < NAMES);
    cable.cut();
    const begun = process.hrtime.bigint();
    const told = await far.do((here) => here.told);
    const granted = await Promise.all(waits);
    for (const [index, { at, lock }] of granted.entries()) {
      const [toldAt, reason] = told[index];
      assert.equal(reason, 'unreachable');
      assert.ok(BigInt(toldAt) < at, `${names[index]} was granted to another before its holder learned of the loss`);
      assert.ok(lock.fence > BigInt(held[index]));
    }
    const after = (times) => Number(times.sort().at(-1) - begun) / 1e6;
    const [toldMs, grantedMs] = [after(told.map(([at]) => BigInt(at))), after(granted.map(({ at }) => at))];
    t.diagnostic(
      `all had learned of it after ${toldMs.toFixed()} ms, and granted to others after ${grantedMs.toFixed()} ms`,
    );
    cable.heal();
    const ended = await far.do((here) => here.locks.map((lock) => [lock.locked, lock.unlock()]));
    assert.deepEqual(new Set(ended.flat()), new Set([false]));
    for (const { lock } of granted) {
      if (lock.abandoned) lock.markConsistent();
      assert.equal(lock.unlock(), true);
    }
  });
}

test('postgres: a wait that is cut off does not keep what it is granted, though no probe is sent behind an answer under way', {
  skip: servers.hasPostgres ? noCable() : 'the server of postgres is not installed',
  timeout: 120_000,
}, async (t) => {
  const { start, settings } = KINDS.postgres;
  const server = await start(t);
  t.after(() => server.stop());
  const cable = layCable();
  t.after(() => cable.remove());
  const far = await startMachine(t, { execPath: 'ip', execArgv: [...cable.exec, process.execPath] });
  const near = new LockManager({ store: postgres(server.url, settings) });
  t.after(() => near.close());
  const lock = await near.acquireAsync('granted to nobody');
  far.do(
    (here, url, more) => {
      here.manager = new here.sablock.LockManager({ store: here.open('postgres', url, more) });
      here.manager.acquireAsync('granted to nobody');
    },
    server.url.replace('127.0.0.1', cable.address),
    settings,
  );
  const waits = "select pid from pg_locks where locktype = 'advisory' and not granted";
  while ((await server.query(waits)).length === 0);
  cable.cut();
  // The answer is sent again and again, for a quarter of an hour if nothing else is said, and no keepalive beside it.
  assert.equal(lock.unlock(), true);
  while ((await server.query(waits)).length > 0);
  const next = await near.acquireAsync('granted to nobody');
  assert.equal(next.unlock(), true);
  // Its process would wait for the server.
  far.kill();
});
