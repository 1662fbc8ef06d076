// query() of locks among processes: who holds a name in another one.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { warningsOf } = require('../helpers/messages.js');
const { hold, rowsOf, turns } = require('../helpers/names.js');
const { holdIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { watched } = require('../helpers/threads.js');

const byName = (one, other) => (one.name < other.name ? -1 : 1);

test(
  'query() shows who holds a name alone in other processes, until it unlocks or is killed',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 2);
    const [one, other] = peers;
    await Promise.all([holdIn(one, 'a'), holdIn(other, 'b')]);
    const { held, pending } = await manager.query();
    assert.deepEqual(pending, []);
    assert.deepEqual(
      held.map(({ name, mode, pid, threadId, clientId }) => ({ name, mode, pid, threadId, clientId })).sort(byName),
      [
        { name: 'a', mode: 'exclusive', pid: one.pid, threadId: 0, clientId: `node-${one.pid}-0` },
        { name: 'b', mode: 'exclusive', pid: other.pid, threadId: 0, clientId: `node-${other.pid}-0` },
      ],
    );
    assert.ok(held.every(({ heldMs }) => heldMs >= 0 && heldMs < 40_000));
    await unlockIn(one);
    await other.end();
    assert.deepEqual((await manager.query()).held, []);
  }),
);

test(
  'query() does not show who held in a thread that has ended, though its process lives; the next one learns who it was',
  watched(async (t) => {
    const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
    const { manager, peers } = await startPeers(t, 1);
    const [peer] = peers;
    const threadId = await peer.do(async (here) => {
      const { Worker } = here.require('node:worker_threads');
      const [sablock, directory] = [here.require.resolve('../..'), here.directory];
      const code = `
        const { LockManager } = require(${JSON.stringify(sablock)});
        new LockManager({ directory: ${JSON.stringify(directory)} }).acquireAsync('a').then(() => process.exit());`;
      const worker = new Worker(code, { eval: true });
      const { threadId } = worker;
      await new Promise((resolve) => worker.once('exit', resolve));
      return threadId;
    });
    assert.deepEqual((await manager.query()).held, []);
    const lock = await manager.acquireAsync('a', { ifAvailable: true });
    assert.equal(lock.abandoned, true);
    await turns();
    assert.match(
      warnings[0].message,
      new RegExp(`^Process ${peer.pid} \\(its thread ${threadId}\\) ended while it held`),
    );
    lock.unlock();
    assert.equal(lock.abandoned, false, 'only while it is held');
  }),
);

test(
  'query(), and the error of a wait, show the thread of another process that holds a name, and for how many milliseconds',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    const threadId = await peers[0].do(async (here) => {
      const { Worker } = here.require('node:worker_threads');
      const [sablock, directory] = [here.require.resolve('../..'), here.directory];
      const code = `
        const { LockManager } = require(${JSON.stringify(sablock)});
        new LockManager({ directory: ${JSON.stringify(directory)} }).acquireAsync('a').then((lock) => {
          globalThis.kept = lock;
          require('node:worker_threads').parentPort.postMessage('held');
          setInterval(() => {}, 1000);
        });`;
      here.worker = new Worker(code, { eval: true });
      await new Promise((resolve) => here.worker.once('message', resolve));
      return here.worker.threadId;
    });
    await new Promise((resolve) => setTimeout(resolve, 60));
    const [{ threadId: shown, clientId, heldMs }] = (await manager.query()).held;
    assert.deepEqual([shown, clientId], [threadId, `node-${peers[0].pid}-${threadId}`]);
    assert.ok(heldMs >= 50 && heldMs < 40_000, `${heldMs} ms`);
    await assert.rejects(manager.acquireAsync('a', { timeout: 1 }), (error) => {
      const [, ms] = /(\d+) ms/.exec(error.message.split('held now')[1] ?? '') ?? [];
      assert.match(error.message, new RegExp(`process ${peers[0].pid}\\b.*\\bthread ${threadId}\\b`, 's'));
      if (ms !== undefined) assert.ok(Number(ms) >= 50, error.message);
      return true;
    });
  }),
);

test(
  'query() shows the locks and the waits of this process in their order, and then what other processes hold',
  watched(async (t) => {
    const { manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'm');
    const mine = [await manager.acquireAsync('z'), await manager.acquireAsync('a', { mode: 'shared' })];
    const waits = ['z', 'm'].map((name) => manager.request(name, { timeout: 60_000 }, () => name));
    await turns();
    const { held, pending } = await manager.query();
    assert.deepEqual(
      held.map(({ name, mode, pid }) => [name, mode, pid]),
      [
        ['z', 'exclusive', process.pid],
        ['a', 'shared', process.pid],
        ['m', 'exclusive', peers[0].pid],
      ],
    );
    assert.deepEqual(
      pending.map(({ name, clientId }) => [name, clientId]),
      [
        ['z', `node-${process.pid}-0`],
        ['m', `node-${process.pid}-0`],
      ],
    );
    for (const lock of mine) lock.unlock();
    await unlockIn(peers[0]);
    assert.deepEqual(await Promise.all(waits), ['z', 'm']);
  }),
);

test(
  'query() of many records leaves the event loop its turns, and those who ask together get the same rows',
  watched(async (t) => {
    const COUNT = 1_000;
    const { directory, manager, peers } = await startPeers(t, 1);
    await holdIn(peers[0], 'a');
    const record = path.join(directory, 'v1-a.info');
    for (let index = 1; index < COUNT; index++) fs.copyFileSync(record, path.join(directory, `v1-a${index}.info`));
    const mine = await hold('mine', {}, manager);
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const [one, other] = await Promise.all([manager.query(), manager.query()]);
    isOver = true;
    const rowsOfPeer = ({ held }) => held.filter(({ pid }) => pid === peers[0].pid).length;
    assert.deepEqual([rowsOfPeer(one), rowsOfPeer(other)], [COUNT, COUNT]);
    assert.deepEqual([rowsOf(one.held, 'mine').length, rowsOf(other.held, 'mine').length], [1, 1]);
    // Not more than a few hundred rows are made in one of them.
    assert.ok(turns >= 3, `${turns} turns`);
    mine.release();
    await mine.request;
  }),
);

test(
  'query() rejects if the directory cannot be read, and shows nobody in one that was removed',
  watched(async (t) => {
    const { directory, manager } = await startPeers(t, 0);
    fs.rmSync(directory, { recursive: true });
    assert.deepEqual(await manager.query(), { held: [], pending: [] });
    fs.writeFileSync(directory, 'a file');
    await assert.rejects(manager.query(), { code: 'ERR_LOCK_DIRECTORY' });
  }),
);
