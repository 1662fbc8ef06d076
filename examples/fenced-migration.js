// A migration that two machines start: prices become cents, a hundredfold, batch by batch. The first is paused between two batches,
// and its session is ended, so that the second gets the lock and finishes. Then the first goes on with its next batch, without
// having looked whether it still has the lock: three lines of SQL refuse that, since the second one's fence is larger. Without
// them, these prices would be multiplied twice.
//
// A real PostgreSQL server, started on loopback, has the lock and the prices. Elsewhere: `postgres(process.env.DATABASE_URL)`.

const { fork } = require('node:child_process');
const { on, once } = require('node:events');
const { LockManager } = require('sablock');

const BATCHES = 3;
const SCHEMA = `
  CREATE TABLE price (id int PRIMARY KEY, amount int NOT NULL);
  INSERT INTO price SELECT id, id FROM generate_series(0, 29) AS id;
  CREATE TABLE migration (done int NOT NULL, fence bigint NOT NULL);
  INSERT INTO migration VALUES (0, 0);`;

/** One batch in one transaction; false if somebody newer was here. */
async function migrate(client, batch, fence) {
  await client.query('BEGIN');
  // The check, and the first statement: it also keeps everybody else out until the end of the transaction.
  const { rowCount } = await client.query(
    `UPDATE migration
        SET fence = $1, done = $2
      WHERE fence <= $1`,
    [fence, batch + 1],
  );
  if (rowCount === 1) {
    await client.query('UPDATE price SET amount = amount * 100 WHERE id BETWEEN $1 AND $2', [
      batch * 10,
      batch * 10 + 9,
    ]);
  }
  await client.query(rowCount === 1 ? 'COMMIT' : 'ROLLBACK');
  return rowCount === 1;
}

/** The process stops here, as one does whose machine sleeps. */
const pause = () =>
  new Promise((resolve) => {
    process.send('paused', () => {
      process.kill(process.pid, 'SIGSTOP');
      resolve();
    });
  });

async function work(url, isPaused) {
  const { Client } = require('pg');
  const { postgres } = require('sablock/postgres');
  const client = new Client({ connectionString: url });
  await client.connect();
  const cluster = new LockManager({ store: postgres(url) });
  try {
    await cluster.request('migration to cents', { fence: true }, async (lock) => {
      process.send('holds');
      const { rows } = await client.query('SELECT done FROM migration');
      for (let batch = rows[0].done; batch < BATCHES; batch++) {
        if (isPaused && batch === 1) await pause();
        if (!(await migrate(client, batch, lock.fence))) {
          process.send('refused');
          return;
        }
      }
      process.send('finished');
    });
  } catch (error) {
    if (error.code !== 'ERR_LOCK_LOST') throw error;
    process.send('told');
  }
  await cluster.close();
  await client.end();
  process.disconnect();
}

/** A machine, and what it has said. */
function start(url, isPaused) {
  const child = fork(__filename, [url, String(isPaused)]);
  const said = [];
  child.on('message', (message) => said.push(message));
  return { child, said, ended: once(child, 'exit') };
}

async function main() {
  const { hasPostgres, startPostgres } = require('../__test__/helpers/servers.js');
  if (!hasPostgres) {
    console.log('PostgreSQL is not installed.');
    process.exitCode = 69;
    return;
  }
  const server = await startPostgres();
  await server.query(SCHEMA);
  const first = start(server.url, true);
  for await (const [message] of on(first.child, 'message')) if (message === 'paused') break;
  // Nothing but the fence protects from what comes now: the session that keeps the lock ends, as at
  // a failover, before the second machine has one that could end with it.
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sablock'");
  const second = start(server.url, false);
  await second.ended;
  const wake = setInterval(() => first.child.kill('SIGCONT'), 50);
  await first.ended;
  clearInterval(wake);
  const prices = await server.query('SELECT amount FROM price ORDER BY id');
  await server.stop();

  console.log(`The first machine: ${first.said.join(', ')}; the second: ${second.said.join(', ')}.`);
  const isRight = prices.every(({ amount }, id) => amount === id * 100);
  console.log(isRight ? 'Every price was multiplied once.' : 'Prices are wrong.');
  const said = [first.said.join(), second.said.join()];
  if (!isRight || said[0] !== 'holds,paused,refused,told' || said[1] !== 'holds,finished') process.exitCode = 1;
}

const [url, isPaused] = process.argv.slice(2);
if (url === undefined) main();
else work(url, isPaused === 'true');
