// A module of a user, whose connect() returns clients of a database that accepts advisory locks and ignores them, as CockroachDB does and
// YugabyteDB did: each gets what it asks for.

const { connectBy } = require('./postgres-client.js');

exports.connect = connectBy(
  (query) => (text, values) =>
    query(text.replace(/pg_(try_)?advisory_(un)?lock(_shared)?(?=\()/, '0 < length'), values),
);
