// Whose turn it is between readers and writers, when holds are longer than a blocked thread sleeps at a time (25 ms).

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setTimeout: delay } = require('node:timers/promises');
const { createRwLock, rwPuppets } = require('../helpers/rwlock.js');
const { watched } = require('../helpers/threads.js');

const DONE = 1;
const SLICES_MS = 150;

/** Returns how often those who loop have been inside. */
const turnsIn = (buffer) => Array.from(new Int32Array(buffer, 0, 8)).reduce((sum, turns) => sum + turns);

/** Workers that lock, stay inside for these times and unlock, again and again, until `DONE`. */
const looping = async (threads, buffer, mode, holds) => {
  const puppets = await rwPuppets(threads, holds.length, buffer);
  const loops = puppets.map((puppet, index) => puppet.call('loop', mode, DONE, index, holds[index]));
  await threads.until('all have been inside', () => holds.every((_, index) => new Int32Array(buffer)[index] > 0));
  return loops;
};

for (const [kind, holds] of Object.entries({
  'three readers of 120 ms': [110, 120, 130],
  'eight readers of 40 ms': [36, 37, 38, 39, 40, 41, 42, 43],
})) {
  test(
    `${kind} whose holds overlap: a writer that blocks, and one that awaits, get in after those that are inside`,
    watched(async (_, threads) => {
      const { buffer, rw } = createRwLock();
      const [writer] = await rwPuppets(threads, 1, buffer);
      const loops = await looping(threads, buffer, 'read', holds);
      const isQueued = () => rw.inspect().waiters.some(({ mode }) => mode === 'exclusive');
      for (let round = 0; round < 3; round++) {
        for (const [lock, unlock] of [
          [() => writer.run([['write.lock']]), () => writer.run([['write.unlock']])],
          [() => rw.write.lockAsync(), () => rw.write.unlock()],
        ]) {
          let isIn = false;
          const locked = lock().then(() => {
            isIn = true;
          });
          await threads.until('the writer waits, or is in', () => isIn || isQueued());
          const before = turnsIn(buffer);
          await locked;
          // A loop's write is offered the lock first, so that readers may pass it once.
          const turns = turnsIn(buffer) - before;
          await unlock();
          assert.ok(turns <= 3 * holds.length, `${turns} readers came before the writer`);
        }
      }
      threads.raise(DONE);
      await Promise.all(loops);
    }),
  );
}

test(
  'a worker that writes for 30 ms, again and again: the read of a loop gets in between',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const loops = await looping(threads, buffer, 'write', [30]);
    for (let round = 0; round < 5; round++) {
      const before = turnsIn(buffer);
      await rw.read.lockAsync();
      const turns = turnsIn(buffer) - before;
      rw.read.unlock();
      // Three, unless this machine has so much else to do that the loop comes too late for the time that the lock is kept.
      assert.ok(turns <= 25, `${turns} turns of the writer`);
    }
    threads.raise(DONE);
    await Promise.all(loops);
  }),
);

test(
  'a stalled loop that was offered the lock to write, and does not come, holds up no reader',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [stalled, blocked, awaiting] = await rwPuppets(threads, 3, buffer);
    rw.read.tryLock();
    const stall = stalled.run([
      ['pend', 'write', 'lockAsync'],
      ['waitForFlag', DONE],
    ]);
    await threads.queued(rw, 1);
    rw.read.unlock();
    assert.equal(rw.read.tryLock(), false, 'free, and offered');
    assert.equal(await rw.read.lockAsync(), true, 'who would wait goes in');
    assert.equal(rw.write.tryLock(), false, 'now whoever comes has to look at the queue');
    assert.equal(await awaiting.call('read.lockAsync'), true);
    assert.equal(await blocked.call('read.lock'), true);
    assert.equal(rw.readers, 3);
    threads.raise(DONE);
    await stall;
    rw.read.unlock();
    await Promise.all([blocked.call('read.unlock'), awaiting.call('read.unlock')]);
    await threads.until('the stalled loop writes', () => rw.isWriteLocked);
  }),
);

test(
  'after downgrade() a reader that came behind a writer waits for it, slice after slice',
  watched(async (_, threads) => {
    const { buffer, rw } = createRwLock();
    const [holder, first, last] = await rwPuppets(threads, 3, buffer);
    await holder.call('write.lock');
    const read = first.call('read.lock');
    await threads.queued(rw, 1);
    const written = rw.write.lockAsync();
    await threads.queued(rw, 2);
    const readLast = last.call('read.lock');
    await threads.queued(rw, 3);
    await holder.call('downgrade');
    assert.equal(await read, true);
    await delay(SLICES_MS);
    assert.equal(rw.readers, 2);
    assert.equal(rw.inspect().waiters.length, 2);
    await first.call('read.unlock');
    await delay(SLICES_MS);
    assert.equal(rw.readers, 1);
    // The lock is offered to this loop; the reader may go first, since the loop does not come at once.
    await holder.call('read.unlock');
    await Promise.all([written.then(() => rw.write.unlock()), readLast.then(() => last.call('read.unlock'))]);
    assert.equal(rw.readers, 0);
  }),
);
