'use strict';
// One thread gives, another that is asleep by then gets, turn after turn: how long that takes. Giver and waiter are
// pinned to two cores: the first worker to core 0, the second worker or main to core 1. What is given is a pass (see
// passes.js); the turns themselves go by Atomics.
//
// Words of `turns`: TURN, the turn that may begin (the giver has what it will give); WAITING, the last turn whose waiter
// is about to wait; DONE, the last turn whose waiter is through, before which the giver must not come back.
// `stamps`: just before the giver gave (GIVEN) and when the waiter had it (TAKEN), on the clock of all threads.

const { busyFor, sharedNs } = require('./clock');
const { Crew } = require('./crew');
const { loadFace } = require('./faces');
const { openPass } = require('./passes');
const { pin, unpin } = require('./pin');
const { TURN, WAITING, DONE, await_, awaitAsync, stayAwake, announce, newTurns } = require('./turns');

/** Of turn n: stamps[GIVEN + 2n], stamps[TAKEN + 2n]. */
const GIVEN = 0;
const TAKEN = 1;

/** How long a giver waits so that the other side is surely asleep; beyond any lock's spinning. */
const ASLEEP_µS = 300;

/** What a worker does, and what main does where a loop takes part. */
const ROLES = {
  giver({ turns, stamps, count }, pass) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      pass.hold?.();
      announce(turns, TURN, turn);
      await_(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      pass.give(turn);
      stayAwake(turns, DONE, turn);
      await_(turns, DONE, turn);
    }
  },

  waiter({ turns, stamps, count }, pass) {
    for (let turn = 1; turn <= count; turn++) {
      await_(turns, TURN, turn);
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
      await awaitAsync(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      pass.give(turn);
      stayAwake(turns, DONE, turn);
      await awaitAsync(turns, DONE, turn);
    }
  },

  async mainWaits({ turns, stamps, count }, pass) {
    for (let turn = 1; turn <= count; turn++) {
      await awaitAsync(turns, TURN, turn);
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

/** What each turn took, in nanoseconds. */
function latencies({ stamps, count }) {
  const samples = [];
  for (let turn = 1; turn <= count; turn++) samples.push(stamps[TAKEN + 2 * turn] - stamps[GIVEN + 2 * turn]);
  return samples;
}

/** `pass`: posted to the workers; `own`: what only main has of it; `contender`: whose package the workers load. */
async function relay({ way, count }, pass, { contender = null, own = {} } = {}) {
  const { workers, main } = WAYS[way];
  const shared = { turns: newTurns(), stamps: new Float64Array(new SharedArrayBuffer(16 * (count + 1))), count };
  const crew = await Crew.start(workers.length, 'relay.js', contender, (i) => ({
    ...shared,
    pass,
    role: workers[i],
    core: i,
  }));
  if (main) pin(1);
  crew.go();
  if (main) await ROLES[main](shared, openPass({ ...pass, ...own }, true));
  await crew.results();
  if (main) unpin();
  await crew.end();
  const samples = latencies(shared);
  const early = samples.filter((ns) => ns < 0).length;
  return { samples, wrong: early ? `${early} waiters had it before it was given to them` : undefined };
}

const newWord = () => new Int32Array(new SharedArrayBuffer(4));

/** The wake-ups that a face of wait, notify and waitAsync makes; see faces.js. */
function notifications(face, params) {
  loadFace(face); // If there is none, this is the place to say so, not a worker.
  return relay(params, { kind: 'notification', face, word: newWord() });
}

/** The wake-ups that a bare futex makes; a loop has none. */
const futexWakes = (params) => (params.way === 'worker to loop' ? null : notifications('futex', params));

/** The wake-ups of main's loop by a `Waiter` of bare.js. */
async function loopWakes(Waiter, params) {
  if (params.way !== 'worker to loop') return null;
  const waiter = new Waiter();
  const result = await relay(params, { kind: 'wake', waker: waiter.words }, { own: { waiter } });
  waiter.close();
  return result;
}

module.exports = { WAYS, ROLES, relay, newWord, notifications, futexWakes, loopWakes };
