// Locks in PostgreSQL, on a real server: processes stand for machines.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { after, before, test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockLostError, LockManager } = require('../..');
const { postgres } = require('../../lib/stores/postgres.js');
const { hasPgBouncer, hasPostgres, startPgBouncer, startPostgres } = require('../helpers/servers.js');
const { startProxy } = require('../helpers/proxy.js');
const { startMachine } = require('../helpers/store-processes.js');
const { hold, modesOf } = require('../helpers/names.js');

const options = { timeout: 60_000, skip: hasPostgres ? false : 'PostgreSQL is not installed' };
/** A tenth of what users have, so that what takes long there is short here. */
const HEARTBEAT = 300;
/** Of eight threads; `SABLOCK_STORE_SCALE=10` makes them the thousand of the design. */
const NAMES = 104 * Number(process.env.SABLOCK_STORE_SCALE ?? 1);
const ELSEWHERE = Array.from({ length: 8 }, (_, index) => `elsewhere ${index}`);

let server;
before(async () => {
  if (hasPostgres) server = await startPostgres();
});
after(() => server?.stop());

/** A manager of the test, with the connections of no other. */
function open(t, settings = {}) {
  const manager = new LockManager({ store: postgres(server.url, { heartbeat: HEARTBEAT, ...settings }) });
  t.after(() => manager.close());
  return manager;
}

const openThere = (machine, settings = {}) =>
  machine.do(
    (here, url, more) => {
      here.manager = new here.sablock.LockManager({ store: here.open('postgres', url, more) });
      here.acquire = async (name, asked) => {
        const lock = await here.manager.acquireAsync(name, asked);
        if (lock !== null) here.held.set(name, lock);
        return lock !== null;
      };
    },
    server.url,
    { heartbeat: HEARTBEAT, ...settings },
  );

const acquire = (here, name, asked) => here.acquire(name, asked);
const unlock = (here, name) => here.held.get(name).unlock();

/** How many advisory locks the server has granted. */
const granted = async () =>
  Number((await server.query("select count(*) from pg_locks where locktype = 'advisory' and granted"))[0].count);
const waiting = async () =>
  Number((await server.query("select count(*) from pg_locks where locktype = 'advisory' and not granted"))[0].count);

/** Looks until it is so. */
async function seen(look) {
  while (!(await look())) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('an exclusive lock keeps other processes out, and a free one lets them in', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  const lock = await here.acquireAsync('one');
  assert.equal(await there.do(acquire, 'one', { ifAvailable: true }), false);
  const waits = there.do(acquire, 'one');
  await seen(async () => (await waiting()) === 1);
  assert.equal(lock.unlock(), true);
  assert.equal(await waits, true);
  assert.equal(await here.acquireAsync('one', { ifAvailable: true }), null);
  assert.deepEqual(
    (await here.query()).held.filter(({ name }) => name === 'one'),
    [],
    'only names that this process asks for are shown',
  );
  await assert.rejects(here.acquireAsync('one', { timeout: 50 }), {
    code: 'ERR_LOCK_TIMEOUT',
    message: /It is held now, exclusive, by postgres-\d+\./,
  });
  assert.equal(await there.do(unlock, 'one'), true);
});

test('shared locks are shared among processes, behind an exclusive one that waits they queue', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  const first = await here.acquireAsync('shared', { mode: 'shared' });
  const beside = await here.acquireAsync('shared', { mode: 'shared' });
  assert.equal(await there.do(acquire, 'shared', { mode: 'shared' }), true);
  const alone = here.acquireAsync('shared');
  first.unlock();
  beside.unlock();
  await seen(async () => (await waiting()) === 1);
  assert.equal(await there.do(acquire, 'shared', { mode: 'shared', ifAvailable: true }), false);
  await there.do(unlock, 'shared');
  assert.equal((await alone).unlock(), true);
});

