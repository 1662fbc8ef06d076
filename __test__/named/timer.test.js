// Node's timers are early by up to a millisecond, and know no times beyond 2^31 - 1 ms.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { needs } = require('../helpers/runtime.js');
const { Timer } = require('../../lib/engine/timer.js');
const clock = require('../../lib/load/clock.js');

test(
  'a timer that is called before its time, as long ones are, starts again for what is left',
  needs('mocked timers'),
  (t) => {
    const calls = [];
    let now = 0;
    t.mock.method(clock, 'now', () => now);
    t.mock.method(clock, 'setTimeout', (call, ms) => {
      const made = { call, ms, keepsAlive: true };
      calls.push(made);
      return {
        unref() {
          made.keepsAlive = false;
          return this;
        },
      };
    });
    let isOver = false;
    new Timer(2 ** 31 + 5, () => {
      isOver = true;
    });
    for (const [at, left] of [
      [2 ** 31 - 1, 6],
      [2 ** 31 + 4.5, 1],
    ]) {
      now = at;
      calls.at(-1).call();
      assert.deepEqual([isOver, calls.at(-1).ms], [false, left]);
    }
    assert.equal(calls[0].ms, 2 ** 31 - 1);
    assert.ok(
      calls.every(({ keepsAlive }) => !keepsAlive),
      'the wait keeps the event loop alive, if anything',
    );
    now = 2 ** 31 + 5;
    calls.at(-1).call();
    assert.deepEqual([isOver, calls.length], [true, 3]);
  },
);

test('the clock of all time limits counts milliseconds, as performance.now() does', () => {
  const readings = () => [performance.now(), clock.now(), performance.now()];
  const [before, first, after] = readings();
  while (performance.now() < after + 20);
  const [laterBefore, last, laterAfter] = readings();
  const elapsed = last - first;
  assert.ok(elapsed > laterBefore - after - 0.1 && elapsed < laterAfter - before + 0.1, `${elapsed} ms`);
});
