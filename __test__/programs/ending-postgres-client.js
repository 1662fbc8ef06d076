// A module of a user, whose connect() returns clients. Two of them end in the moment in which they have the answer to a fence, or to a
// try of a lock, before anybody has seen it: as when the server ends the session, and both come in one piece.

const { connectBy } = require('./postgres-client.js');

const ENDS = [/pg_logical_emit_message/, /^select pg_try_advisory_lock\(\$1::bigint\) as done/];
/** The request that warms up comes first. */
let tries = 0;

exports.connect = connectBy((query, client) => {
  return async (text, values) => {
    const result = await query(text, values);
    const index = ENDS.findIndex((end) => end.test(text));
    if (index === 1) tries += 1;
    if (index === 0 || (index === 1 && tries > 3)) {
      ENDS[index] = /^never/;
      client.emit('error', new Error('terminating connection due to administrator command'));
    }
    return result;
  };
});
