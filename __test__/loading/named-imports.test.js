const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const sablock = require('../..');
const { limit } = require('../helpers/limits.js');

test('ES modules import every name from "sablock"', async () => {
  const { imported } = await import('../programs/named-imports.mjs');
  for (const name of [
    'Mutex',
    'Condition',
    'ManualResetEvent',
    'AutoResetEvent',
    'Latch',
    'LatchEntry',
    'Once',
    'LockGuard',
    'Semaphore',
    'SemaphorePermits',
    'LockManager',
    'HeldLock',
    'Barrier',
    'BarrierMember',
    'BrokenBarrierError',
    'Exchanger',
    'TimeoutError',
    'DeadlockError',
    'wait',
    'notify',
    'waitAsync',
    'stats',
  ]) {
    assert.equal(typeof imported[name], 'function', name);
    assert.equal(imported[name], sablock[name], name);
  }
});

test('a mutex of an ES module is a mutex of a CommonJS module', async () => {
  const { createHeld } = await import('../programs/named-imports.mjs');
  const buffer = new SharedArrayBuffer(8);
  const theirs = createHeld(buffer, 4);
  const mine = new sablock.Mutex(buffer, 4);
  assert.equal(mine.tryLock(), false);
  theirs.unlock();
  assert.equal(mine.tryLock(), true);
  mine.unlock();
});

test('the classes bear their names', () => {
  for (const name of [
    'Mutex',
    'LockGuard',
    'ManualResetEvent',
    'AutoResetEvent',
    'Latch',
    'LatchEntry',
    'Once',
    'LockManager',
    'HeldLock',
    'TimeoutError',
    'DeadlockError',
  ])
    assert.equal(sablock[name].name, name);
});

test('an ES module imports the package, and then all entries beside it', { timeout: limit(20_000) }, async () => {
  const program = path.join(__dirname, '..', 'programs', 'entries.mjs');
  const { exports } = require('../../package.json');
  for (const entry of Object.keys(exports)) {
    if (entry.endsWith('.json')) continue;
    assert.match(fs.readFileSync(program, 'utf8'), new RegExp(`from '${entry.replace('.', 'sablock')}'`), entry);
  }
  const worker = new Worker(program);
  // The end of a thread may come in the turn of its last message.
  const exited = once(worker, 'exit');
  const [names] = await once(worker, 'message');
  assert.deepEqual(names, ['function', 'start', 'etcd', 'mysql', 'postgres', 'redis']);
  await exited;
});