test('fences grow among machines, and over a crash of the server', { ...options, timeout: 120_000 }, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  let last = 0n;
  const fenceThere = (machine) =>
    machine.do((mine) => mine.manager.request('fences', { fence: true }, (lock) => lock.fence));
  for (let round = 0; round < 4; round += 1) {
    for (let step = 0; step < 5; step += 1) {
      for (const ask of [
        () => here.request('fences', { fence: true }, (lock) => lock.fence),
        () => fenceThere(there),
      ]) {
        const fence = await ask();
        assert.ok(fence > last, `${fence} after ${last}`);
        last = fence;
      }
    }
    await server.kill();
    await server.start();
  }
  assert.equal(await here.request('fences', (lock) => lock.fence), null);
});

test('a blocked worker is served while the main thread is blocked too', options, async (t) => {
  const here = open(t);
  await here.request('warm', () => {});
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const source = `
    const { workerData } = require('node:worker_threads');
    const { LockManager } = require(workerData.sablock);
    const { postgres } = require(workerData.postgres);
    const manager = new LockManager({ store: postgres(workerData.url, { heartbeat: ${HEARTBEAT} }) });
    const fence = manager.requestSync('blocking', { fence: true }, (lock) => lock.fence);
    if (typeof fence !== 'bigint' || manager.requestSync('taken', { ifAvailable: true }, (lock) => lock) !== null) throw fence;
    Atomics.store(workerData.flag, 0, 1);
    Atomics.notify(workerData.flag, 0);`;
  const taken = await here.acquireAsync('taken');
  const workerData = {
    sablock: require.resolve('../..'),
    postgres: require.resolve('../../lib/stores/postgres.js'),
    url: server.url,
    flag,
  };
  const worker = new Worker(source, { eval: true, workerData });
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  assert.notEqual(Atomics.wait(flag, 0, 0, 20_000), 'timed-out');
  assert.equal(taken.unlock(), true);
  assert.equal(await exited, 0);
});

test('a worker makes the first request: main starts the lock worker for it', options, async (t) => {
  const there = await startMachine(t);
  const code = await there.do(
    (here, url, heartbeat) => {
      const source = `
        const { workerData } = require('node:worker_threads');
        const { LockManager } = require(workerData.sablock);
        const { postgres } = require(workerData.postgres);
        const manager = new LockManager({ store: postgres(workerData.url, { heartbeat: ${heartbeat} }) });
        manager.requestSync('first', () => manager.requestSync('second', () => {}));`;
      const workerData = {
        sablock: here.require.resolve('../..'),
        postgres: here.require.resolve('../../lib/stores/postgres.js'),
        url,
      };
      const { Worker: Thread } = here.require('node:worker_threads');
      const worker = new Thread(source, { eval: true, workerData });
      return new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve));
    },
    server.url,
    HEARTBEAT,
  );
  assert.equal(code, 0);
});

test('a holder that is killed frees its lock at once', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'killed');
  const next = here.acquireAsync('killed');
  await seen(async () => (await waiting()) === 1);
  const before = performance.now();
  await there.kill();
  (await next).unlock();
  assert.ok(performance.now() - before < 5000);
});

test('a lock is kept while every event loop of its process is blocked for three times as long', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'blocked');
  const blocked = there.do((mine, ms) => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(cell, 0, 0, ms);
    return [mine.held.get('blocked').locked, mine.held.get('blocked').signal.aborted];
  }, 9 * HEARTBEAT);
  let isKept = true;
  blocked.finally(() => {
    isKept = null;
  });
  for (; isKept; ) assert.equal(await here.acquireAsync('blocked', { ifAvailable: true }), null);
  assert.deepEqual(await blocked, [true, false]);
  const { renewals } = await there.do((mine) => mine.manager.stats());
  assert.ok(renewals >= 5, `${renewals} renewals`);
  assert.equal(await there.do(unlock, 'blocked'), true);
});

