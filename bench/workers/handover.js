'use strict';
// The other side of the handover scenario, in one of these roles, one turn after the other:
//   sleeper         blocks in lock() while the giver holds, and stamps the moment at which it has the lock
//   giver           holds the lock while the others wait for it, stamps, and unlocks
//   futexSleeper    as sleeper, futexGiver as giver, with a bare futex
//   wakeGiver       as giver, with a bare wake of main's loop
//
// Words of `turns`: TURN, the turn that may begin (the giver holds); WAITING, the last turn whose waiter is about to
// wait; DONE, the last turn whose waiter has let go again, before which the giver must not come back.
// `stamps`: when the giver let go (GIVEN) and when the waiter had it (TAKEN), on the clock of all threads.

const { join } = require('../lib/crew');
const { busyFor, sharedNs } = require('../lib/clock');
const { futexWait, futexWake, wakeLoop } = require('../lib/bare');
const { pin } = require('../lib/pin');
const { TURN, WAITING, DONE, GIVEN, TAKEN, ASLEEP_µS, await_, stayAwake, announce } = require('../lib/turns');

const ROLES = {
  sleeper(lock, { turns, stamps, count, data }) {
    for (let turn = 1; turn <= count; turn++) {
      await_(turns, TURN, turn);
      announce(turns, WAITING, turn);
      lock.lock();
      stamps[TAKEN + 2 * turn] = sharedNs();
      data[0]++;
      lock.unlock();
      announce(turns, DONE, turn);
    }
  },

  giver(lock, { turns, stamps, count, data }) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      lock.lock();
      data[0]++;
      announce(turns, TURN, turn);
      await_(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      lock.unlock();
      stayAwake(turns, DONE, turn);
      await_(turns, DONE, turn);
    }
  },

  futexSleeper(_, { turns, stamps, count, word }) {
    for (let turn = 1; turn <= count; turn++) {
      await_(turns, TURN, turn);
      announce(turns, WAITING, turn);
      while (Atomics.load(word, 0) < turn) futexWait(word, 0, turn - 1);
      stamps[TAKEN + 2 * turn] = sharedNs();
      announce(turns, DONE, turn);
    }
  },

  futexGiver(_, { turns, stamps, count, word }) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      announce(turns, TURN, turn);
      await_(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      Atomics.store(word, 0, turn);
      futexWake(word, 0);
      stayAwake(turns, DONE, turn);
      await_(turns, DONE, turn);
    }
  },

  wakeGiver(_, { turns, stamps, count, waker }) {
    const settle = busyFor(ASLEEP_µS);
    for (let turn = 1; turn <= count; turn++) {
      announce(turns, TURN, turn);
      await_(turns, WAITING, turn);
      settle();
      stamps[GIVEN + 2 * turn] = sharedNs();
      wakeLoop(waker);
      stayAwake(turns, DONE, turn);
      await_(turns, DONE, turn);
    }
  },
};

join((contender, data) => {
  pin(data.core);
  const lock = contender?.open(data.memory, 0);
  return () => {
    ROLES[data.role](lock, data);
    return true;
  };
});
