// sablock/redis: locks that a Redis or Valkey server keeps.

const { outOfRange } = require('../errors.js');
const { describeStore, RENEW, settingsOf } = require('./store.js');

/** The options that are numbers: the usual value, and the least. */
const NUMBERS = { lease: [30_000, 100], renew: RENEW, replicas: [0, 0] };

exports.redis = (connection, options) => {
  const store = describeStore('redis', connection, options, NUMBERS);
  const { replicas } = settingsOf(store);
  if (!Number.isInteger(replicas)) throw outOfRange('options.replicas', 'an integer', replicas);
  return store;
};
