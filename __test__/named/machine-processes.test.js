// Locks among processes: they exclude each other, and go on when a process is killed, stopped or busy.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { warningsOf } = require('../helpers/messages.js');
const { limit } = require('../helpers/limits.js');
const { hold, modesOf, rowsOf, turns } = require('../helpers/names.js');
const { holdIn, isListed, requestIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { watched } = require('../helpers/threads.js');

/** Looks until so many requests of a peer wait. */
const pendingIn = async (peer, name, count) => {
  while (
    (await peer.do(async (here) => (await here.manager.query()).pending)).filter((row) => row.name === name).length <
    count
  );
};

test(
  'two processes exclude each other, and the one that waits goes on when the other unlocks',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    assert.equal(await holdIn(peers[0], 'a'), false);
    assert.equal(await manager.request('a', { ifAvailable: true }, (lock) => lock), null);
    assert.equal(await manager.request('another', { ifAvailable: true }, ({ name }) => name), 'another');
    const next = manager.request('a', ({ abandoned }) => abandoned);
    await turns();
    assert.deepEqual(await modesOf('a', manager), { held: ['exclusive'], pending: ['exclusive'] });
    assert.equal(await unlockIn(peers[0]), true);
    assert.equal(await next, false);
  }),
);

test(
  'a callback runs in one process at a time',
  watched(async (t) => {
    const { directory, peers } = await startPeers(t, 3);
    const file = path.join(directory, 'count');
    fs.writeFileSync(file, '0');
    const count = (here, file) => {
      const { readFileSync, writeFileSync } = here.require('node:fs');
      const once = () =>
        here.manager.request('count', async () => {
          const seen = Number(readFileSync(file, 'utf8'));
          await new Promise((resolve) => setImmediate(resolve));
          writeFileSync(file, String(seen + 1));
        });
      return Promise.all(Array.from({ length: 50 }, once)).then(() => true);
    };
    await Promise.all(peers.map((peer) => peer.do(count, file)));
    assert.equal(fs.readFileSync(file, 'utf8'), '150');
  }),
);

test(
  'a killed holder hands over at once and is reported, once by a warning and until it is repaired by the mark',
  watched(async (t) => {
    const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
    const { manager, peers } = await startPeers(t, 2);
    await holdIn(peers[0], 'doomed');
    const next = manager.request('doomed', (lock) => lock.abandoned);
    peers[0].kill('SIGKILL');
    assert.equal(await next, true);
    await turns();
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0].message,
      new RegExp(`^Process ${peers[0].pid} ended while it held the named lock 'doomed'`),
    );
    assert.equal(await requestIn(peers[1], 'doomed'), true);
    assert.equal(await requestIn(peers[1], 'doomed', { mode: 'shared' }), true);
    await assert.rejects(
      manager.request('doomed', { mode: 'shared' }, (lock) => lock.markConsistent()),
      { code: 'ERR_LOCK_NOT_OWNER' },
    );
    await manager.request('doomed', (lock) => {
      lock.markConsistent();
      assert.equal(lock.abandoned, false);
    });
    assert.equal(await requestIn(peers[1], 'doomed'), false);
    assert.equal(warnings.length, 1);
  }),
);

test(
  'who has learned of a killed holder, and then cannot have the next of its names, warns all the same: nobody else will',
  watched(async (t) => {
    const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
    const { manager, peers } = await startPeers(t, 1);
    const second = await hold('2', {}, manager);
    await holdIn(peers[0], '1');
    const controller = new AbortController();
    const asked = manager.request(['1', '2'], { signal: controller.signal }, () => assert.fail('it must not run'));
    peers[0].kill('SIGKILL');
    while ((await modesOf('2', manager)).pending.length === 0) await turns();
    controller.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    await turns();
    assert.deepEqual(
      warnings.map(({ message }) => message.slice(0, message.indexOf(', which'))),
      [`Process ${peers[0].pid} ended while it held the named lock '1'`],
    );
    second.release();
  }),
);

/** Whether the record says that this process holds the name alone. */
const isMine = (directory, name) => {
  const record = fs.readFileSync(path.join(directory, `v1-${name}.info`));
  return (record[8] & 1) === 1 && record.readUInt32LE(32) === process.pid;
};

