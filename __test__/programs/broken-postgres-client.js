// A module of a user, whose connect() returns clients that can send nothing any more once SABLOCK_TEST_BREAK is set, and say no more
// than what the system says: not that they have ended.

const { connectBy } = require('./postgres-client.js');

exports.connect = connectBy((query) => async (text, values) => {
  if (process.env.SABLOCK_TEST_BREAK !== undefined) throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  return query(text, values);
});
