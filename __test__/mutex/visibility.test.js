const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { BYTES, OFFSET } = require('../helpers/memory.js');
const { Record } = require('../helpers/record.js');
const { watched } = require('../helpers/threads.js');
const { ways } = require('../helpers/ways.js');

const RECORD_OFFSET = 64;

for (const way of ways) {
  test(
    `${way.name}: what the last holder wrote is seen whole`,
    watched(async (_, threads) => {
      const holds = way.blocks ? 1000 : 150;
      const buffer = new SharedArrayBuffer(BYTES);
      const mutex = new Mutex(buffer, OFFSET, { allowMainThread: true });
      const record = new Record(buffer, RECORD_OFFSET);
      const data = { buffer, mutexOffset: OFFSET, recordOffset: RECORD_OFFSET, way: way.name, holds };
      const workers = [threads.start('rewrites', data), threads.start('rewrites', data)];
      await Promise.all(workers.map((worker) => worker.started));
      let torn = 0;
      for (let hold = 0; hold < holds; hold++) {
        const rewrite = () => {
          if (!record.rewrite()) torn++;
        };
        const held = way.hold(mutex, rewrite, { timeout: 20_000 });
        if (!way.blocks) await held;
      }
      for (const worker of workers) torn += await worker.result;
      assert.equal(torn, 0);
      assert.equal(record.version, 3 * holds);
    }),
  );
}

test(
  'what a worker wrote before its end is seen by the next holder',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const mutex = new Mutex(buffer, OFFSET);
    const record = new Record(buffer, RECORD_OFFSET);
    const data = { buffer, mutexOffset: OFFSET, recordOffset: RECORD_OFFSET, way: 'lock', holds: 10 };
    const worker = threads.start('rewrites', data);
    await worker.exited;
    assert.equal(await mutex.lockAsync(), true);
    assert.equal(record.rewrite(), true);
    assert.equal(record.version, 11);
  }),
);
