// sablock/redis: locks that a Redis or Valkey server keeps.

const { connectionOf } = require('./redis/options.js');
const { describeStore, RENEW, whole } = require('./store.js');

/** The options that are numbers: the usual value, and the least. */
const NUMBERS = { lease: [30_000, 100], renew: RENEW, replicas: whole(0, 0) };

exports.redis = (connection, options) => describeStore('redis', connectionOf(connection), options, NUMBERS);
