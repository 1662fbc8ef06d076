// A module of a user, which the lock worker loads: it ends the lock worker's thread at random.

const { SABLOCK_TORTURE_KIND: kind, SABLOCK_TORTURE_URL: url } = process.env;

setTimeout(() => process.exit(), 1000 + Math.random() * 8000).unref();

exports.connect = async () => {
  if (kind === 'postgres') {
    const { Client } = require('pg');
    const client = new Client({ connectionString: url, application_name: 'sablock' });
    client.on('error', () => {});
    await client.connect();
    return client;
  }
  if (kind === 'mysql') {
    const client = await require('mysql2/promise').createConnection(url);
    client.on('error', () => {});
    return client;
  }
  const { createClient } = require('redis');
  const client = createClient({ url, socket: { reconnectStrategy: false } });
  client.on('error', () => {});
  await client.connect();
  return client;
};
