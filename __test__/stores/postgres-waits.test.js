// Waits in PostgreSQL, on a real server: what a session is asked, and what is lost on the way.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { limit } = require('../helpers/limits.js');
const { startProxy } = require('../helpers/proxy.js');
const { startMachine } = require('../helpers/store-processes.js');
const { HEARTBEAT, granted, open, openBy, openThere, options, server, waiting } = require('../helpers/postgres.js');
const { startRunning } = require('../helpers/running.js');
const { acquire, notInTheWeather, seen, unlock } = require('../helpers/stores.js');
const { watched } = require('../helpers/threads.js');

/** The names of eight threads; `SABLOCK_STORE_SCALE=10` makes them the thousand of the design. */
const NAMES = 104 * Number(process.env.SABLOCK_STORE_SCALE ?? 1);
const ELSEWHERE = Array.from({ length: 8 }, (_, index) => `elsewhere ${index}`);

test(
  'a session that ends right behind the answer to a grant grants nothing: the request asks again',
  options,
  async (t) => {
    const [here, ending] = [open(t), openBy(t, 'ending')];
    await ending.request('warm', () => {});
    for (const fence of [true, false]) {
      const lock = await ending.acquireAsync('ending', { fence });
      assert.equal(lock.locked, true);
      assert.equal(
        await here.acquireAsync('ending', { ifAvailable: true }),
        null,
        'it is believed to be held, and is not',
      );
      assert.equal(lock.unlock(), true);
    }
  },
);

test('a cancel that hits the release instead of the wait leaves nothing locked', options, async (t) => {
  const [here, late] = [open(t), openBy(t, 'late-cancel')];
  const before = await here.acquireAsync('late');
  const waits = late.acquireAsync('late');
  await seen(async () => (await waiting()) === 1);
  before.unlock();
  assert.equal((await waits).unlock(), true);
  assert.equal((await here.acquireAsync('late', { timeout: 20_000 })).unlock(), true);
  assert.equal(await late.request('late', () => 'again'), 'again');
});

test(
  'a session that falls silent when its wait was granted is given up: the request asks again',
  options,
  async (t) => {
    const [here, silent] = [open(t), openBy(t, 'silent')];
    const before = await here.acquireAsync('silence');
    const waits = silent.acquireAsync('silence');
    await seen(async () => (await waiting()) === 1);
    // Its last answer is old then: it is asked again before it grants.
    await new Promise((resolve) => setTimeout(resolve, 2 * HEARTBEAT));
    const waiter = async () =>
      (await server().query("select pid from pg_locks where locktype = 'advisory' and not granted"))[0]?.pid;
    const pid = await waiter();
    t.after(() => {
      try {
        process.kill(pid, 'SIGCONT');
      } catch {
        // It has ended.
      }
    });
    before.unlock();
    // The stopped one has the lock: another waits for it.
    await seen(async () => ![undefined, pid].includes(await waiter()));
    process.kill(pid, 'SIGCONT');
    assert.equal((await waits).unlock(), true);
    await seen(async () => (await granted()) === 0);
  },
);

/** A manager whose sessions unlock late what they have waited for. */
const openSlow = (t) => openBy(t, 'slow-unlock');

test(
  'shared holders in two sessions that have just unlocked stand in the way of no ifAvailable',
  options,
  async (t) => {
    const [here, slow] = [open(t), openSlow(t)];
    const before = await here.acquireAsync('two sessions');
    const waits = slow.acquireAsync('two sessions', { mode: 'shared' });
    await seen(async () => (await waiting()) === 1);
    before.unlock();
    const held = [await waits, await slow.acquireAsync('two sessions', { mode: 'shared' })];
    assert.equal(await granted(), 2);
    for (const lock of held) lock.unlock();
    const lock = await slow.acquireAsync('two sessions', { ifAvailable: true });
    assert.equal(lock?.unlock(), true);
  },
);

test('a wait that was withdrawn stands in the way of no ifAvailable, though it was granted', options, async (t) => {
  const [here, slow] = [open(t), openSlow(t)];
  const before = await here.acquireAsync('withdrawn');
  const [aborting, waits] = [new AbortController(), []];
  waits.push(slow.acquireAsync('withdrawn', { signal: aborting.signal }));
  await seen(async () => (await waiting()) === 1);
  aborting.abort();
  before.unlock();
  await assert.rejects(waits[0], { name: 'AbortError' });
  const lock = await slow.acquireAsync('withdrawn', { ifAvailable: true });
  assert.equal(lock?.unlock(), true);
});

for (const [what, isQuestion] of [
  ['question', true],
  ['answer', false],
]) {
  test(`a wait whose ${what} is lost on the way: the request asks again`, options, async (t) => {
    const proxy = await startProxy(t, server().url);
    const far = open(t, {}, proxy.url);
    const [name, here] = [`lost ${what}`, open(t)];
    let isLost = false;
    proxy.loses = (data, toServer, line) => {
      if (!isLost && toServer && data.includes('select pg_advisory_lock(')) {
        isLost = true;
        line.isCut = true;
        return isQuestion;
      }
      return line.isCut === true && toServer === isQuestion;
    };
    const before = await here.acquireAsync(name);
    const waits = far.acquireAsync(name);
    await seen(async () => isLost && (isQuestion || (await waiting()) === 1));
    if (!isQuestion) {
      const waiter = () => server().query("select pid from pg_locks where locktype = 'advisory' and not granted");
      const [pids] = [await waiter(), await new Promise((resolve) => setTimeout(resolve, 5 * HEARTBEAT))];
      assert.deepEqual(await waiter(), pids, 'a wait that the server knows of is left alone');
    }
    before.unlock();
    assert.equal((await waits).unlock(), true);
  });
}

