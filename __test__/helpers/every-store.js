// All stores: how each is described, whether its server is there, what starts it, and settings with which nothing is lost meanwhile.

const { etcd } = require('../../lib/stores/etcd.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const servers = require('./servers.js');

module.exports = {
  postgres: [postgres, servers.hasPostgres, servers.startPostgres, {}],
  redis: [redis, servers.hasRedis, servers.startRedis, { lease: 600_000 }],
  etcd: [etcd, servers.hasEtcd, servers.startEtcd, { lease: 600_000 }],
};
