// Waits and notifies as the test tells it, step by step: `[verb, ...arguments]`.

const { loadFace } = require('../conformance/faces.js');
const { data, doing, isRaised, takeSteps, waysToEnd } = require('../helpers/inside.js');

const face = loadFace(data.face);

const actions = {
  /** Waits, and writes down in shared memory that it was woken: the log's first element counts the entries. */
  waitAndNote(array, index, log, number) {
    const outcome = face.wait(array, index, 0);
    log[Atomics.add(log, 0, 1) + 1] = number;
    return outcome;
  },
  timedWait(...args) {
    const startedAt = performance.now();
    const outcome = face.wait(...args);
    return { outcome, ms: performance.now() - startedAt };
  },
  waitAsync: (...args) => face.waitAsync(...args).value,
  /** Begins to wait, and returns before that is over. */
  beginToWait: (...args) => face.waitAsync(...args).async,
  /** Waits until the first element has changed, and then changes the second one. */
  playPingPong(array, rounds) {
    for (let round = 0; round < rounds; round++) {
      while (Atomics.load(array, 0) === round) face.wait(array, 0, round);
      Atomics.store(array, 1, round + 1);
      face.notify(array, 1);
    }
    return Atomics.load(array, 1);
  },
  spinUntil(flag) {
    while (!isRaised(flag));
  },
  ...waysToEnd,
};

takeSteps(async ([verb, ...args]) => {
  doing(`${verb} of ${data.face}`);
  const value = await (actions[verb] ?? face[verb])(...args);
  doing(`idle after ${verb}`);
  return value;
});
