'use strict';
// How two threads take turns without the lock that is measured: words in shared memory that only grow.

const { performance } = require('node:perf_hooks');

const TURN = 0;
const WAITING = 1;
const DONE = 2;

const newTurns = () => new Int32Array(new SharedArrayBuffer(12));

/** Blocks this thread until the word has reached `turn`. */
function await_(turns, word, turn) {
  for (;;) {
    const seen = Atomics.load(turns, word);
    if (seen >= turn) return;
    Atomics.wait(turns, word, seen);
  }
}

/**
 * Keeps this thread running until the word has reached `turn`, 1 ms at most. A giver that went to sleep at once would
 * leave its core to the waiter, which then starts ten times sooner, or not, as the scheduler likes.
 */
function stayAwake(turns, word, turn) {
  const end = performance.now() + 1;
  while (Atomics.load(turns, word) < turn && performance.now() < end);
}

/** The same as await_ for an event loop. */
async function awaitAsync(turns, word, turn) {
  for (;;) {
    const seen = Atomics.load(turns, word);
    if (seen >= turn) return;
    const wait = Atomics.waitAsync(turns, word, seen);
    if (wait.async) await wait.value;
  }
}

function announce(turns, word, turn) {
  Atomics.store(turns, word, turn);
  Atomics.notify(turns, word);
}

module.exports = { TURN, WAITING, DONE, newTurns, await_, awaitAsync, stayAwake, announce };
