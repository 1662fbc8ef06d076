// A module of a user, whose connect() returns clients of the server SABLOCK_TEST_SESSIONS. As long as SABLOCK_TEST_IDLE_MS is set, that
// is the time for which a session of this lock worker stays without use; SABLOCK_TEST_IDLED counts the times that were over.

const clock = require('../../lib/load/clock.js');

/** No other timer of the stores takes as long, in milliseconds. */
const IDLE = 10_000;

const { env } = process;
const { setTimeout } = clock;
clock.setTimeout = (callback, ms, ...rest) => {
  const { SABLOCK_TEST_IDLE_MS } = env;
  if (ms !== IDLE || SABLOCK_TEST_IDLE_MS === undefined) return setTimeout(callback, ms, ...rest);
  return setTimeout(() => {
    env.SABLOCK_TEST_IDLED = String(Number(env.SABLOCK_TEST_IDLED) + 1);
    callback();
  }, Number(SABLOCK_TEST_IDLE_MS));
};

exports.connect = async () => {
  const url = env.SABLOCK_TEST_SESSIONS;
  if (url.startsWith('mysql:')) return require('mysql2/promise').createConnection(url);
  const client = new (require('pg').Client)({ connectionString: url });
  await client.connect();
  return client;
};
