// One server of a kind for the tests of a file, managers of this process and of others, and what both do with them.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, beforeEach } = require('node:test');
const { Worker } = require('node:worker_threads');
const { LockManager } = require('../..');
const { createFolder } = require('./folder.js');

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The time after which what has not been seen never will be, in milliseconds. */
const LONGEST_WAIT = 45_000;

/** Looks until it is so. If that never comes, the error says what was looked for, and nothing keeps the process. */
exports.seen = async (look) => {
  const end = performance.now() + LONGEST_WAIT;
  while (!(await look())) {
    if (performance.now() > end) assert.fail(`Not seen within ${LONGEST_WAIT} ms: ${look}`);
    await pause(10);
  }
};

exports.pause = pause;

/** Whether no thread of a process runs, as Linux shows it. */
const isStopped = (pid) =>
  fs.readdirSync(`/proc/${pid}/task`).every((thread) => {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      return stat.slice(stat.lastIndexOf(')')).startsWith(') T');
    } catch (error) {
      if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
      return true;
    }
  });

/** Stops a process, one of whose threads may run a moment longer than the call of `kill()`. */
exports.stop = async (pid) => {
  process.kill(pid, 'SIGSTOP');
  if (process.platform === 'linux') await exports.seen(() => isStopped(pid));
};
exports.acquire = (here, name, asked) => here.acquire(name, asked);
exports.unlock = (here, name) => here.held.get(name).unlock();

/** The result of `blockUntilTold` for a lock that was lost meanwhile. */
exports.PAUSED_TOO_LONG = {
  isMarked: false,
  isLocked: false,
  code: 'ERR_LOCK_LOST',
  reason: 'unreachable',
  isUnlocked: false,
};

/**
 * Has a machine block its event loop until it has been stopped and goes on, and look at the lock of this name then, so that nothing but
 * that look can tell it of a loss. `look()` says that it was stopped, since a busy system stops it too, and is called before it goes on;
 * it says so by a file, which a thread that is blocked sees. A lock of this name and `, marked`, which is abandoned, is looked at too.
 */
exports.blockUntilTold = async (t, machine, name) => {
  const folder = createFolder(t);
  const [begun, told] = ['begun', 'told'].map((file) => path.join(folder, file));
  const seenThere = machine.do(
    (here, lockName, sign, awaited) => {
      const { existsSync, writeFileSync } = here.require('node:fs');
      const lock = here.held.get(lockName);
      const cell = new Int32Array(new SharedArrayBuffer(4));
      // It may be stopped anywhere from the sign on: of the time nothing is left out.
      let last = performance.now();
      writeFileSync(sign, '');
      for (;;) {
        Atomics.wait(cell, 0, 0, 1);
        const time = performance.now();
        const gap = time - last;
        last = time;
        if (gap <= 500) continue;
        // Before all else: its lock worker is about to see a loss, too.
        const isMarked = here.held.get(`${lockName}, marked`)?.abandoned ?? false;
        const isLocked = lock.locked;
        const { code, reason } = lock.signal.reason ?? {};
        if (existsSync(awaited)) return { isMarked, isLocked, code, reason, isUnlocked: lock.unlock() };
      }
    },
    name,
    begun,
    told,
  );
  await exports.seen(() => fs.existsSync(begun));
  return { look: () => fs.writeFileSync(told, ''), seenThere };
};

/** The messages of sablock:store about this namespace, as they come. */
exports.messagesOf = (t, namespace) => {
  const messages = [];
  const note = (message) => {
    if (message.namespace === namespace) messages.push(message);
  };
  subscribe('sablock:store', note);
  t.after(() => unsubscribe('sablock:store', note));
  return messages;
};

/** Each exclusive fence of a name is above those before; a shared one, of any process, is not below the last exclusive one. */
exports.fencesShared = async (here, there) => {
  const shared = { mode: 'shared', fence: true };
  let last = 0n;
  for (let round = 0; round < 3; round += 1) {
    const alone = await here.request('fenced', { fence: true }, (lock) => lock.fence);
    assert.ok(alone > last, `${alone} after ${last}`);
    const mine = await here.acquireAsync('fenced', shared);
    assert.equal(await there.do(exports.acquire, 'fenced', shared), true);
    const theirs = await there.do((machine) => machine.held.get('fenced').fence);
    for (const fence of [mine.fence, theirs]) assert.ok(fence >= alone, `${fence}, shared, after ${alone}`);
    await there.do(exports.unlock, 'fenced');
    mine.unlock();
    last = alone;
  }
};

