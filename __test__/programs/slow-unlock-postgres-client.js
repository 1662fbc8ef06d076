// A module of a user, whose connect() returns clients. What one of them has waited for it unlocks late: as on a slow line.

const { connectBy } = require('./postgres-client.js');

exports.connect = connectBy((query) => {
  let hasWaited = false;
  return async (text, values) => {
    hasWaited ||= text.startsWith('select pg_advisory_lock');
    if (hasWaited && text.includes('unlock')) await new Promise((resolve) => setTimeout(resolve, 500));
    return query(text, values);
  };
});
