// A module of a user, whose connect() returns clients of a server as one on Windows, which refuses a setting that it knows.

const { connectBy } = require('./postgres-client.js');

exports.connect = connectBy((query) => async (text, values) => {
  if (/client_connection_check_interval/.test(values)) {
    throw Object.assign(new Error('invalid value for parameter "client_connection_check_interval"'), {
      code: '22023',
      severity: 'ERROR',
    });
  }
  return query(text, values);
});
