// A call that lets another thread go on cannot be undone: it fails for want of stack before that, or not at all.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Barrier, Exchanger } = require('../..');
const { limit } = require('../helpers/limits.js');
const { needs } = require('../helpers/runtime.js');

const OPTIONS = { allowMainThread: true };
/** Frames of so many sizes. */
const SIZES = 16;
const MOST_FRAMES = 3000;
/** The number of calls that pass, after which those further from the end do too. */
const ENOUGH = 4;

const KINDS = {
  'the last party of a barrier': {
    make: () => new Barrier(new SharedArrayBuffer(Barrier.BYTES), 0, 2, OPTIONS),
    first: (barrier, signal) => barrier.waitAsync({ signal }),
    blocks: (barrier) => barrier.wait(),
    awaits: (barrier) => barrier.waitAsync(),
  },
  'the second of an exchange': {
    make: () => new Exchanger(new SharedArrayBuffer(Exchanger.BYTES), 0, OPTIONS),
    first: (exchanger, signal) => exchanger.exchangeAsync(1, { signal }),
    blocks: (exchanger) => exchanger.exchange(2),
    awaits: (exchanger) => exchanger.exchangeAsync(2),
  },
};

/** Runs `call` so many frames before the end of the stack, which have so many arguments; returns its error, or null. */
function atTheEnd(depth, size, call) {
  let left = depth;
  let error = null;
  const dive = (...args) => {
    try {
      dive(...args);
    } catch {
      // The end of the stack.
    }
    if (left-- !== 0) return;
    try {
      call();
    } catch (thrown) {
      error = thrown;
    }
  };
  dive(...new Array(size).fill(0));
  return error;
}

for (const [who, { make, first, blocks, awaits }] of Object.entries(KINDS)) {
  for (const [form, call] of [
    ['blocks', blocks],
    ['awaits', awaits],
  ]) {
    test(`${who} that ${form} at the end of the stack passes, or fails and leaves the other waiting`, {
      timeout: limit(120_000),
      ...needs('stack ends'),
    }, async () => {
      // Loading what is first used needs more stack.
      const warm = make();
      await Promise.all([first(warm), call(warm)]);
      for (let size = 0; size < SIZES; size++) {
        let passed = 0;
        for (let depth = 0; passed < ENOUGH; depth++) {
          assert.ok(depth < MOST_FRAMES);
          const place = make();
          const giveUp = new AbortController();
          const other = first(place, giveUp.signal).then(
            () => 'passed',
            () => 'gave up',
          );
          let promise = null;
          let error = atTheEnd(depth, size, () => {
            promise = call(place);
          });
          if (promise instanceof Promise)
            error = await promise.then(
              () => null,
              (reason) => reason,
            );
          if (error === null) {
            passed += 1;
          } else {
            assert.ok(error instanceof RangeError, String(error));
            giveUp.abort();
          }
          const expected = error === null ? 'passed' : 'gave up';
          assert.equal(await other, expected, `${depth} frames with ${size} arguments before the end`);
        }
      }
    });
  }
}
