// A module of a user, whose connect() returns a client of a Redis cluster, of the package that the environment names.

exports.connect = async () => {
  const { SABLOCK_TEST_REDIS: url, SABLOCK_TEST_PACKAGE: name } = process.env;
  const { Cluster, createCluster } = require(name);
  const client =
    name === 'ioredis' ? new Cluster([url], { lazyConnect: true }) : createCluster({ rootNodes: [{ url }] });
  client.on('error', () => {});
  await client.connect();
  return client;
};
