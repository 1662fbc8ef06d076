'use strict';
// The servers of a run, on loopback, in a folder of their own: those that are installed.

const helpers = require('../../__test__/helpers/servers');

const KINDS = {
  postgres: [helpers.hasPostgres, helpers.startPostgres],
  redis: [helpers.hasRedis, helpers.startRedis],
  etcd: [helpers.hasEtcd, helpers.startEtcd],
};

/** `{ stores, absent, end() }`: what runs, as `{ kind, url }`, and why the others do not. */
async function startServers() {
  const servers = [];
  const absent = {};
  const stores = [];
  for (const [kind, [isThere, start]] of Object.entries(KINDS)) {
    if (!isThere) {
      absent[kind] = 'its server is not installed';
      continue;
    }
    const server = await start();
    servers.push(server);
    stores.push({ kind, url: server.url });
  }
  return { stores, absent, end: () => Promise.all(servers.map((server) => server.stop())) };
}

module.exports = { startServers };