test('a process that was paused for too long sees the loss at its first look', options, async (t) => {
  const there = await startMachine(t);
  await openThere(there);
  await there.do(acquire, 'paused', { fence: true });
  // It looks again and again in one turn, so that nothing but a look can tell it.
  const looked = there.do((mine) => {
    const lock = mine.held.get('paused');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let last = Date.now(); ; last = Date.now()) {
      Atomics.wait(cell, 0, 0, 1);
      const isPaused = Date.now() - last > 500;
      if (isPaused) return [lock.locked, lock.signal.reason.code, lock.signal.reason.reason, lock.unlock()];
    }
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  there.signal('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 5 * HEARTBEAT));
  there.signal('SIGCONT');
  assert.deepEqual(await looked, [false, 'ERR_LOCK_LOST', 'unreachable', false]);
});

test(
  'a session that an administrator ends: the holder learns of it, and its request rejects after the callback',
  options,
  async (t) => {
    const here = open(t);
    const messages = [];
    const listen = (message) => messages.push(message);
    subscribe('sablock:lost', listen);
    t.after(() => unsubscribe('sablock:lost', listen));
    const held = await hold('ended', { fence: true }, here);
    const aborted = new Promise((resolve) => held.lock.signal.addEventListener('abort', resolve));
    await server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sablock'");
    await aborted;
    const { reason } = held.lock.signal;
    assert.ok(reason instanceof LockLostError);
    assert.deepEqual(
      [reason.code, reason.lockName, reason.reason, reason.fence],
      ['ERR_LOCK_LOST', 'ended', 'taken', held.lock.fence],
    );
    assert.ok(reason.heldMs > 0);
    assert.deepEqual([held.lock.locked, held.lock.unlock()], [false, false]);
    const failure = new Error('of the callback');
    held.fail(failure);
    await assert.rejects(held.request, (error) => error === reason && error.cause === failure);
    assert.equal(messages.length, 1);
    assert.deepEqual([messages[0].name, messages[0].reason], ['ended', 'taken']);
    assert.equal(await here.request('ended', () => 'again'), 'again');
  },
);

test(
  'a session that ends right behind the answer to a grant grants nothing: the request asks again',
  options,
  async (t) => {
    process.env.SABLOCK_TEST_POSTGRES = server.url;
    const [here, module] = [open(t), require.resolve('../programs/ending-postgres-client.js')];
    const ending = new LockManager({ store: postgres({ module }, { heartbeat: HEARTBEAT }) });
    t.after(() => ending.close());
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
  process.env.SABLOCK_TEST_POSTGRES = server.url;
  const [here, module] = [open(t), require.resolve('../programs/late-cancel-postgres-client.js')];
  const late = new LockManager({ store: postgres({ module }, { heartbeat: HEARTBEAT }) });
  t.after(() => late.close());
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
    process.env.SABLOCK_TEST_POSTGRES = server.url;
    const [here, module] = [open(t), require.resolve('../programs/silent-postgres-client.js')];
    const silent = new LockManager({ store: postgres({ module }, { heartbeat: HEARTBEAT }) });
    t.after(() => silent.close());
    const before = await here.acquireAsync('silence');
    const waits = silent.acquireAsync('silence');
    await seen(async () => (await waiting()) === 1);
    // Its last answer is old then: it is asked again before it grants.
    await new Promise((resolve) => setTimeout(resolve, 2 * HEARTBEAT));
    const waiter = async () =>
      (await server.query("select pid from pg_locks where locktype = 'advisory' and not granted"))[0]?.pid;
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
function openSlow(t) {
  process.env.SABLOCK_TEST_POSTGRES = server.url;
  const module = require.resolve('../programs/slow-unlock-postgres-client.js');
  const manager = new LockManager({ store: postgres({ module }, { heartbeat: HEARTBEAT }) });
  t.after(() => manager.close());
  return manager;
}

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
    const proxy = await startProxy(t, server.url);
    const far = new LockManager({ store: postgres(proxy.url, { heartbeat: HEARTBEAT }) });
    t.after(() => far.close());
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
      const waiter = () => server.query("select pid from pg_locks where locktype = 'advisory' and not granted");
      const [pids] = [await waiter(), await new Promise((resolve) => setTimeout(resolve, 5 * HEARTBEAT))];
      assert.deepEqual(await waiter(), pids, 'a wait that the server knows of is left alone');
    }
    before.unlock();
    assert.equal((await waits).unlock(), true);
  });
}

