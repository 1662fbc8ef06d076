// A module of a user, whose connect() returns clients. The first release of what one of them has waited for is hit by a cancel, before
// it is done: as when the cancel was meant for the wait, and has come late.

const { connectBy } = require('./postgres-client.js');

let hasHit = false;

exports.connect = connectBy((query) => {
  let hasWaited = false;
  return (text, values) => {
    hasWaited ||= text === 'select pg_advisory_lock($1)';
    if (hasHit || !hasWaited || text !== 'select pg_advisory_unlock($1) as done') return query(text, values);
    hasHit = true;
    // The server looks for cancels while it sleeps.
    return query(`select pg_cancel_backend(pg_backend_pid()), pg_sleep(60), ${text.slice('select '.length)}`, values);
  };
});
