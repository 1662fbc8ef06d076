// A module of a user, whose connect() returns clients. The backend of the first that has waited for a lock is stopped in the moment of the
// grant: it answers nothing that is asked afterwards. The test has it go on.

const { connectBy } = require('./postgres-client.js');

let hasStopped = false;

exports.connect = connectBy((query, client) => {
  return async (text, values) => {
    const result = await query(text, values);
    if (!hasStopped && text === 'select pg_advisory_lock($1)') {
      hasStopped = true;
      process.kill(client.processID, 'SIGSTOP');
    }
    return result;
  };
});
