// The choice of the lock worker that serves a thread. The binding, and the start of one, are the test.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads');

const [THREAD, WORKER, OWNER] = ['engine/thread.js', 'engine/lock-worker.js', 'stores/owner.js'].map((name) =>
  require.resolve(`../../lib/${name}`),
);
const INHERITED = 'sablock:desk';

/** The desk of a thread: `ofMain` is that of main, -1: none; `states` are those of desks. `log` has what was begun. */
function create(t, { isMainThread, ofMain = -1, states = {}, inherited }) {
  const log = [];
  const thread = { deskNumber: -1 };
  const binding = {
    mainDesk: () => ofMain,
    deskState: (desk) => states[desk] ?? -1,
    openDesk(isOfMain) {
      log.push(`open ${isOfMain}`);
      states[9] = 0;
      return 9;
    },
  };
  require(OWNER);
  const [of, by] = [THREAD, WORKER].map((file) => require.cache[file].exports);
  require.cache[THREAD].exports = { binding, isMainThread, thread };
  require.cache[WORKER].exports = {
    start: (desk) => log.push(`start ${desk}`),
    startDue: () => log.push('start what is due'),
  };
  delete require.cache[OWNER];
  const { deskOfThread } = require(OWNER);
  require.cache[THREAD].exports = of;
  require.cache[WORKER].exports = by;
  delete require.cache[OWNER];
  setEnvironmentData(INHERITED, inherited);
  t.after(() => setEnvironmentData(INHERITED, undefined));
  return { deskOfThread, log, states, thread };
}

/** Threads, and their desk: what is begun for it, and what the threads that they start inherit. */
const THREADS = {
  'main opens one, and starts it': [{ isMainThread: true }, 9, ['open true', 'start 9'], undefined],
  'main has one, which another thread has asked for: it starts it': [
    { isMainThread: true, ofMain: 4, states: { 4: 0 } },
    4,
    ['start what is due'],
    undefined,
  ],
  'another thread has that of main, whatever it has inherited': [
    { isMainThread: false, ofMain: 4, states: { 4: 0, 5: 1 }, inherited: 5 },
    4,
    [],
    5,
  ],
  'a thread has the one that its starter has': [{ isMainThread: false, states: { 5: 0 }, inherited: 5 }, 5, [], 5],
  'a thread whose starter has one that has ended starts its own, which its threads inherit': [
    { isMainThread: false, states: { 5: -1 }, inherited: 5 },
    9,
    ['open false', 'start 9'],
    9,
  ],
  'a thread that has none starts its own, which its threads inherit': [
    { isMainThread: false },
    9,
    ['open false', 'start 9'],
    9,
  ],
  'what somebody else has put there is no desk': [
    { isMainThread: false, inherited: '5', states: { 5: 1 } },
    9,
    ['open false', 'start 9'],
    9,
  ],
  'main inherits none': [{ isMainThread: true, inherited: 5, states: { 5: 1 } }, 9, ['open true', 'start 9'], 5],
};

for (const [what, [given, desk, begun, inherited]] of Object.entries(THREADS)) {
  test(what, (t) => {
    const { deskOfThread, log, states, thread } = create(t, given);
    states[desk] ??= 0;
    assert.equal(deskOfThread(), desk);
    assert.deepEqual([log, getEnvironmentData(INHERITED), thread.deskNumber], [begun, inherited, desk]);
    // It keeps that one until it has ended.
    assert.equal(deskOfThread(), desk);
    assert.equal(log.length, begun.length);
    states[desk] = -1;
    deskOfThread();
    const isOfMain = !given.isMainThread && given.ofMain >= 0;
    assert.equal(log.length > begun.length, !isOfMain, 'main starts its own');
  });
}
