'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');
const { Mutex } = require('../..');

const NOT_RUN = 0;
const THREW_THREAD_ENDING = 2;

for (const verb of ['lock', 'acquire', 'executeLockedSync', 'inspect']) {
  const never = verb === 'inspect' ? 'never says nothing' : 'never answers without the lock';
  test(`${verb}() in a thread that an uncaught error ends throws, and ${never}`, {
    timeout: 40_000,
  }, async () => {
    const buffer = new SharedArrayBuffer(8);
    const mutex = new Mutex(buffer);
    mutex.tryLock();
    const worker = new Worker(path.join(__dirname, '..', 'workers', 'dying.js'), { workerData: { buffer, verb } });
    worker.on('error', () => {});
    await new Promise((resolve) => worker.on('exit', resolve));
    // Where the runtime runs no more callbacks, there is nothing to be answered.
    assert.ok(
      [NOT_RUN, THREW_THREAD_ENDING].includes(new Int32Array(buffer)[1]),
      `outcome ${new Int32Array(buffer)[1]}`,
    );
    assert.equal(mutex.inspect().waiters.length, 0);
    mutex.unlock();
  });
}
