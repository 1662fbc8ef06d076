'use strict';
// The other side of the futex scenario, one turn after the other: a sleeper waits for the word to change and stamps the
// moment at which it goes on, a giver changes it, stamps and notifies.

const { join } = require('../lib/crew');
const { busyFor, sharedNs } = require('../lib/clock');
const { loadFace } = require('../lib/faces');
const { pin } = require('../lib/pin');
const { TURN, WAITING, DONE, GIVEN, TAKEN, ASLEEP_µS, await_, stayAwake, announce } = require('../lib/turns');

const ROLES = {
  sleeper(face, { turns, stamps, count, word }) {
    for (let turn = 1; turn <= count; turn++) {
      await_(turns, TURN, turn);
      announce(turns, WAITING, turn);
      while (Atomics.load(word, 0) < turn) face.wait(word, 0, turn - 1);
      stamps[TAKEN + 2 * turn] = sharedNs();
      announce(turns, DONE, turn);
    }
  },

  giver(face, { turns, stamps, count, word }) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      announce(turns, TURN, turn);
      await_(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      Atomics.store(word, 0, turn);
      face.notify(word, 0, 1);
      stayAwake(turns, DONE, turn);
      await_(turns, DONE, turn);
    }
  },
};

join((_, data) => {
  pin(data.core);
  const face = loadFace(data.face);
  return () => {
    ROLES[data.role](face, data);
    return true;
  };
});
