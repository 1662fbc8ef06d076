// A worker of the storm: every verb of every kind in turn, at random, until it is terminated.

const { workerData } = require('node:worker_threads');
const { Actor } = require('./actor.js');
const { KINDS } = require('./kinds.js');
const { CELLS, STAGES, on } = require('./memory.js');

// Taking over what others have left is what it does all the time.
process.removeAllListeners('warning');

const places = on(workerData.buffer);
const kinds = KINDS.filter(({ name }) => workerData.kinds.includes(name));
const actor = new Actor(places, workerData, kinds);
const awaited = kinds.filter((kind) => kind.awaited !== undefined);

/** It has had one more turn. */
const count = () => {
  Atomics.add(places.cells, CELLS.TURNS, 1);
  Atomics.store(places.stages, workerData.slot, STAGES.TURNED);
};

async function run() {
  Atomics.store(places.stages, workerData.slot, STAGES.READY);
  for (;;) {
    for (let turn = 1 + actor.below(20); turn > 0; turn--) {
      actor.turn(kinds[actor.below(kinds.length)]);
      count();
    }
    if (awaited.length === 0) continue;
    const kind = () => awaited[actor.below(awaited.length)];
    await Promise.all([actor.turnAsync(kind()), actor.turnAsync(kind())]);
    count();
  }
}

run().catch((error) => {
  // The wait ends first, and this code a moment later: what has more of its own to run, as the doctor, may come so far.
  const isDoomed = Atomics.load(places.doomed, workerData.slot) !== 0;
  if (isDoomed && error?.code === 'ERR_LOCK_THREAD_ENDING') return;
  actor.complain(error?.stack ?? String(error));
});
