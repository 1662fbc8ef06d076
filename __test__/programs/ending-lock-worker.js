// A module of a user, which the lock worker loads: it ends the lock worker's thread when the environment, which all threads share,
// says so.

const { createClient } = require('redis');

setInterval(() => {
  if (process.env.SABLOCK_TEST_END !== 'now') return;
  process.env.SABLOCK_TEST_END = 'done';
  process.exit();
}, 5).unref();

exports.connect = async () => {
  const client = createClient({ url: process.env.SABLOCK_TEST_REDIS, socket: { reconnectStrategy: false } });
  client.on('error', () => {});
  await client.connect();
  return client;
};
