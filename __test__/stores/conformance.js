// Tests of what all stores with leases do alike, as a list: each store's own file runs it on its server.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { test } = require('node:test');
const { startProxy } = require('../helpers/proxy.js');
const { needs } = require('../helpers/runtime.js');
const { borrowMachine } = require('../helpers/store-processes.js');
const {
  acquire,
  beginInOrder,
  PAUSED_TOO_LONG,
  blockUntilTold,
  fencesShared,
  pause,
  seen,
  showsSharers,
  stop,
  storeOf,
  unlock,
} = require('../helpers/stores.js');

const ROUNDS = 100;
/** The lease of whom no test is to see lose anything, however long the machine stands still; it is renewed as often as a short one. */
const LONG = 20_000;
/** `SABLOCK_STORE_SCALE=10`: as many holders and waiters as the design speaks of. */
const SCALE = Number(process.env.SABLOCK_STORE_SCALE ?? 1);

/**
 * Declares the tests of a store. `make(connection, settings)` describes it; `start()` starts its server, `clear(server)` deletes all
 * that is there, `count(server)` is the number of requests that hold or wait; `skip` says why there is none. Returns what the tests
 * of this store alone need. `lease` is a short one. A test whose leases are to end says so, and those live through three seconds in
 * which nothing runs: so long may a busy machine keep all of a test from running, or a disk a server.
 */
