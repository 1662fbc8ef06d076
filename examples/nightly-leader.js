// Three machines have the nightly job, and one of them, the leader, runs it. Each has a process with a store of its own; whoever has
// the lock leads for as long as it lives. The leader is killed in the middle of the second night: the next one runs that night.
// A night's work is written together with the leader's fence, so that a leader that was replaced can write nothing.
//
// A real Redis server, started on loopback, has the locks and the results. Elsewhere: `redis(process.env.REDIS_URL)`.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const { LockManager } = require('sablock');

const MACHINES = 3;
const NIGHTS = 4;

/** Writes a night's result: 1, or 0 if a newer leader was here, or the night has a result already. */
const WRITE = `
  local fence = redis.call('HGET', KEYS[1], 'fence') or '0'
  if tonumber(fence) > tonumber(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1])
  return redis.call('HSETNX', KEYS[1], ARGV[2], ARGV[3])`;

async function work(url, machine) {
  const { createClient } = require('redis');
  const { redis } = require('sablock/redis');
  const results = await createClient({ url }).connect();
  const cluster = new LockManager({ store: redis(url, { lease: 2000 }) });

  // Night falls on all machines; whoever becomes the leader later makes up for what was missed.
  let nights = 0;
  let fall = () => {};
  process.on('message', (night) => {
    nights = night;
    fall();
  });
  const nightfall = () =>
    new Promise((resolve) => {
      fall = resolve;
    });

  const runDue = async (lock) => {
    for (let due = 1; due <= nights; due++) {
      if (await results.hExists('nightly', String(due))) continue;
      const begun = await results.hIncrBy('begun', String(due), 1);
      await sleep(20); // the job
      // The first machine that has it in the second night loses power.
      if (due === 2 && begun === 1) process.kill(process.pid, 'SIGKILL');
      const args = [String(lock.fence), String(due), String(machine)];
      const written = await results.eval(WRITE, { keys: ['nightly'], arguments: args });
      if (written === 1) process.send({ night: due, machine });
    }
  };
  const lead = async (lock) => {
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
    while (lock.locked) {
      const next = nightfall();
      await runDue(lock);
      await Promise.race([next, lost]);
    }
  };
  process.send({ isReady: true });
  for (;;) {
    try {
      await cluster.request('leader of the nightly job', { fence: true }, lead);
    } catch (error) {
      if (error.code !== 'ERR_LOCK_LOST') throw error;
      // Somebody else leads; this one gets in line again.
    }
  }
}

async function main() {
  const { hasRedis, startRedis } = require('../__test__/helpers/servers.js');
  if (!hasRedis) {
    console.log('redis-server is not installed.');
    process.exitCode = 69;
    return;
  }
  const server = await startRedis();
  const machines = Array.from({ length: MACHINES }, (_, machine) => fork(__filename, [server.url, String(machine)]));
  await Promise.all(machines.map((each) => once(each, 'message')));

  let killed;
  let ran = '';
  let isDone = () => {};
  for (const [machine, each] of machines.entries()) {
    each.on('message', () => {
      ran += machine;
      isDone();
    });
    each.once('exit', () => {
      killed ??= machine;
    });
  }
  for (let night = 1; night <= NIGHTS; night++) {
    const done = new Promise((resolve) => {
      isDone = resolve;
    });
    for (const each of machines) if (each.connected) each.send(night);
    await done;
  }
  const nights = Array.from({ length: NIGHTS }, (_, index) => String(index + 1));
  const results = await server.run('HMGET', 'nightly', ...nights);
  const begun = (await server.run('HMGET', 'begun', ...nights)).join('');
  for (const each of machines) each.kill('SIGKILL');
  await server.stop();

  console.log(
    `The nights were run by the machines ${[...ran].join(', ')}; machine ${killed} was killed in the second.`,
  );
  // The second was begun twice, and written once.
  const isRight = begun === '1211' && ran === results.join('') && Number(ran[1]) !== killed;
  if (!isRight) process.exitCode = 1;
}

const [url, machine] = process.argv.slice(2);
if (url === undefined) main();
else work(url, Number(machine));