test('a connection that is blocked is probed by the system, as nobody expects an answer', {
  ...options,
  skip: options.skip || (process.platform !== 'linux' && 'it reads /proc/net/tcp'),
}, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'probed');
  const waits = here.acquireAsync('probed');
  await seen(async () => (await waiting()) === 1);
  const [{ port }] = await server.query(`select client_port as port from pg_stat_activity
    where pid = (select pid from pg_locks where locktype = 'advisory' and not granted)`);
  const hex = (number) => `:${number.toString(16).toUpperCase().padStart(4, '0')}`;
  const timer = () => {
    const lines = fs.readFileSync('/proc/net/tcp', 'utf8').split('\n');
    const fields = lines.map((line) => line.trim().split(/\s+/)).find(([, local]) => local?.endsWith(hex(port)));
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

test('a server that stops answering: the loss is reported when its time is over, not before', options, async (t) => {
  const here = open(t);
  const lock = await here.acquireAsync('silent');
  const pids = await server.query("select pid from pg_stat_activity where application_name = 'sablock'");
  const begun = performance.now();
  for (const { pid } of pids) process.kill(pid, 'SIGSTOP');
  const refused = assert.rejects(here.check(), { code: 'ERR_LOCK_STORE' });
  t.after(() => {
    for (const { pid } of pids) process.kill(pid, 'SIGCONT');
  });
  await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  const after = performance.now() - begun;
  assert.equal(lock.signal.reason.reason, 'unreachable');
  assert.ok(after >= 1.5 * HEARTBEAT, `after ${after} ms`);
  await refused;
});

test('waits go on when the server was restarted; what was held is lost', {
  ...options,
  timeout: 120_000,
}, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'restarted');
  const waits = here.acquireAsync('restarted');
  await seen(async () => (await waiting()) === 1);
  await server.kill();
  await server.start();
  const lock = await waits;
  assert.equal(await there.do((mine) => mine.held.get('restarted').locked), false);
  lock.unlock();
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
        url: server.url,
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

test('a thread that ends gives back what it held, and waits for nothing', options, async (t) => {
  const [here, there] = [open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'elsewhere');
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { LockManager } = require(workerData.sablock);
    const { postgres } = require(workerData.postgres);
    const manager = new LockManager({ store: postgres(workerData.url, { heartbeat: ${HEARTBEAT} }) });
    manager.acquireAsync('elsewhere');
    manager.acquireAsync('of a thread').then(() => parentPort.postMessage('held'));
    setInterval(() => {}, 1000);`;
  const workerData = {
    sablock: require.resolve('../..'),
    postgres: require.resolve('../../lib/stores/postgres.js'),
    url: server.url,
  };
  const worker = new Worker(source, { eval: true, workerData });
  await new Promise((resolve) => worker.once('message', resolve));
  await seen(async () => (await waiting()) === 1);
  await worker.terminate();
  (await here.acquireAsync('of a thread')).unlock();
  await seen(async () => (await waiting()) === 0);
  assert.equal(await there.do(unlock, 'elsewhere'), true);
  await seen(async () => (await granted()) === 0);
});

test('close() ends what a manager holds, and rejects what it waits for, here and in the server', options, async (t) => {
  const [closing, other, there] = [open(t), open(t), await startMachine(t)];
  await openThere(there);
  await there.do(acquire, 'far');
  const lock = await closing.acquireAsync('near');
  const queued = [closing.acquireAsync('near'), closing.acquireAsync('far')];
  const failures = Promise.allSettled(queued);
  const kept = await other.acquireAsync('kept');
  await seen(async () => (await waiting()) === 1);
  await closing.close();
  assert.deepEqual([lock.locked, lock.signal.reason.reason], [false, 'closed']);
  for (const { reason } of await failures) assert.equal(reason.code, 'ERR_LOCK_CLOSED');
  await assert.rejects(
    closing.request('near', () => {}),
    { code: 'ERR_LOCK_CLOSED' },
  );
  await seen(async () => (await waiting()) === 0);
  assert.equal(await there.do(acquire, 'near', { ifAvailable: true }), true);
  assert.deepEqual([kept.locked, kept.unlock()], [true, true], 'another manager of the store goes on');
});

test('what is refused: a pooler in transaction mode, and a standby says so by itself', options, async (t) => {
  if (!hasPgBouncer) return t.skip('PgBouncer is not installed');
  const bouncer = await startPgBouncer(server.port, 'transaction');
  t.after(() => bouncer.stop());
  const manager = new LockManager({ store: postgres(bouncer.url) });
  t.after(() => manager.close());
  await assert.rejects(
    manager.request('pooled', () => {}),
    { code: 'ERR_LOCK_STORE', message: /pooler in transaction mode/ },
  );
  await seen(async () => (await granted()) === 0);
});

test('a pooler in session mode is used', options, async (t) => {
  if (!hasPgBouncer) return t.skip('PgBouncer is not installed');
  const bouncer = await startPgBouncer(server.port, 'session');
  t.after(() => bouncer.stop());
  const manager = new LockManager({ store: postgres(bouncer.url) });
  t.after(() => manager.close());
  const lock = await manager.acquireAsync('pooled');
  assert.equal(await open(t).acquireAsync('pooled', { ifAvailable: true }), null);
  assert.equal(lock.unlock(), true);
});

test('a store that cannot be reached at first is reported at once, with its cause', options, async (t) => {
  const manager = new LockManager({ store: postgres('postgres://sablock@127.0.0.1:1/postgres') });
  t.after(() => manager.close());
  const error = await manager.request('nowhere', () => {}).catch((thrown) => thrown);
  assert.equal(error.code, 'ERR_LOCK_STORE');
  assert.equal(error.cause.code, 'ECONNREFUSED');
});

test('bad options are refused before anything is connected', options, () => {
  const bad = (connection, settings) => () => postgres(connection, settings);
  assert.throws(bad(undefined), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(bad('x', { connections: 1 }), { code: 'ERR_OUT_OF_RANGE' });
  assert.throws(bad('x', { namespace: 7 }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(bad({ password: () => 'secret' }), { code: 'ERR_INVALID_ARG_TYPE', message: /password/ });
  assert.throws(() => new LockManager({ store: {} }), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.throws(() => new LockManager({ store: postgres('x'), scope: 'machine' }), { code: 'ERR_INVALID_ARG_TYPE' });
});

test('steal is refused; namespaces are apart; a name may have any 16-bit units', options, async (t) => {
  const [here, other] = [open(t), open(t, { namespace: 'other' })];
  await assert.rejects(
    here.request('a', { steal: true }, () => {}),
    { name: 'NotSupportedError' },
  );
  const names = ['\ud800', '\udc00', '', '𝄞', 'x'.repeat(10_000)];
  const locks = await Promise.all(names.map((name) => here.acquireAsync(name)));
  for (const name of names) (await other.acquireAsync(name, { ifAvailable: true })).unlock();
  assert.deepEqual(await modesOf('', here), { held: ['exclusive'], pending: [] });
  for (const lock of locks) assert.equal(lock.unlock(), true);
});

test('a process with an open store ends by itself, and what it held is free', options, async (t) => {
  const { execFile } = require('node:child_process');
  const source = `
    const { LockManager } = require(${JSON.stringify(require.resolve('../..'))});
    const { postgres } = require(${JSON.stringify(require.resolve('../../lib/stores/postgres.js'))});
    new LockManager({ store: postgres(${JSON.stringify(server.url)}) }).acquireAsync('of the past').then(() => console.log('held'));`;
  const output = await new Promise((resolve, reject) => {
    execFile(process.execPath, ['-e', source], { timeout: 20_000 }, (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    );
  });
  assert.equal(output, 'held\n');
  (await open(t).acquireAsync('of the past')).unlock();
});
