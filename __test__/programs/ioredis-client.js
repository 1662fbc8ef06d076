// A module of a user, whose connect() returns a client.

const Redis = require('ioredis');

exports.connect = async () => {
  const client = new (Redis.default ?? Redis)(process.env.SABLOCK_TEST_REDIS, { lazyConnect: true });
  await client.connect();
  return client;
};
