// A module of a user, whose connect() returns clients. What one of them has waited for it unlocks late: as on a slow line.

const { Client } = require('pg');

exports.connect = async () => {
  const client = new Client({ connectionString: process.env.SABLOCK_TEST_POSTGRES });
  await client.connect();
  const query = client.query.bind(client);
  let hasWaited = false;
  client.query = async (text, values) => {
    hasWaited ||= text.startsWith('select pg_advisory_lock');
    if (hasWaited && text.includes('unlock')) await new Promise((resolve) => setTimeout(resolve, 500));
    return query(text, values);
  };
  return client;
};