for (const how of ['signal', 'timeout']) {
  test(
    `a killed holder is reported though the first who is granted its lock never learns of that (${how})`,
    watched(async (t) => {
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      const { directory, manager, peers } = await startPeers(t, 1);
      await holdIn(peers[0], 'a');
      const controller = new AbortController();
      const options = how === 'signal' ? { signal: controller.signal } : { timeout: 1000 };
      const request = manager.request('a', options, () => assert.fail('it must not run'));
      while ((await modesOf('a', manager)).pending.length === 0);
      peers[0].kill('SIGKILL');
      // The event loop does not turn until it is over.
      while (!isMine(directory, 'a'));
      if (how === 'signal') controller.abort();
      else while (isMine(directory, 'a'));
      await assert.rejects(request, how === 'signal' ? { name: 'AbortError' } : { code: 'ERR_LOCK_TIMEOUT' });
      for (const mode of ['shared', 'exclusive']) {
        assert.equal(await manager.request('a', { mode }, ({ abandoned }) => abandoned), true);
      }
      await turns();
      assert.deepEqual(
        warnings.map(({ message }) => message.slice(0, message.indexOf(', which'))),
        [`Process ${peers[0].pid} ended while it held the named lock 'a'`],
      );
    }),
  );
}

for (const [what, end] of [
  ['process.exit()', () => process.exit()],
  [
    'an uncaught error',
    () => {
      setImmediate(() => {
        throw new Error('Thrown on purpose');
      });
    },
  ],
]) {
  test(
    `a holder that ends by ${what} is reported`,
    watched(async (t) => {
      const { manager, peers } = await startPeers(t, 1);
      await holdIn(peers[0], 'doomed');
      peers[0].do(end);
      await peers[0].exited;
      assert.equal(await manager.request('doomed', (lock) => lock.abandoned), true);
    }),
  );
}

test(
  'a waiter that is killed is out, and not reported',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    const { release, request } = await hold('a', {}, manager);
    requestIn(peers[0], 'a');
    await pendingIn(peers[0], 'a', 1);
    peers[0].kill('SIGKILL');
    await peers[0].exited;
    const next = requestIn(peers[1], 'a');
    await pendingIn(peers[1], 'a', 1);
    release();
    await request;
    assert.equal(await next, false);
  }),
);

test(
  'a stopped holder keeps it',
  { skip: process.platform === 'win32' && 'there is no SIGSTOP' },
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'a');
    peers[0].kill('SIGSTOP');
    await assert.rejects(
      manager.request('a', { timeout: 300 }, () => {}),
      { code: 'ERR_LOCK_TIMEOUT' },
    );
    peers[0].kill('SIGCONT');
    const next = manager.request('a', ({ abandoned }) => abandoned);
    await unlockIn(peers[0]);
    assert.equal(await next, false);
  }),
);

test(
  'a holder whose event loop is blocked for long keeps it',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'a');
    const busy = peers[0].do((_, ms) => {
      const until = Date.now() + ms;
      while (Date.now() < until);
    }, 1500);
    await assert.rejects(
      manager.request('a', { timeout: 1000 }, () => {}),
      { code: 'ERR_LOCK_TIMEOUT' },
    );
    await busy;
    await unlockIn(peers[0]);
    assert.equal(await manager.request('a', ({ abandoned }) => abandoned), false);
  }),
);

test(
  'processes share a lock, and one that wants it alone waits for all',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    await Promise.all(peers.map((peer) => holdIn(peer, 'a', 'shared')));
    const mine = await hold('a', { mode: 'shared' }, manager);
    let isIn = false;
    const alone = manager.request('a', () => {
      isIn = true;
    });
    for (const peer of peers) await unlockIn(peer);
    assert.equal(isIn, false);
    mine.release();
    await alone;
    assert.equal(isIn, true);
  }),
);

test(
  'one that wants it alone is next: those who share it and come later wait',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    await holdIn(peers[0], 'a', 'shared');
    const alone = manager.acquireAsync('a');
    const inKernel = async () => (await requestIn(peers[1], 'a', { mode: 'shared', ifAvailable: true })) === null;
    while (!(await inKernel()));
    const later = holdIn(peers[1], 'a', 'shared');
    await unlockIn(peers[0]);
    const lock = await alone;
    assert.equal(await requestIn(peers[0], 'a', { mode: 'shared', ifAvailable: true }), null);
    lock.unlock();
    assert.equal(await later, false);
  }),
);

for (const [how, end] of Object.entries({
  'is unlocked': unlockIn,
  'has a mark': (peer) => peer.kill('SIGKILL'),
})) {
  test(
    `all of a process that wait to share a lock are let in as soon as it ${how}, together`,
    watched(async (t) => {
      const { manager, peers } = await startPeers(t, 1);
      await holdIn(peers[0], 'many');
      const most = 3;
      let inside = 0;
      const share = () =>
        manager.request('many', { mode: 'shared' }, async ({ abandoned }) => {
          inside += 1;
          while (inside < most) await turns();
          return abandoned;
        });
      const shared = Array.from({ length: most }, share);
      while ((await modesOf('many', manager)).pending.length < most);
      await end(peers[0]);
      assert.deepEqual(await Promise.all(shared), Array(most).fill(how === 'has a mark'));
    }),
  );
}

