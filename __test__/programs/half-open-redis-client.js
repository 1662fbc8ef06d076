// A module of a user, whose connect() returns clients: while the second is opened, the first one's connection ends.

const { once } = require('node:events');
const { createClient } = require('redis');

let first = null;
let count = 0;

exports.connect = async () => {
  const client = createClient({ url: process.env.SABLOCK_TEST_REDIS, socket: { reconnectStrategy: false } });
  client.on('error', () => {});
  // As those before version 6.
  const destroy = client.destroy.bind(client);
  client.destroy = () => {
    if (!client.isOpen) throw new Error('The client is closed.');
    destroy();
  };
  await client.connect();
  count += 1;
  if (count === 1) first = client;
  if (count === 2) {
    const ended = once(first, 'error');
    const number = await first.sendCommand(['CLIENT', 'ID']);
    await client.sendCommand(['CLIENT', 'KILL', 'ID', String(number)]);
    await ended;
  }
  return client;
};
