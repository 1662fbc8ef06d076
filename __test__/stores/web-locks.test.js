// The Web Locks API over process, machine, and each store, from one list of cases.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { LockManager } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const servers = require('../helpers/servers.js');
const { inTheWeather } = require('../helpers/stores.js');
const { watched } = require('../helpers/threads.js');
const { cases } = require('./web-locks.js');

const LEASE = 20_000;
const stores = { etcd, mysql, postgres, redis };
const folder = () => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-web-locks-'));
  return { url: home, stop: () => fs.rmSync(home, { recursive: true, force: true }) };
};

const SCOPES = {
  process: { isThere: true, start: () => ({ stop() {} }), settings: () => ({}) },
  machine: { isThere: true, start: folder, settings: ({ url }) => ({ scope: 'machine', directory: url }) },
  mysql: { isThere: servers.hasMysql, start: servers.startMysql, canShare: false },
  postgres: { isThere: servers.hasPostgres, start: servers.startPostgres },
  redis: { isThere: servers.hasRedis, start: servers.startRedis, options: { lease: LEASE } },
  etcd: { isThere: servers.hasEtcd, start: servers.startEtcd, options: { lease: LEASE } },
};

for (const [scope, { isThere, start, settings, options = {}, canShare = true }] of Object.entries(SCOPES)) {
  const skip = isThere ? false : `the server of ${scope} is not installed`;
  let server;
  let managers = [];
  before(async () => {
    if (skip) return;
    server = Object.hasOwn(stores, scope) ? await inTheWeather(scope, await start()) : await start();
    managers = [1, 2].map((index) => {
      const own = { allowMainThread: true };
      if (settings !== undefined) return new LockManager({ ...settings(server), ...own });
      // Another time limit: another store to this process, on the same server.
      return new LockManager({
        store: stores[scope](server.url, { ...options, connectTimeout: 5000 + index }),
        ...own,
      });
    });
  });
  after(async () => {
    for (const manager of managers) await manager.close();
    await server?.stop();
  });

  const thread = async (threads) => {
    const [actor] = await startActors(threads, 1);
    const folderOfStores = path.join(__dirname, '..', '..', 'lib', 'stores');
    const asked = settings?.(server) ?? null;
    await actor.do(
      (here, { kind, url, more, given, lib }) => {
        const make = () => here.require(`${lib}/${kind}.js`)[kind](url, more);
        here.manager = new here.sablock.LockManager(given ?? { store: make() });
      },
      { kind: scope, url: server.url, more: { ...options, connectTimeout: 5001 }, given: asked, lib: folderOfStores },
    );
    return actor;
  };

  for (const [index, { title, run }] of cases.entries()) {
    // Refused by such a store, as its own tests say.
    if (!canShare && /shared/.test(title + run)) continue;
    const name = `${scope} ${index}`;
    const body = watched((_, threads) => {
      const [manager, other] = managers;
      return run({ scope, manager, other, name, thread: () => thread(threads) });
    });
    test(`${scope}: ${title}`, { skip, timeout: 60_000 }, body);
  }
}