test(
  'what was withdrawn by a timeout or a signal leaves nothing behind',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    await holdIn(peers[0], 'a', 'shared');
    await assert.rejects(manager.request('a', { timeout: 30 }, assert.fail), { code: 'ERR_LOCK_TIMEOUT' });
    const controller = new AbortController();
    const aborted = manager.request('a', { signal: controller.signal }, assert.fail);
    setTimeout(() => controller.abort(new Error('Enough')), 30);
    await assert.rejects(aborted, { message: 'Enough' });
    assert.deepEqual(await modesOf('a', manager), { held: [], pending: [] });
    // No process waits to have it alone any more.
    assert.equal(await requestIn(peers[1], 'a', { mode: 'shared', ifAvailable: true }), false);
    await unlockIn(peers[0]);
    assert.equal(await requestIn(peers[1], 'a'), false);
  }),
);

for (const how of ['signal', 'timeout']) {
  test(
    `nothing is held for a request that was rejected in the moment of its grant (${how})`,
    watched(async (t) => {
      const { manager, peers } = await startPeers(t, 1);
      let rejected = 0;
      for (let round = 0; round < 150; round++) {
        await holdIn(peers[0], 'a');
        const controller = new AbortController();
        const options = how === 'signal' ? { signal: controller.signal } : { timeout: 2 };
        const ended = manager
          .request('a', options, async () => {
            // Others of this process do not have it either.
            assert.equal(await manager.request('a', { ifAvailable: true }, (lock) => lock), null);
            return 'granted';
          })
          .catch(({ code }) => {
            assert.notEqual(code, 'ERR_ASSERTION');
            return 'rejected';
          });
        // It waits in the kernel by then, most times; each tenth time its own is over, however busy the machine is.
        await new Promise((resolve) => setTimeout(resolve, round % 10 === 9 ? 20 : 2));
        const unlocked = unlockIn(peers[0]);
        // This loop sees the grant no sooner than the end of its wait.
        for (const end = performance.now() + (round % 30) / 50; performance.now() < end; );
        controller.abort();
        if ((await ended) === 'granted') continue;
        rejected++;
        await unlocked;
        assert.equal(await requestIn(peers[0], 'a', { ifAvailable: true }), false, 'it is free');
      }
      assert.ok(rejected > 0);
    }),
  );
}

test(
  'a blocking request waits for another process, or until its time is over',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    const { release, request } = await hold('a', {}, manager);
    const timedOut = (here) => {
      try {
        here.manager.requestSync('a', { timeout: 50 }, () => {});
      } catch ({ code }) {
        return code;
      }
    };
    assert.equal(await peers[0].do(timedOut), 'ERR_LOCK_TIMEOUT');
    const waiting = peers[0].do((here) => here.manager.requestSync('a', ({ abandoned, mode }) => [mode, abandoned]));
    setTimeout(release, 100);
    assert.deepEqual(await waiting, ['exclusive', false]);
    await request;
  }),
);

test(
  'a request that waits for another process keeps the event loop alive, unless it is not to',
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    const { release, request } = await hold('a', {}, manager);
    const { runProgram } = require('../helpers/processes.js');
    const kept = await runProgram('machine-keep-alive', [directory, 'true'], {
      onOutput: (text) => text.includes('waits') && release(),
    });
    assert.match(kept.stdout, /waits\nlocked\n/);
    await request;
    const again = await hold('a', {}, manager);
    const left = await runProgram('machine-keep-alive', [directory, 'false']);
    assert.equal(left.stdout, 'waits\n');
    assert.equal(left.code, 0);
    again.release();
    await again.request;
    assert.deepEqual(rowsOf((await manager.query()).held, 'a'), []);
  }),
);

