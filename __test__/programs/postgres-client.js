// Modules of a user, as the tests of PostgreSQL put them between the keeper and the server, have this in common.

const { Client } = require('pg');

/** A `connect()` whose clients query by what `change(query, client)` returns. */
exports.connectBy = (change) => async () => {
  const client = new Client({ connectionString: process.env.SABLOCK_TEST_POSTGRES });
  await client.connect();
  client.query = change(client.query.bind(client), client);
  return client;
};