exports.conform = ({ kind, make, skip, start, clear, count, lease }) => {
  const { options, open, openThere, server } = storeOf({
    kind,
    make,
    skip,
    start,
    clear,
    settings: { lease: LONG, renew: lease / 3 },
  });
  const ends = { lease: 3 * lease };
  const tickets = () => count(server());

  test('an exclusive lock keeps other processes out, in the order in which they came', options, async (t) => {
    const here = open(t);
    const machines = [await borrowMachine(t), await borrowMachine(t)];
    for (const machine of machines) await openThere(machine);
    const lock = await here.acquireAsync('one');
    assert.equal(await machines[0].do(acquire, 'one', { ifAvailable: true }), false);
    await assert.rejects(open(t, { connectTimeout: 4999 }).acquireAsync('one', { timeout: 50 }), {
      code: 'ERR_LOCK_TIMEOUT',
    });
    const order = [];
    const waits = [];
    for (const [index, machine] of machines.entries()) {
      waits.push(machine.do(acquire, 'one').then(() => order.push(index)));
      await seen(async () => (await tickets()) === index + 2);
    }
    lock.unlock();
    await waits[0];
    await machines[0].do(unlock, 'one');
    await waits[1];
    assert.deepEqual(order, [0, 1]);
    assert.equal(await machines[1].do(unlock, 'one'), true);
  });

  test('each store counts its own', options, async (t) => {
    // Other settings are another store.
    const [one, other] = [open(t), open(t, { connectTimeout: 4997 })];
    (await one.acquireAsync('counted')).unlock();
    assert.deepEqual([(await one.stats()).grants, (await other.stats()).grants], [1, 0]);
    const { roundTripMs, ...rest } = await other.check();
    assert.deepEqual([roundTripMs >= 0, rest], [true, {}]);
  });

  test('who holds elsewhere is in the message of a timeout, of each request of the process', options, async (t) => {
    const [here, there] = [open(t, {}, undefined, { allowMainThread: true }), await borrowMachine(t)];
    await openThere(there);
    // The start of the lock worker may take longer than its time.
    await here.check();
    await there.do(acquire, 'told', { mode: 'shared' });
    const shared = new RegExp(`It is held now, shared, by ${kind}-[^ ]*-${there.child.pid}-`);
    const unknown = /Another process holds it, or came before|This thread came before|has not acknowledged/;
    /** Asks until each message says so: its holder may not show yet. */
    const isTold = async (message, ask) => {
      for (let isOver = false; !isOver; ) {
        const ends = await Promise.allSettled([ask(), ask()]);
        for (const { reason } of ends) {
          // In the weather the server may not answer in time.
          if (reason.code === 'ERR_LOCK_STORE') assert.match(reason.message, /has not acknowledged/);
          else assert.equal(reason.code, 'ERR_LOCK_TIMEOUT');
          if (!message.test(reason.message)) assert.match(reason.message, unknown);
        }
        isOver = ends.every(({ reason }) => message.test(reason.message));
      }
    };
    await isTold(shared, () => here.acquireAsync('told', { timeout: 100 }));
    await isTold(shared, async () => here.acquire('told', { timeout: 50 }));
    await there.do(unlock, 'told');
    await there.do(acquire, 'told');
    await isTold(/It is held now, exclusive, by /, () => here.acquireAsync('told', { timeout: 50 }));
    await stop(server().pid);
    t.after(() => process.kill(server().pid, 'SIGCONT'));
    const silent = { code: 'ERR_LOCK_STORE', message: /has not acknowledged/ };
    await assert.rejects(here.acquireAsync('told', { timeout: 50 }), silent);
  });

  test('shared locks are shared, and those behind an exclusive one that waits queue', options, async (t) => {
    const [here, other, there] = [open(t), open(t, { connectTimeout: 4999 }), await borrowMachine(t)];
    await openThere(there);
    const first = await here.acquireAsync('shared', { mode: 'shared' });
    assert.equal(await there.do(acquire, 'shared', { mode: 'shared' }), true);
    // Requests of the test before, while the server was stopped, may only now be given back.
    await seen(async () => (await tickets()) === 2);
    const alone = other.acquireAsync('shared');
    await seen(async () => (await tickets()) === 3);
    first.unlock();
    await seen(async () => (await tickets()) === 2);
    assert.equal(await there.do(acquire, 'shared', { mode: 'shared', ifAvailable: true }), false);
    await there.do(unlock, 'shared');
    assert.equal((await alone).unlock(), true);
  });

  test('the fence of a shared lock is not below the last exclusive one', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await fencesShared(here, there);
  });

  test('of a shared name that is held here, query() shows the holders elsewhere too', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await showsSharers(kind, here, there);
  });

  test('locks are kept while every event loop of their process is blocked for three leases', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there, ends);
    const names = Array.from({ length: 10 * SCALE }, (_, index) => `blocked ${index}`);
    for (const name of names) await there.do(acquire, name);
    let isBlocked = true;
    const blocked = there.do((mine, ms) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      return Array.from(mine.held.values(), (lock) => lock.locked);
    }, 3 * ends.lease);
    blocked.finally(() => {
      isBlocked = false;
    });
    for (let index = 0; isBlocked; index += 1) {
      const name = names[index % names.length];
      const taken = await here.acquireAsync(name, { ifAvailable: true });
      assert.ok(!isBlocked || taken === null, `${name} was given to another`);
      // Each name once a second: one that is lost is not taken back.
      await pause(1000 / names.length);
    }
    assert.deepEqual(await blocked, Array(names.length).fill(true));
    for (const name of names) assert.equal(await there.do(unlock, name), true);
  });

  test(
    'a holder that is killed: the next gets it after the lease, marked; dead waiters cost nothing more',
    options,
    async (t) => {
      const [here, there] = [open(t), await borrowMachine(t)];
      // Long enough for as many connections on a busy machine.
      await openThere(there, ends);
      await there.do(acquire, 'killed');
      const dead = 10 * SCALE;
      await there.do(async (mine, count) => {
        for (let index = 0; index < count; index += 1) {
          const other = new mine.sablock.LockManager({
            store: mine.open(mine.kind, mine.url, { ...mine.settings, connectTimeout: 5001 + index }),
          });
          // One after the other: the client's start takes its time.
          await other.check();
          other.acquireAsync('killed').catch(() => {});
        }
      }, dead);
      await seen(async () => (await tickets()) === dead + 1);
      const next = here.acquireAsync('killed');
      const warned = [];
      const note = ({ code, message }) => code === 'SABLOCK_ABANDONED' && warned.push(message);
      process.on('warning', note);
      t.after(() => process.off('warning', note));
      await pause(100);
      const begun = performance.now();
      await there.kill();
      let lock = await next;
      const after = performance.now() - begun;
      assert.ok(after < 2 * ends.lease, `after ${after} ms`);
      assert.equal(lock.abandoned, true);
      await seen(() => warned.length > 0);
      lock.unlock();
      assert.equal(lock.abandoned, false, 'only while it is held');
      lock = await here.acquireAsync('killed');
      assert.equal(lock.abandoned, true);
      await pause(1);
      assert.equal(warned.length, 1, 'each mark is reported once');
      assert.match(
        warned[0],
        /^A holder ended, or lost the lock, while it held the named lock 'killed', which now belongs to this thread\./,
      );
      lock.markConsistent();
      assert.equal(lock.abandoned, false);
      lock.unlock();
      const another = await borrowMachine(t);
      await openThere(another, ends);
      const isClean = (mine) =>
        mine.acquire('killed').then(() => !mine.held.get('killed').abandoned || !mine.held.get('killed').unlock());
      await seen(() => another.do(isClean));
      await another.kill();
      lock = await here.acquireAsync('killed');
      assert.equal(lock.abandoned, true);
      await seen(() => warned.length === 2);
      lock.unlock();
      const repaired = [];
      const repairing = open(t, ends, undefined, { onAbandoned: ({ name }) => void repaired.push(name) });
      assert.equal(await repairing.request('killed', ({ abandoned }) => abandoned), false);
      assert.deepEqual(repaired, ['killed']);
    },
  );

  test(
    'a paused holder sees the loss at its first look, when another has the lock with a larger fence',
    options,
    async (t) => {
      const [here, there] = [open(t), await borrowMachine(t)];
      await openThere(there, { lease });
      await there.do(acquire, 'paused', { fence: true });
      const fence = await there.do((mine) => mine.held.get('paused').fence);
      const dead = await borrowMachine(t);
      await openThere(dead, ends);
      await dead.do(acquire, 'paused, marked');
      await dead.kill();
      await there.do(acquire, 'paused, marked');
      assert.equal(await there.do((mine) => mine.held.get('paused, marked').abandoned), true);
      const { look, seenThere } = await blockUntilTold(t, there, 'paused');
      await stop(there.child.pid);
      const lock = await here.acquireAsync('paused', { fence: true });
      assert.ok(lock.fence > fence);
      (await here.acquireAsync('paused, marked')).unlock();
      look();
      there.signal('SIGCONT');
      assert.deepEqual(await seenThere, PAUSED_TOO_LONG);
      assert.equal(lock.unlock(), true);
    },
  );

  test('a server that stops answering: nothing is held any more before the lease ends there', options, async (t) => {
    const here = open(t, ends);
    const [looked, silent] = [await here.acquireAsync('looked at'), await here.acquireAsync('silent')];
    const begun = performance.now();
    await stop(server().pid);
    t.after(() => process.kill(server().pid, 'SIGCONT'));
    const lost = new Promise((resolve) => silent.signal.addEventListener('abort', resolve));
    let after = 0;
    for (let now = 0; looked.locked; now = performance.now() - begun) {
      after = now;
      await pause(1);
    }
    // The other's loss is reported, though nobody asks for it.
    await lost;
    const reportedAfter = performance.now() - begun;
    process.kill(server().pid, 'SIGCONT');
    assert.equal(silent.signal.reason.reason, 'unreachable');
    assert.ok(after <= ends.lease && after > ends.lease / 3, `held for ${after} ms`);
    assert.ok(reportedAfter < ends.lease + 5000, `reported after ${reportedAfter} ms`);
  });

  test('requests that are withdrawn at the moment of their grant leave no ticket', {
    ...options,
    timeout: 120_000,
  }, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `race ${round % 3}`;
      await there.do(acquire, name);
      const wait = here.acquireAsync(name, { timeout: 1 + (round % 7) }).then(
        (lock) => lock.unlock(),
        (error) => assert.equal(error.code, 'ERR_LOCK_TIMEOUT'),
      );
      await pause(round % 9);
      await there.do(unlock, name);
      await wait;
    }
    await seen(async () => (await tickets()) === 0);
  });

  test('a request that is withdrawn before there is a connection takes no place in line', options, async (t) => {
    const lock = await open(t).acquireAsync('early');
    const others = Array.from({ length: 8 }, (_, index) => open(t, { connectTimeout: 20_000 + index }));
    const waits = others.map((manager, index) => manager.acquireAsync('early', { timeout: 1 + 8 * index }));
    // On a busy machine it takes longer to connect than a store is asked who holds it.
    for (const { reason } of await Promise.allSettled(waits)) {
      if (reason.code === 'ERR_LOCK_STORE') assert.match(reason.message, /has not acknowledged/);
      else assert.equal(reason.code, 'ERR_LOCK_TIMEOUT');
    }
    for (const manager of others) await manager.check();
    await seen(async () => (await tickets()) === 1);
    assert.equal(lock.unlock(), true);
  });

  test('shared requests of one thread begin in the order of the calls', options, (t) => beginInOrder(open(t)));

  test('close() gives back what is held and withdraws what waits', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await there.do(acquire, 'far');
    const lock = await here.acquireAsync('near');
    const waits = Promise.allSettled([here.acquireAsync('near'), here.acquireAsync('far')]);
    await seen(async () => (await tickets()) === 3);
    await here.close();
    assert.equal(lock.signal.reason.reason, 'closed');
    for (const { reason } of await waits) assert.equal(reason.code, 'ERR_LOCK_CLOSED');
    for (const ask of [
      () => here.query(),
      () => here.acquireAsync([]),
      () => here.request([], () => {}),
      () => here.stats(),
    ]) {
      await assert.rejects(ask(), { code: 'ERR_LOCK_CLOSED' });
    }
    await seen(async () => (await tickets()) === 1);
    // To close is to unlock: it leaves no mark.
    const next = await open(t).acquireAsync('near');
    assert.deepEqual([next.abandoned, next.unlock()], [false, true]);
    await there.do(unlock, 'far');
  });

  for (const [how, end] of [
    ['ends by itself', ''],
    ['calls process.exit()', '.then(() => process.exit())'],
    ['throws', '.then(() => setImmediate(() => { throw new Error("on purpose"); }))'],
  ]) {
    test(`a process that ${how} gives back what it held, marked, long before the lease ends`, options, async (t) => {
      const source = `
        const { LockManager } = require(${JSON.stringify(require.resolve('../..'))});
        const { ${kind} } = require(${JSON.stringify(require.resolve(`../../lib/stores/${kind}.js`))});
        const manager = new LockManager({ store: ${kind}(${JSON.stringify(server().url)}, { lease: 50_000 }) });
        manager.acquireAsync('of the past')${end};`;
      await new Promise((resolve) => execFile(process.execPath, ['-e', source], { timeout: 20_000 }, resolve));
      const lock = await open(t).acquireAsync('of the past', { timeout: 10_000 });
      assert.equal(lock.abandoned, true);
      lock.markConsistent();
      assert.equal(lock.abandoned, false);
      lock.unlock();
    });
  }

  const busyEnds = options.skip ? options : { ...options, ...needs('termination when busy') };
  test('who ends with some of the names, and waits for the next, marks none', busyEnds, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    const last = await here.acquireAsync('e');
    /** Looks until so many of the other process's requests for the last name hold it there, or wait. */
    const asked = (count) =>
      seen(async () => {
        const { held, pending } = await there.do((mine) => mine.manager.query());
        const isThere = ({ name, clientId }) => name === 'e' && clientId.startsWith('node-');
        return [...held, ...pending].filter(isThere).length === count;
      });
    await there.do(
      (mine, path, store) => {
        const { Worker } = mine.require('node:worker_threads');
        const manager = `new (require(${path}).LockManager)({ store: require(${store}).${mine.kind}('${mine.url}', ${JSON.stringify(mine.settings)}) })`;
        mine.threads = ["acquireAsync(['a', 'b', 'e'])", "acquire(['c', 'e'])"].map(
          (call) => new Worker(`${manager}.${call}`, { eval: true }),
        );
      },
      ...['../..', `../../lib/stores/${kind}.js`].map((file) => JSON.stringify(require.resolve(file))),
    );
    await asked(2);
    const marks = there.do(async (mine) => {
      await Promise.all(mine.threads.map((thread) => thread.terminate()));
      const marks = await mine.manager.request(['a', 'b', 'c'], (held) => held.map(({ abandoned }) => abandoned));
      mine.manager.acquireAsync(['a', 'd', 'e']);
      return marks;
    });
    assert.deepEqual(await marks, [false, false, false]);
    await asked(1);
    there.do(() => process.exit());
    await there.ended;
    const free = (held) => held.map(({ abandoned }) => abandoned);
    assert.deepEqual(await here.request(['a', 'd'], { timeout: 10_000 }, free), [false, false]);
    assert.equal(last.unlock(), true);
  });

  test('a thread that ends with a lock, alone with its store, gives it back at once, marked', busyEnds, async (t) => {
    const there = await borrowMachine(t);
    await openThere(there);
    const rounds = 8;
    const marks = await there.do(
      async (mine, path, store, rounds) => {
        const { Worker } = mine.require('node:worker_threads');
        // Other settings are another store.
        const settings = JSON.stringify({ ...mine.settings, connectTimeout: 4998 });
        const manager = `new (require(${path}).LockManager)({ store: require(${store}).${mine.kind}('${mine.url}', ${settings}) })`;
        const tell = "require('node:worker_threads').parentPort.postMessage('has')";
        const marks = [];
        for (let round = 0; round < rounds; round++) {
          const worker = new Worker(
            `${manager}.acquireAsync('ends').then(() => ${tell}); setInterval(() => {}, 1000)`,
            {
              eval: true,
            },
          );
          await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
          await worker.terminate();
          const lock = await mine.manager.acquireAsync('ends', { timeout: 10_000 });
          marks.push(lock.abandoned);
          lock.markConsistent();
          lock.unlock();
        }
        return marks;
      },
      ...['../..', `../../lib/stores/${kind}.js`].map((file) => JSON.stringify(require.resolve(file))),
      rounds,
    );
    assert.deepEqual(marks, Array(rounds).fill(true));
  });

  test(
    'of a process that is killed while it waits for the next of several names, those it has are marked',
    options,
    async (t) => {
      const [here, there] = [open(t), await borrowMachine(t)];
      await openThere(there, ends);
      const last = await here.acquireAsync('z');
      there.do((mine) => mine.manager.acquireAsync(['y', 'z']));
      await seen(async () => (await tickets()) === 3);
      await there.kill();
      assert.equal(await here.request('y', ({ abandoned }) => abandoned), true);
      last.unlock();
    },
  );

  test('a cable that is cut: the holder learns of it before another is granted', options, async (t) => {
    const proxy = await startProxy(t, server().url);
    const [near, far] = [open(t), open(t, ends, proxy.url)];
    for (let round = 0; round < 3; round += 1) {
      const held = await far.acquireAsync('cut off', { fence: true });
      const told = new Promise((resolve) =>
        held.signal.addEventListener('abort', () => resolve(held.signal.reason.reason)),
      );
      let isTold = false;
      told.then(() => {
        isTold = true;
      });
      const next = near.acquireAsync('cut off', { fence: true });
      await seen(async () => (await tickets()) === 2);
      proxy.cut();
      const lock = await next;
      assert.ok(isTold, 'another has it, and the holder does not know');
      assert.deepEqual([await told, held.locked, held.unlock()], ['unreachable', false, false]);
      assert.ok(lock.fence > held.fence);
      proxy.heal();
      if (lock.abandoned) lock.markConsistent();
      assert.equal(lock.unlock(), true);
    }
    assert.equal((await far.acquireAsync('cut off')).unlock(), true);
    await seen(async () => (await tickets()) === 0);
  });

  test('a slow line: what is held is kept, and the order too', options, async (t) => {
    const proxy = await startProxy(t, server().url);
    const [near, far] = [open(t), open(t, ends, proxy.url)];
    await far.check();
    proxy.delay = lease / 20;
    const lock = await far.acquireAsync('slow');
    const next = near.acquireAsync('slow');
    await seen(async () => (await tickets()) === 2);
    const last = far.acquireAsync('slow');
    await pause(2 * ends.lease);
    assert.equal(lock.locked, true);
    assert.equal(lock.unlock(), true);
    assert.equal((await next).unlock(), true);
    assert.equal((await last).unlock(), true);
    await seen(async () => (await tickets()) === 0);
  });

  test('a server that cannot be reached at first is reported at once', options, async (t) => {
    const manager = open(t, {}, server().url.replace(/:\d+$/, ':1'));
    const error = await manager.request('nowhere', () => {}).catch((thrown) => thrown);
    assert.equal(error.code, 'ERR_LOCK_STORE');
    assert.equal(error.cause.code, 'ECONNREFUSED');
  });

  return { options, open, openThere, server, tickets };
};