test(
  'waiting for another process takes next to no time of a processor, awaited or blocked, however many wait',
  watched(async (t) => {
    const MS = 1_500;
    // Measured on a busy machine: 0.0003, 0.006, and 0.017 where there are more names than threads that may wait in the kernel; with
    // the lock doctor 0.01, 0.013 and 0.034, and 0.062 at a load of 12. If all takes ten times as long, so does each look of a wait.
    const MOST = limit(0.1);
    const { manager, peers } = await startPeers(t, 3);
    const [awaiting, blocked, beyondThreads] = peers;
    const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
    const held = await manager.acquireAsync(names);
    const share = async (here, names, ms, how) => {
      const { manager } = here;
      const refused = ({ code }) => code;
      const ask = {
        awaited: () => names.flatMap((name) => ['exclusive', 'shared'].map((mode) => here.ask(name, mode))),
        blocked: () => {
          try {
            return [manager.acquire(names[0], { timeout: ms })];
          } catch (error) {
            return [refused(error)];
          }
        },
      };
      here.ask = (name, mode) => manager.acquireAsync(name, { mode, timeout: ms + 500 }).catch(refused);
      // The first one starts threads, and loads code.
      await manager.acquireAsync(names[0], { timeout: 1 }).catch(refused);
      let waiting;
      // On a busy machine a pause lasts longer than it is to.
      const look = () => [process.cpuUsage(), performance.now()];
      let [before, startedAt] = look();
      if (how === 'blocked') {
        waiting = ask.blocked();
      } else {
        waiting = ask.awaited();
        await new Promise((resolve) => setTimeout(resolve, 300));
        [before, startedAt] = look();
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
      const { user, system } = process.cpuUsage(before);
      const elapsed = performance.now() - startedAt;
      return [(user + system) / 1000 / elapsed, [...new Set(await Promise.all(waiting))]];
    };
    const results = await Promise.all([
      awaiting.do(share, names.slice(0, 10), MS, 'awaited'),
      blocked.do(share, names.slice(0, 1), MS, 'blocked'),
      beyondThreads.do(share, names, MS, 'awaited'),
    ]);
    held.unlock();
    for (const [used, outcomes] of results) {
      t.diagnostic(`${(used * 100).toFixed(2)} % of a processor`);
      assert.deepEqual(outcomes, ['ERR_LOCK_TIMEOUT']);
      assert.ok(used < MOST, `${(used * 100).toFixed(2)} % of a processor`);
    }
  }),
);

test(
  'a process that is killed while it has some of the names and waits for the next marks none; one that has them all, each',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    const abandoned = (names) =>
      manager.request(names, { ifAvailable: true }, (held) => held.map((lock) => lock.abandoned));
    await holdIn(peers[0], 'e');
    await peers[1].do((here) => {
      const { Worker } = here.require('node:worker_threads');
      const acquire = 'new (require(path).LockManager)({ directory }).acquire(["a", "e"])';
      const workerData = { path: here.require.resolve('../..'), directory: here.directory };
      new Worker(`const { path, directory } = require('node:worker_threads').workerData; ${acquire}`, {
        eval: true,
        workerData,
      });
      void here.manager.acquireAsync(['e', 'b', 'c']);
    });
    await pendingIn(peers[1], 'e', 2);
    const { held } = await manager.query();
    const inPeer = held.filter(({ pid }) => pid === peers[1].pid).map(({ name }) => name);
    assert.deepEqual(inPeer.sort(), ['a', 'b', 'c'], 'others see who holds them');
    peers[1].kill('SIGKILL');
    await peers[1].exited;
    assert.deepEqual(await abandoned(['a', 'b', 'c']), [false, false, false]);
    await peers[0].do(async (here) => {
      here.locks = await here.manager.acquireAsync(['a', 'b']);
    });
    peers[0].kill('SIGKILL');
    await peers[0].exited;
    assert.deepEqual(await abandoned(['a', 'b', 'e']), [true, true, true]);
  }),
);

test(
  'a process that is killed as soon as it has the first of several names marks none',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    void peers[0]
      .do((here) => {
        const { binding } = here.require('../../lib/engine/thread.js');
        binding.noteIn = () => process.kill(process.pid, 'SIGKILL');
        return here.manager.acquireAsync(['a', 'b']);
      })
      .catch(() => {});
    await peers[0].exited;
    assert.deepEqual(await manager.request(['a', 'b'], (held) => held.map((lock) => lock.abandoned)), [false, false]);
  }),
);

test(
  'a timeout says which processes share the lock, where the system shows them',
  watched(async (t) => {
    const { directory, manager, peers } = await startPeers(t, 2);
    for (const peer of peers) await holdIn(peer, 'told', 'shared');
    const one = ({ pid }) => `process ${pid}`;
    const [a, b] = peers.map(one);
    const sharers = `It is held now, shared, by (${a}; by ${b}|${b}; by ${a})\\.`;
    // The system gives its list page by page: while others lock, one may be missing.
    const some = `It is held now, shared, by (${a}|${b})\\.|Another process holds it, or came before\\.`;
    const message = new RegExp(`named lock 'told'\\. (${sharers}|${some}) `);
    let told;
    do {
      ({ message: told } = await manager.acquireAsync('told', { timeout: 5 }).catch((error) => error));
      assert.match(told, message);
      // A lock of another device than its files have there, or behind too many others, is not known in the list; of others some
      // go.
    } while (isListed(directory, peers) && !new RegExp(sharers).test(told));
  }),
);
