// What a manager with a store waits for, it remembers no longer than that, however it ends: there is no server here.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding } = require('../../lib/engine/thread.js');
const { storeBackend } = require('../../lib/stores/outer.js');
const { redis } = require('../../lib/stores/redis.js');
const { watched } = require('../helpers/threads.js');

const OPTIONS = { mode: binding.NameMode.Exclusive, ref: true, fence: false };
const FOR_EVER = 60_000;

/** By how they end: what waits, and what it comes to, a value or a code. */
const ENDS = {
  'with an answer': [(outer) => outer.call('stats').then(({ grants }) => grants), 0],
  'with an error': [(outer) => outer.call('check'), 'ERR_LOCK_STORE'],
  'out of time': [(outer) => outer.lockAsync('name', OPTIONS, { timeout: 5, patience: FOR_EVER }).promise, null],
  cancelled: [
    (outer) => {
      const { promise, cancel } = outer.lockAsync('name', OPTIONS, { timeout: FOR_EVER, patience: FOR_EVER });
      cancel();
      return promise;
    },
    null,
  ],
  closed: [
    (outer) => {
      const { promise } = outer.lockAsync('name', OPTIONS, { timeout: FOR_EVER, patience: FOR_EVER });
      outer.close(false);
      return promise;
    },
    'ERR_LOCK_CLOSED',
  ],
};

for (const [index, [how, [ask, expected]]] of Object.entries(ENDS).entries()) {
  test(
    `a wait for a store that ends ${how} is forgotten`,
    watched(async (t) => {
      // Nobody listens there. A connection of its own, which is given up only if that is how it ends.
      const connectTimeout = expected === 'ERR_LOCK_STORE' ? 100 : FOR_EVER;
      const { outer } = storeBackend(redis(`redis://127.0.0.1:1/${index}`, { connectTimeout }));
      t.after(() => outer.close(false));
      // The thread that keeps the connections is there.
      assert.equal((await outer.call('stats')).grants, 0);
      assert.equal(await ask(outer).catch(({ code }) => code), expected);
      await outer.close(false);
      assert.deepEqual([outer.waits.size, outer.holds.size], [0, 0]);
    }),
  );
}