/** Two processes hold a name, shared: each of them is shown both holders, its own and the one elsewhere. */
exports.showsSharers = async (kind, here, there) => {
  const shared = { mode: 'shared' };
  const lock = await here.acquireAsync(['shown', 'shown too'], shared);
  assert.equal(await there.do(exports.acquire, 'shown', shared), true);
  const pids = [process.pid, there.child.pid];
  const lists = [await here.query(), await there.do((machine) => machine.manager.query())];
  for (const [index, { held }] of lists.entries()) {
    const rows = held.filter(({ name }) => name === 'shown');
    assert.deepEqual(
      rows.map(({ mode, clientId, threadId }) => [mode, clientId.split('-')[0], threadId >= 0]),
      [
        ['shared', 'node', true],
        ['shared', kind, false],
      ],
    );
    assert.equal(rows[0].pid, pids[index]);
    assert.deepEqual([rows[0].heldMs >= 0, rows[1].heldMs], [true, -1]);
  }
  await there.do(exports.unlock, 'shown');
  lock.unlock();
};

/** Shared requests of one thread begin in the order of the calls. */
exports.beginInOrder = async (here) => {
  await here.request('warm', () => {});
  for (let round = 0; round < 3; round++) {
    const begun = [];
    const ask = (index) => here.request('in order', { mode: 'shared' }, () => begun.push(index));
    await Promise.all(Array.from({ length: 40 }, (_, index) => ask(index)));
    assert.deepEqual(
      begun,
      Array.from({ length: 40 }, (_, index) => index),
    );
  }
};

/** Why a test is skipped in the weather, or false. */
exports.notInTheWeather = (why) => process.env.SABLOCK_WEATHER !== undefined && why;

/**
 * `SABLOCK_WEATHER=7`: all that the tests do with a store passes a hostile network of this seed, on a thread of its own. Returns the
 * server as clients see it.
 */
exports.inTheWeather = async (kind, server) => {
  const seed = process.env.SABLOCK_WEATHER;
  if (seed === undefined) return server;
  const file = path.join(__dirname, '..', 'workers', 'weather.js');
  const worker = new Worker(file, { workerData: { kind, target: server.url, seed: Number(seed) } });
  const [url] = await once(worker, 'message');
  const stop = async () => {
    await worker.terminate();
    await server.stop();
  };
  return Object.create(server, { url: { value: url }, stop: { value: stop } });
};

/**
 * `make(connection, settings)` describes the store; `start()` starts its server, `clear(server)` deletes all that is there before
 * each test; `skip` says why there is none. `settings` are those of every manager.
 */
exports.storeOf = ({ kind, make, skip, start, clear, settings }) => {
  let started;
  before(async () => {
    if (!skip) started = await exports.inTheWeather(kind, await start());
  });
  // Remains of killed processes are deleted.
  if (clear !== undefined) beforeEach(() => started && clear(started));
  after(() => started?.stop());
  return {
    options: { timeout: 60_000, skip },
    server: () => started,
    /** A manager of the test, with the connections of no other. */
    open(t, more = {}, connection = started.url, beside = {}) {
      const manager = new LockManager({ store: make(connection, { ...settings, ...more }), ...beside });
      t.after(() => manager.close());
      return manager;
    },
    openThere: (machine, more = {}) =>
      machine.do(
        (here, name, url, settings) => {
          Object.assign(here, { kind: name, url, settings });
          here.manager = new here.sablock.LockManager({ store: here.open(name, url, settings) });
          here.managers.push(here.manager);
          here.acquire = async (wanted, asked) => {
            const lock = await here.manager.acquireAsync(wanted, asked);
            if (lock !== null) here.held.set(wanted, lock);
            return lock !== null;
          };
        },
        kind,
        started.url,
        { ...settings, ...more },
      ),
  };
};
