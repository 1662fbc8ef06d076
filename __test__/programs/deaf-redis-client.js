// A module of a user, whose connect() returns a client that hears no message.

const { createClient } = require('redis');

exports.connect = async () => {
  const client = createClient({ url: process.env.SABLOCK_TEST_REDIS });
  client.on('error', () => {});
  await client.connect();
  client.subscribe = async () => {};
  return client;
};
