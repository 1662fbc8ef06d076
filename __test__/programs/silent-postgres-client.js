// A module of a user, whose connect() returns clients. The backend of the first that has waited for a lock is stopped in the moment of the
// grant: it answers nothing that is asked afterwards. The test has it go on.

const { Client } = require('pg');

let hasStopped = false;

exports.connect = async () => {
  const client = new Client({ connectionString: process.env.SABLOCK_TEST_POSTGRES });
  await client.connect();
  const query = client.query.bind(client);
  client.query = async (text, values) => {
    const result = await query(text, values);
    if (!hasStopped && text === 'select pg_advisory_lock($1)') {
      hasStopped = true;
      process.kill(client.processID, 'SIGSTOP');
    }
    return result;
  };
  return client;
};