test('a connection that is blocked is probed by the system, as nobody expects an answer', {
  ...options,
  skip:
    options.skip ||
    (process.platform !== 'linux' && 'it reads /proc/net/tcp') ||
    notInTheWeather('the server knows the connections of the proxy'),
}, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'probed');
  const waits = here.acquireAsync('probed');
  await seen(async () => (await waiting()) === 1);
  const [{ port }] = await server().query(`select client_port as port from pg_stat_activity
    where pid = (select pid from pg_locks where locktype = 'advisory' and not granted)`);
  const hex = (number) => `:${number.toString(16).toUpperCase().padStart(4, '0')}`;
  const timer = () => {
    const lines = fs.readFileSync('/proc/net/tcp', 'utf8').split('\n');
    // One of the connections elsewhere may have the same port at this end.
    const isIt = ([, local, remote]) => local?.endsWith(hex(port)) && remote.endsWith(hex(server().port));
    const fields = lines.map((line) => line.trim().split(/\s+/)).find(isIt);
    return fields[5].split(':').map((number) => Number.parseInt(number, 16));
  };
  // 2: a keepalive. Before, the question may have to be acknowledged.
  await seen(() => timer()[0] === 2);
  const [, when] = timer();
  // In hundredths of a second.
  assert.ok(when <= 1000, `the next probe comes in ${when / 100} s`);
  await there.do(unlock, 'probed');
  (await waits).unlock();
});

test('a wait that is withdrawn at the moment of its grant leaves nothing locked', {
  ...options,
  timeout: 120_000,
}, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  let timeouts = 0;
  for (let round = 0; round < 150; round += 1) {
    const name = `race ${round % 3}`;
    await there.do(acquire, name);
    const wait = here.acquireAsync(name, { timeout: 2 + (round % 7) }).then(
      (lock) => lock.unlock(),
      (error) => {
        assert.equal(error.code, 'ERR_LOCK_TIMEOUT');
        timeouts += 1;
      },
    );
    await new Promise((resolve) => setTimeout(resolve, round % 9));
    await there.do(unlock, name);
    await wait;
  }
  assert.ok(timeouts > 0 && timeouts < 150, `${timeouts} timeouts`);
  await seen(async () => (await granted()) === 0 && (await waiting()) === 0);
});

test('many names that are held elsewhere are waited for with few connections, and all are had', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  const names = Array.from({ length: 40 }, (_, index) => `many ${index}`);
  await there.do((mine, all) => Promise.all(all.map((name) => mine.acquire(name))), names);
  const waits = names.map((name) => here.acquireAsync(name));
  await seen(async () => (await waiting()) >= 4);
  assert.ok((await here.stats()).connections <= 10);
  await there.do((mine, all) => {
    for (const name of all) mine.held.get(name).unlock();
  }, names);
  for (const lock of await Promise.all(waits)) assert.equal(lock.unlock(), true);
  await seen(async () => (await granted()) === 0);
});

test(
  'the names that eight threads hold need one connection, and five when others are waited for',
  options,
  async (t) => {
    const [here, there] = [open(t), await startMachine(t)];
    await openThere(there);
    await there.do((mine, all) => Promise.all(all.map((name) => mine.acquire(name))), ELSEWHERE);
    const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { LockManager } = require(workerData.sablock);
    const { postgres } = require(workerData.postgres);
    const manager = new LockManager({ store: postgres(workerData.url, { heartbeat: ${HEARTBEAT} }) });
    const locks = Promise.all(workerData.names.map((name) => manager.acquireAsync(name)));
    locks.then(() => parentPort.postMessage('held'));
    parentPort.on('message', () => manager.request(workerData.elsewhere, () => parentPort.postMessage('had')));`;
    const workers = ELSEWHERE.map((elsewhere, thread) => {
      const workerData = {
        sablock: require.resolve('../..'),
        postgres: require.resolve('../../lib/stores/postgres.js'),
        url: server().url,
        names: Array.from({ length: NAMES / 8 }, (_, index) => `name ${index} of thread ${thread}`),
        elsewhere,
      };
      const worker = new Worker(source, { eval: true, workerData });
      t.after(() => worker.terminate());
      return worker;
    });
    const said = () => Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))));
    await said();
    assert.equal(await granted(), NAMES + ELSEWHERE.length);
    assert.equal((await here.stats()).connections, 1);
    for (const worker of workers) worker.postMessage('wait');
    await seen(async () => (await waiting()) === 4);
    assert.equal((await here.stats()).connections, 5);
    const had = said();
    await there.do((mine, all) => {
      for (const name of all) mine.held.get(name).unlock();
    }, ELSEWHERE);
    await had;
  },
);

test(
  'of 40 names that are waited for, each is had soon after it is free',
  options,
  watched(async (t, threads) => {
    const { ran } = await startRunning(threads);
    const [here, there] = [open(t), await startMachine(t)];
    await openThere(there);
    const names = Array.from({ length: 40 }, (_, index) => `crowd ${index}`);
    for (const name of names) await there.do(acquire, name);
    const waits = new Map(names.map((name) => [name, here.acquireAsync(name)]));
    await seen(async () => (await waiting()) > 0);
    for (const name of [...names].reverse().filter((_, index) => index % 4 === 0)) {
      const begun = ran();
      await there.do(unlock, name);
      const lock = await waits.get(name);
      const took = ran() - begun;
      waits.delete(name);
      assert.ok(took < limit(3000), `${name} stood idle for ${took.toFixed()} ms`);
      lock.unlock();
    }
    for (const name of waits.keys()) await there.do(unlock, name);
    for (const lock of await Promise.all(waits.values())) lock.unlock();
  }),
);
