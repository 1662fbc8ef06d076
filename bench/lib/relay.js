'use strict';
// One thread gives, another that is asleep by then gets, turn after turn: how long that takes. Giver and waiter are
// pinned to two cores: the first worker to core 0, the second worker or main to core 1. What is given is a pass: a lock,
// a notification, or a wake of main's loop. The turns themselves go by Atomics.

const { performance } = require('node:perf_hooks');
const { busyFor, pin, sharedNs, unpin } = require('./clock');
const { byName } = require('./contenders');
const { waitingFunctions, wakerOf } = require('./wakeups');
const { WorkerGroup } = require('./workers');

// Two threads take turns without the lock that is measured: words in shared memory that only grow.

/** The turn that may begin: the giver has what it will give. */
const TURN = 0;
/** The last turn whose waiter is about to wait. */
const WAITING = 1;
/** The last turn whose waiter is through, before which the giver must not come back. */
const DONE = 2;

const newTurns = () => new Int32Array(new SharedArrayBuffer(12));

/** Blocks this thread until the word has reached `turn`. */
function awaitTurn(turns, word, turn) {
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

/** The same as awaitTurn for an event loop. */
async function awaitTurnAsync(turns, word, turn) {
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

// A pass is made anew in each thread, of data that can be posted, and has as many of these as it needs:
//   hold()         the giver, before the waiter comes: gets what it will give (on main it returns a promise)
//   give(turn)     the giver
//   wait(turn)     a worker that waits: blocks until it is given
//   next(turn)     main's loop that waits: begins to wait, returns a promise
//   leave()        the waiter, when it has it

function lock({ contender, memory, data, isMain }) {
  const own = byName(contender).open(memory, 0);
  const inside = () => {
    data[0]++;
  };
  return {
    hold() {
      if (isMain) return own.lockAsync().then(inside);
      own.lock();
      inside();
    },
    give: () => own.unlock(),
    wait: () => own.lock(),
    next: () => own.lockAsync(),
    leave() {
      inside();
      own.unlock();
    },
  };
}

function notification({ functions, word }) {
  const { wait, notify, waitAsync } = waitingFunctions(functions);
  return {
    give(turn) {
      Atomics.store(word, 0, turn);
      notify(word, 0, 1);
    },
    wait(turn) {
      while (Atomics.load(word, 0) < turn) wait(word, 0, turn - 1);
    },
    next: (turn) => waitAsync(word, 0, turn - 1).value,
  };
}

/** The waiting side is main's own, since it has the waiter. */
function wake({ waker, waiter }) {
  return { give: wakerOf(waker), next: () => waiter.next() };
}

const PASSES = { lock, notification, wake };

/** `pass`: `{ kind, ... }` and what that kind needs; of the lock, a contender's name, as its package is loaded by then. */
const openPass = (pass, isMain) => PASSES[pass.kind]({ ...pass, isMain });

/**
 * Just before the giver gave, and when the waiter had it, on the clock of all threads.
 * The stamps of turn n: stamps[GIVEN + 2n], stamps[TAKEN + 2n].
 */
const GIVEN = 0;
const TAKEN = 1;

/** The time that a giver waits so that the other side is surely asleep; beyond any lock's spinning. */
const ASLEEP_µS = 300;

/** The part of a worker, and of main where a loop takes part. */
const ROLES = {
  giver({ turns, stamps, count }, pass) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      pass.hold?.();
      announce(turns, TURN, turn);
      awaitTurn(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      pass.give(turn);
      stayAwake(turns, DONE, turn);
      awaitTurn(turns, DONE, turn);
    }
  },

  waiter({ turns, stamps, count }, pass) {
    for (let turn = 1; turn <= count; turn++) {
      awaitTurn(turns, TURN, turn);
      announce(turns, WAITING, turn);
      pass.wait(turn);
      stamps[TAKEN + 2 * turn] = sharedNs();
      pass.leave?.();
      announce(turns, DONE, turn);
    }
  },

  async mainGives({ turns, stamps, count }, pass) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      await pass.hold?.();
      announce(turns, TURN, turn);
      await awaitTurnAsync(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      pass.give(turn);
      stayAwake(turns, DONE, turn);
      await awaitTurnAsync(turns, DONE, turn);
    }
  },

  async mainWaits({ turns, stamps, count }, pass) {
    for (let turn = 1; turn <= count; turn++) {
      await awaitTurnAsync(turns, TURN, turn);
      const got = pass.next(turn);
      announce(turns, WAITING, turn);
      await got;
      stamps[TAKEN + 2 * turn] = sharedNs();
      pass.leave?.();
      announce(turns, DONE, turn);
    }
  },
};

const WAYS = {
  'worker to worker': { workers: ['giver', 'waiter'] },
  'worker to loop': { workers: ['giver'], main: 'mainWaits' },
  'loop to worker': { workers: ['waiter'], main: 'mainGives' },
};

/** Returns the time that each turn took, in nanoseconds. */
function latencies({ stamps, count }) {
  const samples = [];
  for (let turn = 1; turn <= count; turn++) samples.push(stamps[TAKEN + 2 * turn] - stamps[GIVEN + 2 * turn]);
  return samples;
}

/** `pass`: posted to the workers; `own`: what only main has of it; `contender`: whose package the workers load. */
async function relay({ way, count }, pass, { contender = null, own = {} } = {}) {
  const { workers, main } = WAYS[way];
  const shared = { turns: newTurns(), stamps: new Float64Array(new SharedArrayBuffer(16 * (count + 1))), count };
  const group = await WorkerGroup.start(workers.length, 'relay.js', contender, (i) => ({
    ...shared,
    pass,
    role: workers[i],
    core: i,
  }));
  if (main) pin(1);
  group.go();
  if (main) await ROLES[main](shared, openPass({ ...pass, ...own }, true));
  await group.results();
  if (main) unpin();
  await group.end();
  const samples = latencies(shared);
  const early = samples.filter((ns) => ns < 0).length;
  return { samples, wrong: early ? `${early} waiters had it before it was given to them` : undefined };
}

const newWord = () => new Int32Array(new SharedArrayBuffer(4));

/** The wake-ups that these `wait`, `notify` and `waitAsync` make; see wakeups.js. */
function notifications(functions, params) {
  waitingFunctions(functions); // If there is none, this is the place to say so, not a worker.
  return relay(params, { kind: 'notification', functions, word: newWord() });
}

/** The wake-ups that a bare futex makes; a loop has none. */
const futexWakes = (params) => (params.way === 'worker to loop' ? null : notifications('futex', params));

/** The wake-ups of main's loop by a `Waiter` of wakeups.js. */
async function loopWakes(Waiter, params) {
  if (params.way !== 'worker to loop') return null;
  const waiter = new Waiter();
  const result = await relay(params, { kind: 'wake', waker: waiter.words }, { own: { waiter } });
  waiter.close();
  return result;
}

module.exports = { WAYS, ROLES, openPass, relay, newWord, notifications, futexWakes, loopWakes };
