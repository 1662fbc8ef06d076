// sablock:long-hold, of one holder after the other while a thread waits: each begins anew. The waiting thread's clock is the test's.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { watched } = require('../helpers/threads.js');

const LONG = 'sablock:long-hold';
/** Indices of the shared memory behind the mutex: the time, and how often it was read. */
const [TIME, READS] = [4, 5];

/** Gives this thread that clock, and collects what it publishes. */
const prepare = (here, channel, time, reads) => {
  const cells = new Int32Array(here.buffer);
  here.require('../../lib/load/clock.js').now = () => {
    Atomics.add(cells, reads, 1);
    return Atomics.load(cells, time);
  };
  here.heard = [];
  here.require('node:diagnostics_channel').subscribe(channel, ({ ownerThreadId, heldAtLeastMs }) => {
    here.heard.push([ownerThreadId, heldAtLeastMs]);
  });
};

/** The waits; nobody comes after them. */
const WAITS = {
  lock: (here) => new here.sablock.Mutex(here.buffer).lock(),
  lockAsync: (here) => new here.sablock.Mutex(here.buffer).lockAsync(),
  lockAll: (here) => void here.sablock.lockAll([new here.sablock.Mutex(here.buffer)]),
  lockAllAsync: (here) => here.sablock.lockAllAsync([new here.sablock.Mutex(here.buffer)]).then(() => {}),
};
const lock = (here) => {
  here.mutex = new here.sablock.Mutex(here.buffer);
  here.mutex.lock();
};

for (const [verb, wait] of Object.entries(WAITS)) {
  test(
    `${verb}() behind holds that are long one after the other publishes each from 100 ms on`,
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(64);
      const cells = new Int32Array(buffer);
      const mutex = new Mutex(buffer);
      const holders = await startActors(threads, 3, buffer);
      const [waiter] = await startActors(threads, 1, buffer, { prepare }, LONG, TIME, READS);
      // All of them block: then each is handed the mutex in its turn.
      const taken = [];
      for (const [index, holder] of holders.entries()) {
        taken.push(holder.do(lock));
        await (index === 0 ? taken[0] : threads.queued(mutex, index));
      }
      const waiting = waiter.do(wait);
      await threads.queued(mutex, holders.length);
      /** So much time goes by, and the waiting thread has seen who holds it then. */
      const pass = async (ms) => {
        Atomics.add(cells, TIME, ms);
        const reads = Atomics.load(cells, READS);
        // It is counted before it is read; what comes of a look is done when the next begins.
        await threads.until('the waiting thread has looked', () => Atomics.load(cells, READS) >= reads + 2);
      };
      // The begin of a wait reads the clock several times too, more often under the doctor: until these are over nothing goes by.
      for (let look = 0; look < 4; look++) await pass(0);
      const expected = [];
      for (const [index, holder] of holders.entries()) {
        await taken[index];
        // Messages come with 100 and 200 ms, and the next would with 400.
        for (const ms of [0, 99, 1, 100]) await pass(ms);
        expected.push([holder.threadId, 100], [holder.threadId, 200]);
        await holder.do((here) => here.mutex.unlock());
      }
      await waiting;
      assert.deepEqual(await waiter.do((here) => here.heard), expected);
    }),
  );
}
