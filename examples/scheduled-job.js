// A job is scheduled in each of four processes of a cluster, and must run once each time. Whoever comes first runs it under a
// lock of the machine, and notes which time it was for; the others find that it is done.

const cluster = require('node:cluster');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('sablock');

const WORKERS = 4;
const TIMES = 3;
const INTERVAL_MS = 300;

/** Runs the job for this time, unless another process has. */
const runOnce = (locks, directory, time) =>
  locks.request('nightly report', async () => {
    const last = path.join(directory, 'last');
    if (fs.existsSync(last) && Number(fs.readFileSync(last, 'utf8')) >= time) return;
    fs.appendFileSync(path.join(directory, 'runs'), `${time}\n`);
    await sleep(20); // the job
    fs.writeFileSync(last, String(time));
  });

async function work(directory, start) {
  // Outside of this example `new LockManager({ scope: 'machine' })` needs no directory.
  const locks = new LockManager({ directory: path.join(directory, 'locks') });
  for (let time = 1; time <= TIMES; time++) {
    // On a busy machine a process may start when a time has come already.
    await sleep(Math.max(start + time * INTERVAL_MS - Date.now(), 0));
    await runOnce(locks, directory, time);
  }
  process.exit();
}

async function main() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-example-'));
  // Most of the time all of them have started by then.
  const env = { DIRECTORY: directory, START: String(Date.now() + 1000) };
  const workers = Array.from({ length: WORKERS }, () => cluster.fork(env));
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
  const runs = fs.readFileSync(path.join(directory, 'runs'), 'utf8').trim().split('\n');
  fs.rmSync(directory, { recursive: true });

  console.log(`${WORKERS} processes had the job ${TIMES} times; it ran for time ${runs.join(', ')}.`);
  if (runs.join() !== '1,2,3') process.exitCode = 1;
}

if (cluster.isPrimary) main();
else work(process.env.DIRECTORY, Number(process.env.START));
