'use strict';
// One party of a barrier, for so many rounds after a quarter as many that warm up; or, of the limits, one of two threads that wake each other in turn.

const { join } = require('../lib/workers');
const { pin, sharedNs } = require('../lib/clock');
const { waitingFunctions } = require('../lib/wakeups');

/** Each party says in a word of its own which round it has come to, and looks after the barrier whether the others have. */
const LINE = 16;

function party(barrier, { arrivals, parties, index }) {
  const words = Array.from({ length: parties }, (_, i) => LINE * i);
  return (from, to) => {
    let lasts = 0;
    let early = 0;
    for (let round = from + 1; round <= to; round++) {
      arrivals[LINE * index] = round;
      if (barrier.wait()) lasts++;
      for (const word of words) if (arrivals[word] < round) early++;
    }
    return { lasts, early };
  };
}

/** The word grows by one with each handover; this thread's are the even ones, or the odd ones. */
function handovers({ wait, notify }, word, index) {
  return (from, to) => {
    for (let mine = 2 * from + index; mine < 2 * to; mine += 2) {
      for (let seen = Atomics.load(word, 0); seen < mine; seen = Atomics.load(word, 0)) wait(word, 0, seen);
      Atomics.store(word, 0, mine + 1);
      notify(word, 0, 1);
    }
    return { lasts: index === 0 ? to - from : 0, early: 0 };
  };
}

join((contender, data) => {
  const { functions, word, memory, parties, rounds, index, core } = data;
  if (core !== undefined) pin(core);
  const loop = contender
    ? party(contender.barrier.open(memory, parties), data)
    : handovers(waitingFunctions(functions), word, index);
  return () => {
    const before = rounds / 4;
    const { early } = loop(0, before);
    const start = sharedNs();
    const result = loop(before, before + rounds);
    return { ...result, early: early + result.early, start, end: sharedNs() };
  };
});
