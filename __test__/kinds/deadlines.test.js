// The clock ends a wait whose time is over, whatever its event loop does: what it kept from others they have by then.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const sablock = require('../..');
const { watched } = require('../helpers/threads.js');
const { BYTES } = require('../helpers/memory.js');
const WAYS = require('../helpers/late.js');

const DONE = 1;

/** Returns how a promise is settled: with a value, or with the code of what it is rejected with. */
const outcome = (promise) =>
  promise.then(
    (value) => value,
    ({ code }) => code,
  );

/** Their waits are those of the mutexes that they make. */
const OTHERS = ['LockTable'];

test('each class whose promises have a timeout has a row here', () => {
  const made = Object.values(WAYS).map(({ make }) => make(new SharedArrayBuffer(BYTES)));
  const inRows = made.flatMap((each) => (each.constructor === Object ? Object.values(each) : [each].flat()));
  const rows = new Set(inRows.map((each) => each.constructor.name));
  const hasTimeout = ({ prototype }) =>
    ['lockAsync', 'acquireAsync', 'waitAsync', 'exchangeAsync', 'run'].some((verb) => verb in prototype);
  const all = Object.values(sablock).filter((type) => type.prototype !== undefined && hasTimeout(type));
  const missing = all.filter(({ name }) => !rows.has(name) && !OTHERS.includes(name));
  assert.ok(all.length >= 11, 'these are too few');
  assert.deepEqual(missing, []);
});

for (const [way, { make, hold, late, ends, behind, gets, isOwn }] of Object.entries(WAYS)) {
  test(
    `${way}: another thread goes on at the deadline, though the loop of the wait is busy`,
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(BYTES);
      const made = make(buffer);
      const other = threads.start('behind', { buffer, way });
      await other.started;
      const held = await hold?.(made);
      const ended = outcome(late(made));
      // Several names are asked for one after the other, in microtasks.
      await new Promise(setImmediate);
      const result = other.call('go', DONE);
      const isDone = threads.spinUntilRaised(DONE);
      assert.equal(await ended, ends);
      assert.ok(isDone, 'the other thread waited for this loop');
      assert.equal(await result, gets);
      held?.unlock?.();
    }),
  );

  if (!isOwn) continue;
  test(
    `${way}: the thread itself goes on at the deadline, and hangs no longer`,
    watched(async () => {
      const made = make(new SharedArrayBuffer(BYTES));
      hold(made);
      const ended = outcome(late(made));
      assert.equal(behind(made), gets);
      assert.equal(await ended, ends);
    }),
  );
}
