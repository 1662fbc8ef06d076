const assert = require('node:assert/strict');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const { Mutex, inspectAll } = require('../..');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const byOffset = (all) => all.sort((a, b) => a.byteOffset - b.byteOffset);

test('inspectAll() shows nothing where nobody waits, held or not', () => {
  const { mutex } = createMutex();
  mutex.tryLock();
  assert.deepEqual(inspectAll(), []);
  mutex.unlock();
});

test(
  'inspectAll() shows each mutex that somebody waits for, in whatever thread, as inspect() does',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const other = new Mutex(buffer, OFFSET + 4, { name: 'the other' });
    const elsewhere = new Mutex(new SharedArrayBuffer(OFFSET + 12), OFFSET + 8);
    const [blocking, awaiting] = await threads.puppets(2, buffer);
    for (const held of [mutex, other, elsewhere]) held.tryLock();
    const waits = [
      elsewhere.lockAsync(),
      blocking.run([['lock'], ['unlock']]),
      awaiting.run([
        [OFFSET + 4, 'lockAsync'],
        [OFFSET + 4, 'unlock'],
      ]),
    ];
    for (const held of [mutex, other, elsewhere]) await threads.queued(held, 1);

    const all = byOffset(inspectAll());
    const expected = [mutex, other, elsewhere].map((held) => ({ ...held.inspect(), byteOffset: held.byteOffset }));
    for (const { waiters } of [...all, ...expected]) for (const waiter of waiters) delete waiter.waitedMs;
    assert.deepEqual(all, expected);
    assert.deepEqual(
      all.map(({ name, waiters }) => [name, waiters[0].threadId, waiters[0].kind]),
      [
        [null, blocking.threadId, 'blocking'],
        ['the other', awaiting.threadId, 'async'],
        [null, threadId, 'async'],
      ],
    );
    assert.deepEqual(all[0].holders, [{ threadId, mode: 'exclusive', count: 1 }]);

    for (const held of [mutex, other, elsewhere]) held.unlock();
    await Promise.all(waits);
    elsewhere.unlock();
    assert.deepEqual(inspectAll(), []);
  }),
);

test(
  'inspectAll() gives whole snapshots while locks change hands',
  watched(async (_, threads) => {
    const { buffer } = createMutex();
    const workers = await threads.puppets(2, buffer);
    const running = workers.map((worker) => worker.call('holdAgainAndAgain', 0));
    const ids = workers.map((worker) => worker.threadId);
    let seen = 0;
    for (let count = 0; count < 2000 || seen === 0; count++) {
      for (const { byteOffset, holders, waiters } of inspectAll()) {
        seen += 1;
        assert.equal(byteOffset, OFFSET);
        assert.ok(holders.every((holder) => ids.includes(holder.threadId)));
        assert.ok(waiters.length > 0 && waiters.every((waiter) => ids.includes(waiter.threadId)));
      }
      if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    threads.raise(0);
    await Promise.all(running);
  }),
);
