// Tests of what all stores do alike whose sessions hold the locks, as a list: each store's own file runs it on its server.
// Processes stand for machines.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockLostError, LockManager } = require('../..');
const { endsWaiting } = require('../helpers/audited.js');
const { startProxy } = require('../helpers/proxy.js');
const { borrowMachine, startMachine } = require('../helpers/store-processes.js');
const { hold, modesOf } = require('../helpers/names.js');
const { PAUSED_TOO_LONG, acquire, blockUntilTold, pause, seen, stop, unlock } = require('../helpers/stores.js');

/**
 * Declares the tests of a store of that kind, which `make(connection, settings)` describes: `store` is that of `storeOf()`, with
 * `HEARTBEAT`, and with `granted()` and `waiting()`, how many locks its server has granted, and how many are waited for there.
 * `endAll(server)`: an administrator ends all sessions;
 * `looksFor`: the text of a question for those that wait; `connections`: other ways to say how to connect, made of a URL.
 */
exports.conformSessions = (
  kind,
  make,
  { HEARTBEAT, granted, open, openThere, options, server, waiting },
  { endAll, looksFor, connections = {} },
) => {
  test('an exclusive lock keeps other processes out, and a free one lets them in', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
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
      message: new RegExp(`It is held now, exclusive, by ${kind}-\\d+\\.`),
    });
    assert.equal(await there.do(unlock, 'one'), true);
  });

  test('fences grow among machines, and over a crash of the server', { ...options, timeout: 120_000 }, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
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
      await server().kill();
      await server().start();
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
      const make = require(workerData.file)[workerData.kind];
      const manager = new LockManager({ store: make(workerData.url, { heartbeat: ${HEARTBEAT} }) });
      const fence = manager.requestSync('blocking', { fence: true }, (lock) => lock.fence);
      if (typeof fence !== 'bigint' || manager.requestSync('taken', { ifAvailable: true }, (lock) => lock) !== null) throw fence;
      Atomics.store(workerData.flag, 0, 1);
      Atomics.notify(workerData.flag, 0);`;
    const taken = await here.acquireAsync('taken');
    const workerData = {
      sablock: require.resolve('../..'),
      file: require.resolve(`../../lib/stores/${kind}.js`),
      kind,
      url: server().url,
      flag,
    };
    const worker = new Worker(source, { eval: true, workerData });
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    assert.notEqual(Atomics.wait(flag, 0, 0, 20_000), 'timed-out');
    assert.equal(taken.unlock(), true);
    assert.equal(await exited, 0);
  });

  test('a worker makes the first request: main starts the lock worker for it', options, async (t) => {
    // A process that has made none.
    const there = await startMachine(t);
    const code = await there.do(
      (here, name, url, heartbeat) => {
        const source = `
          const { workerData } = require('node:worker_threads');
          const { LockManager } = require(workerData.sablock);
          const make = require(workerData.file)[workerData.kind];
          const manager = new LockManager({ store: make(workerData.url, { heartbeat: ${heartbeat} }) });
          manager.requestSync('first', () => manager.requestSync('second', () => {}));`;
        const workerData = {
          sablock: here.require.resolve('../..'),
          file: here.require.resolve(`../../lib/stores/${name}.js`),
          kind: name,
          url,
        };
        const { Worker: Thread } = here.require('node:worker_threads');
        const worker = new Thread(source, { eval: true, workerData });
        return new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve));
      },
      kind,
      server().url,
      HEARTBEAT,
    );
    assert.equal(code, 0);
  });

  test('a holder that is killed frees its lock at once', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await there.do(acquire, 'killed');
    const next = here.acquireAsync('killed');
    await seen(async () => (await waiting()) === 1);
    const before = performance.now();
    await there.kill();
    (await next).unlock();
    assert.ok(performance.now() - before < 5000);
  });

  test(
    'a lock is kept while every event loop of its process is blocked for three times as long',
    options,
    async (t) => {
      const [here, there] = [open(t), await borrowMachine(t)];
      await openThere(there);
      await there.do(acquire, 'blocked');
      const blocked = there.do((mine, ms) => {
        const cell = new Int32Array(new SharedArrayBuffer(4));
        // In slices, so that the time in which nothing runs does not count.
        for (let ran = 0; ran < ms; ran += 50) Atomics.wait(cell, 0, 0, 50);
        return [mine.held.get('blocked').locked, mine.held.get('blocked').signal.aborted];
      }, 9 * HEARTBEAT);
      let isKept = true;
      blocked.finally(() => {
        isKept = null;
      });
      while (isKept) {
        assert.equal(await here.acquireAsync('blocked', { ifAvailable: true }), null);
        await pause(50);
      }
      assert.deepEqual(await blocked, [true, false]);
      const { renewals } = await there.do((mine) => mine.manager.stats());
      assert.ok(renewals >= 5, `${renewals} renewals`);
      assert.equal(await there.do(unlock, 'blocked'), true);
    },
  );

  test('a process that was paused for too long sees the loss at its first look', options, async (t) => {
    const [there, heartbeat] = [await borrowMachine(t), HEARTBEAT / 2];
    await openThere(there, { heartbeat });
    await there.do(acquire, 'paused', { fence: true });
    const { look, seenThere } = await blockUntilTold(t, there, 'paused');
    await stop(there.child.pid);
    await pause(5 * heartbeat);
    look();
    there.signal('SIGCONT');
    assert.deepEqual(await seenThere, PAUSED_TOO_LONG);
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
      await endAll(server());
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

  test('waits go on when the server was restarted; what was held is lost', {
    ...options,
    timeout: 120_000,
  }, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await there.do(acquire, 'restarted');
    const waits = here.acquireAsync('restarted');
    await seen(async () => (await waiting()) === 1);
    await server().kill();
    await server().start();
    const lock = await waits;
    assert.equal(await there.do((mine) => mine.held.get('restarted').locked), false);
    lock.unlock();
  });

  test('a thread that ends gives back what it held, and waits for nothing', options, async (t) => {
    const [here, there] = [open(t), await borrowMachine(t)];
    await openThere(there);
    await there.do(acquire, 'elsewhere');
    const source = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { LockManager } = require(workerData.sablock);
      const make = require(workerData.file)[workerData.kind];
      const manager = new LockManager({ store: make(workerData.url, { heartbeat: ${HEARTBEAT} }) });
      manager.acquireAsync('elsewhere');
      manager.acquireAsync('of a thread').then(() => parentPort.postMessage('held'));
      setInterval(() => {}, 1000);`;
    const workerData = {
      sablock: require.resolve('../..'),
      file: require.resolve(`../../lib/stores/${kind}.js`),
      kind,
      url: server().url,
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

  test(
    'a wait that the server knows of keeps its connection and its place, however often it is looked after',
    options,
    async (t) => {
      const here = open(t);
      const waits = [];
      for (const [how, connectionOf] of Object.entries({ 'by a URL': (url) => url, ...connections })) {
        const [name, proxy] = [`looked after ${how}`, await startProxy(t, server().url)];
        const far = open(t, {}, connectionOf(proxy.url));
        await far.check();
        const before = await here.acquireAsync(name);
        const wait = far.acquireAsync(name);
        await seen(async () => (await waiting()) === 2 * waits.length + 1);
        const { accepted } = proxy;
        // With sessions of its own, since few of one manager block.
        const behind = open(t, { connectTimeout: 6000 + waits.length }).acquireAsync(name);
        await seen(async () => (await waiting()) === 2 * waits.length + 2);
        let looks = 0;
        proxy.loses = (data, toServer) => {
          if (toServer && looksFor.test(data)) looks += 1;
          return false;
        };
        waits.push({ how, name, proxy, far, before, wait, accepted, behind, looks: () => looks });
      }
      // Two that do not find it would end its session.
      await seen(() => waits.every(({ looks }) => looks() > 4));
      for (const { how, name, proxy, far, before, wait, accepted, behind } of waits) {
        assert.equal(proxy.accepted, accepted, `${how}, it has connected anew`);
        before.unlock();
        assert.equal(await Promise.race([wait.then(() => 'first'), behind.then(() => 'behind')]), 'first', how);
        const lock = await wait;
        const { held } = await far.query();
        assert.deepEqual(
          held.filter((row) => row.name === name).map(({ threadId }) => threadId),
          [0],
          how,
        );
        assert.equal(lock.unlock(), true);
        assert.equal((await behind).unlock(), true);
      }
    },
  );

  test(
    'close() ends what a manager holds, and rejects what it waits for, here and in the server',
    options,
    async (t) => {
      const [closing, other, there] = [open(t), open(t), await borrowMachine(t)];
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
    },
  );

  test('a store that cannot be reached at first is reported at once, with its cause', options, async (t) => {
    const manager = new LockManager({ store: make(`${kind}://sablock@127.0.0.1:1/any`) });
    t.after(() => manager.close());
    const error = await manager.request('nowhere', () => {}).catch((thrown) => thrown);
    assert.equal(error.code, 'ERR_LOCK_STORE');
    assert.equal(error.cause.code, 'ECONNREFUSED');
  });

  test(
    'a session that has waited, and holds for longer than an idle one stays, ends when it is idle',
    options,
    async (t) => {
      Object.assign(process.env, {
        SABLOCK_TEST_SESSIONS: server().url,
        SABLOCK_TEST_IDLE_MS: '100',
        SABLOCK_TEST_IDLED: '0',
      });
      const here = open(t);
      const idling = open(t, {}, { module: require.resolve('../programs/short-idle-client.js') });
      t.after(() => {
        for (const name of ['SESSIONS', 'IDLE_MS', 'IDLED']) delete process.env[`SABLOCK_TEST_${name}`];
      });
      const before = await here.acquireAsync('idle');
      const waits = idling.acquireAsync('idle');
      await seen(async () => (await waiting()) === 1);
      before.unlock();
      const lock = await waits;
      // All of its timers that there may be have come while it was in use.
      await seen(() => Number(process.env.SABLOCK_TEST_IDLED) > 0);
      const connections = async () => (await idling.stats()).connections;
      assert.deepEqual([await connections(), lock.locked], [2, true]);
      assert.equal(lock.unlock(), true);
      await seen(async () => (await connections()) === 1);
      assert.equal(await idling.request('idle', () => 'again'), 'again');
    },
  );

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
      const make = require(${JSON.stringify(require.resolve(`../../lib/stores/${kind}.js`))})[${JSON.stringify(kind)}];
      new LockManager({ store: make(${JSON.stringify(server().url)}) }).acquireAsync('of the past').then(() => console.log('held'));`;
    const output = await new Promise((resolve, reject) => {
      const env = endsWaiting({ ...process.env });
      execFile(process.execPath, ['-e', source], { timeout: 20_000, env }, (error, stdout) =>
        error ? reject(error) : resolve(stdout),
      );
    });
    assert.equal(output, 'held\n');
    (await open(t).acquireAsync('of the past')).unlock();
  });
};
