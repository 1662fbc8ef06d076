// All stores: how each is described, whether its server is there, what starts it, settings with which nothing is lost meanwhile, and
// whether its locks can be shared.

const { etcd } = require('../../lib/stores/etcd.js');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const servers = require('./servers.js');

module.exports = {
  mysql: [mysql, servers.hasMysql, servers.startMysql, {}, false],
  postgres: [postgres, servers.hasPostgres, servers.startPostgres, {}, true],
  redis: [redis, servers.hasRedis, servers.startRedis, { lease: 600_000 }, true],
  etcd: [etcd, servers.hasEtcd, servers.startEtcd, { lease: 600_000 }, true],
};
