// The binding itself, as `lib` calls it: the tests of `__test__/binding`.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding, thread } = require('../../lib/engine/thread.js');
const { BYTES, OFFSET } = require('./memory.js');

/** The names of the enums' numbers, for messages. */
exports.asks = Object.getOwnPropertyNames(binding.Ask);

const STATUSES = [
  'TIMED_OUT',
  'GRANTED',
  'GRANTED_ABANDONED',
  'DEADLOCK',
  'CORRUPT',
  'INTERRUPTED',
  'NO_CLOCK',
  'NOT_OWNER',
  'RELEASED',
  'REFUSED',
  'PENDING',
  'FAILED',
  'AWAY',
  'LOST',
  'REMOVED',
  'HERE',
  'NOTHING',
  'SLEPT',
];

/** The name of a status. */
exports.named = (status) => STATUSES.find((name) => binding[name] === status) ?? status;

/** Takes what is settled in this thread for whoever asks `settled()`, and no longer for `lib`. */
exports.listen = () => {
  thread.drain = () => {};
};

/** The status of this thread's next wait that is over, once there is one, and its token. */
exports.settled = async () => {
  for (;;) {
    const status = binding.next();
    if (status >= 0) return [exports.named(status), exports.record('Token')];
    if (status === binding.SLEPT) binding.turned();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};

/** Returns what the last call has noted. */
exports.record = (field, further = 0) => thread.record[binding.Field[field] + further];

/** The thread that holds the word of a mutex; null if none does. */
exports.ownerOf = (word) => {
  binding.hold(word);
  const holder = exports.record('Holder');
  return holder < 0 ? null : holder;
};

/** Nothing of this thread is settled, or waits to be. */
exports.isIdle = () => binding.next() === binding.NOTHING && binding.nextLost() === -1;

/** The core knows words and slots by their addresses, until the thread ends: none comes twice. */
const kept = [];
exports.newWords = () => {
  kept.push(new Int32Array(new SharedArrayBuffer(BYTES), OFFSET, 2));
  return kept.at(-1);
};

/** Returns what goes back beside a wait whose time is over: nothing but this. */
exports.asBeside = (some = {}) => ({ requests: [], reports: [], outer: [], ...some });

/** A table by the names of what can be asked: a row for each. */
exports.testRows = (rows) =>
  test('each ask has a row', () => assert.deepEqual(Object.keys(rows).sort(), [...exports.asks].sort()));
