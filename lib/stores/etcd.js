// sablock/etcd: locks that an etcd cluster keeps.

const { readConnection } = require('./etcd/connection.js');
const { describeStore, RENEW } = require('./store.js');

/** The options that are numbers: the usual value, and the least. */
const NUMBERS = { lease: [30_000, 2000], renew: RENEW };

exports.etcd = (connection, options) => {
  const store = describeStore('etcd', connection, options, NUMBERS);
  readConnection(connection);
  return store;
};
